//! Functions whose results may be far larger than their arguments, and bounds on these results.
//!
//! `repeat('x', 2000000000)` is one short row that becomes two gigabytes. A [`Bounded`] function knows the size of its
//! results before it computes them. It refuses a value of more than [`LARGEST`] bytes. In views it also refuses to compute
//! more than [`TOGETHER`] bytes at once: the map then evaluates fewer rows at a time.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{
    ColumnarValue, Documentation, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion_expr::{Expr, simplify::ExprSimplifyResult, simplify::SimplifyContext};
use datafusion_physical_expr::expressions::LambdaExpr;
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::rows::widths::widths;

/// The most bytes of a value that is computed for a row.
pub const LARGEST: u64 = 64 << 20;

/// The most bytes that a view computes at once, unless they are one row's.
const TOGETHER: u64 = 8 << 20;

/// The most bytes of one array of text.
const ARRAY: u64 = i32::MAX as u64;

/// The bytes of the result for each row, or less where that is not known.
pub type Sizes = fn(&ScalarFunctionArgs) -> Result<Vec<u64>>;

/// Why a value is not computed.
#[derive(Debug, thiserror::Error)]
enum TooLarge {
    #[error(
        "the result of {function} would have {bytes} bytes; a value that is computed has at most {LARGEST} (64 MiB)"
    )]
    Value { function: String, bytes: u64 },
    #[error(
        "the results of {function} would have {bytes} bytes for {rows} rows together; at most {most} are computed at once"
    )]
    Values { function: String, bytes: u64, rows: usize, most: u64 },
}

/// Whether evaluation failed only because too much would be computed at once.
pub(super) fn is_too_much_together(error: &DataFusionError) -> bool {
    let mut error: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(next) = error {
        if let Some(TooLarge::Values { .. }) = next.downcast_ref::<TooLarge>() {
            return true;
        }
        error = next.source();
    }
    false
}

/// A function that refuses results that are too large before they are computed.
#[derive(Debug)]
pub struct Bounded {
    inner: Arc<ScalarUDF>,
    sizes: Sizes,
    /// The most bytes that are computed at once.
    most: u64,
}

impl Bounded {
    /// `inner`, given the sizes of its results.
    pub fn function(inner: Arc<ScalarUDF>, sizes: Sizes) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { inner, sizes, most: ARRAY }))
    }

    fn check(&self, arguments: &ScalarFunctionArgs) -> Result<()> {
        let sizes = (self.sizes)(arguments)?;
        let function = || self.inner.name().to_owned();
        let all = sizes.iter().fold(0_u64, |all, size| all.saturating_add(*size));
        if all <= self.most.min(LARGEST) {
            return Ok(());
        }
        let too_large = match sizes.iter().copied().max() {
            Some(bytes) if bytes > LARGEST => TooLarge::Value { function: function(), bytes },
            _ if all <= self.most || sizes.len() == 1 => return Ok(()),
            _ => {
                let (rows, most) = (sizes.len(), self.most);
                TooLarge::Values { function: function(), bytes: all, rows, most }
            }
        };
        Err(DataFusionError::External(Box::new(too_large)))
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner && self.most == other.most
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
        self.most.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn simplify(
        &self,
        arguments: Vec<Expr>,
        context: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        self.inner.simplify(arguments, context)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&arguments)?;
        self.inner.invoke_with_args(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, arguments: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(arguments)
    }
}

/// Refuses the copies of a constant for all rows if they are too much at once.
pub(super) fn check_copies(value: &ColumnarValue, rows: usize) -> Result<()> {
    let ColumnarValue::Scalar(value) = value else { return Ok(()) };
    let length = value.size().saturating_sub(size_of_val(value)) as u64;
    let bytes = length.saturating_mul(rows as u64);
    if bytes <= TOGETHER || rows == 1 {
        return Ok(());
    }
    let function = "a constant".to_owned();
    let too_large = TooLarge::Values { function, bytes, rows, most: TOGETHER };
    Err(DataFusionError::External(Box::new(too_large)))
}

/// Refuses a value that is too large, whatever computed it.
pub(super) fn check_values(column: &ArrayRef) -> Result<()> {
    if column.get_array_memory_size() as u64 <= LARGEST {
        return Ok(());
    }
    match widths(column).into_iter().max() {
        Some(bytes) if bytes as u64 > LARGEST => {
            let function = "an expression".to_owned();
            let too_large = TooLarge::Value { function, bytes: bytes as u64 };
            Err(DataFusionError::External(Box::new(too_large)))
        }
        _ => Ok(()),
    }
}

/// The same expression, none of whose functions computes much at once.
///
/// The body of a lambda is evaluated for all elements of a row together, which become one value.
pub(super) fn in_pieces(expression: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    limited(Arc::clone(&expression), TOGETHER).unwrap_or(expression)
}

fn limited(expression: Arc<dyn PhysicalExpr>, most: u64) -> Result<Arc<dyn PhysicalExpr>> {
    let limited = expression.transform_down(|node| {
        if most == TOGETHER && node.is::<LambdaExpr>() {
            let node = limited(node, LARGEST)?;
            return Ok(Transformed::new(node, true, TreeNodeRecursion::Jump));
        }
        let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(Transformed::no(node));
        };
        let bounded = match call.fun().inner().downcast_ref::<Bounded>() {
            Some(bounded) if bounded.most == ARRAY => bounded,
            _ => return Ok(Transformed::no(node)),
        };
        let Bounded { inner, sizes, .. } = bounded;
        let function = Bounded { inner: Arc::clone(inner), sizes: *sizes, most };
        let field = call.return_field(&arrow::datatypes::Schema::empty())?;
        Ok(Transformed::yes(Arc::new(ScalarFunctionExpr::new(
            call.name(),
            Arc::new(ScalarUDF::from(function)),
            call.args().to_vec(),
            field,
            Arc::new(call.config_options().clone()),
        ))))
    })?;
    Ok(limited.data)
}

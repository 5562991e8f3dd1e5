//! `nextval`, `currval`, `lastval` and `setval`.
//!
//! They are planned by their names, and bound to the sequences that there are when a statement runs.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility, lit,
};

use super::session::SessionFacts;

/// The sequences that the functions of sequences use, as a session sees them.
pub trait Sequences: Debug + Send + Sync {
    /// So many next values of a sequence. A `generated` column asks for those of its own.
    ///
    /// # Errors
    /// If there is no such sequence, if it has not so many values left, or if the session may not take them.
    fn next(&self, sequence: &str, count: usize, generated: bool) -> Result<Vec<i64>>;

    /// The value of a sequence that the session took last.
    ///
    /// # Errors
    /// If it has taken none.
    fn current(&self, sequence: &str) -> Result<i64>;

    /// The value that the session took last, of whatever sequence.
    ///
    /// # Errors
    /// If it has taken none.
    fn last(&self) -> Result<i64>;

    /// Sets the last value of a sequence; the next one follows it or, unless it `is_called`, the value itself.
    ///
    /// # Errors
    /// As for [`Sequences::next`].
    fn set(&self, sequence: &str, value: i64, is_called: bool) -> Result<()>;

    /// The session that runs the statement, if one does.
    fn session(&self) -> Option<Arc<dyn SessionFacts>> {
        None
    }
}

/// The functions, which fail unless they are bound.
pub(crate) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Kind::Next, Kind::Current, Kind::Last, Kind::Set]
        .into_iter()
        .map(|kind| Arc::new(ScalarUDF::from(SequenceFunction::new(kind, None))))
}

/// The next value of the sequence of a generated column of this type.
pub fn generated_value(sequence: &str, data_type: &DataType) -> Expr {
    let function = SequenceFunction { generated: true, ..SequenceFunction::new(Kind::Next, None) };
    let call = ScalarUDF::from(function).call(vec![lit(sequence)]);
    match data_type {
        DataType::Int64 => call,
        other => Expr::Cast(Cast::new(Box::new(call), other.clone())),
    }
}

/// Whether an expression is a call of one of these functions.
pub fn is_sequence(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarFunction(call) => {
            call.func.inner().downcast_ref::<SequenceFunction>().is_some()
        }
        _ => false,
    }
}

/// Whether an expression has another value in each row because it asks a sequence.
pub fn calls_sequence(expression: &Expr) -> bool {
    expression.exists(|part| Ok(is_sequence(part))).unwrap_or(false)
}

/// Whether a function is one of these.
pub fn is_of_sequences(name: &str) -> bool {
    [Kind::Next, Kind::Current, Kind::Last, Kind::Set].iter().any(|kind| kind.name() == name)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Next,
    Current,
    Last,
    Set,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Next => "nextval",
            Self::Current => "currval",
            Self::Last => "lastval",
            Self::Set => "setval",
        }
    }

    fn signature(self) -> Signature {
        let (text, number) = (DataType::Utf8, DataType::Int64);
        let exact = |types: &[DataType]| TypeSignature::Exact(types.to_vec());
        let types = match self {
            Self::Next | Self::Current => exact(&[text]),
            Self::Last => TypeSignature::Nullary,
            Self::Set => TypeSignature::OneOf(vec![
                exact(&[text.clone(), number.clone()]),
                exact(&[text, number, DataType::Boolean]),
            ]),
        };
        Signature::new(types, Volatility::Volatile)
    }
}

/// One of the functions.
#[derive(Clone, Debug)]
pub struct SequenceFunction {
    kind: Kind,
    /// Whether a column asks for a value of its own sequence.
    generated: bool,
    sequences: Option<Arc<dyn Sequences>>,
    signature: Signature,
}

impl PartialEq for SequenceFunction {
    fn eq(&self, other: &Self) -> bool {
        let address = |of: &Self| of.sequences.as_ref().map(|all| Arc::as_ptr(all).addr());
        (self.kind, self.generated, address(self)) == (other.kind, other.generated, address(other))
    }
}

impl Eq for SequenceFunction {}

impl Hash for SequenceFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.generated).hash(state);
    }
}

impl SequenceFunction {
    fn new(kind: Kind, sequences: Option<Arc<dyn Sequences>>) -> Self {
        Self { kind, generated: false, sequences, signature: kind.signature() }
    }

    /// The same function of these sequences.
    pub fn bound(&self, sequences: Arc<dyn Sequences>) -> ScalarUDF {
        ScalarUDF::from(Self { sequences: Some(sequences), ..self.clone() })
    }

    fn call(&self, all: &dyn Sequences, arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        if self.kind == Kind::Last {
            return Ok(ScalarValue::from(all.last()?).into());
        }
        // As many values as rows are taken at once, if they are of one sequence.
        if let (Kind::Next, [ColumnarValue::Scalar(name)]) = (self.kind, &arguments.args[..]) {
            return match name.try_as_str().flatten() {
                None => Ok(ScalarValue::Int64(None).into()),
                Some(name) => {
                    let next = all.next(name, rows, self.generated)?;
                    Ok(ColumnarValue::Array(Arc::new(Int64Array::from(next))))
                }
            };
        }
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let is_constant =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { rows };
        let values: Int64Array =
            (0..rows).map(|row| self.of_row(all, &columns, row)).collect::<Result<_>>()?;
        match is_constant {
            true => Ok(ScalarValue::try_from_array(&values, 0)?.into()),
            false => Ok(ColumnarValue::Array(Arc::new(values))),
        }
    }

    fn of_row(&self, all: &dyn Sequences, columns: &[ArrayRef], row: usize) -> Result<Option<i64>> {
        if columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let name = columns[0].as_string::<i32>().value(row);
        let number = |at: usize| columns[at].as_primitive::<Int64Type>().value(row);
        let is_called = || columns.get(2).is_none_or(|column| column.as_boolean().value(row));
        match self.kind {
            Kind::Next => all.next(name, 1, self.generated).map(|next| next.first().copied()),
            Kind::Current => all.current(name).map(Some),
            Kind::Last => all.last().map(Some),
            Kind::Set => all.set(name, number(1), is_called()).map(|()| Some(number(1))),
        }
    }
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &self.sequences {
            Some(all) => self.call(&**all, &arguments),
            None => internal_err!("{}() is bound before a plan runs", self.kind.name()),
        }
    }
}

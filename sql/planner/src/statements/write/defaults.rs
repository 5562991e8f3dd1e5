//! DEFAULT as a value: in VALUES, and after SET.
//!
//! DataFusion would take it for a column. Until the statement is planned it is a call of a function that is there for this
//! statement only, of the column's type; then the column's DEFAULT takes the place of the call.

use std::sync::Arc;

use alluvium_sql_syntax::syntax::call;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sqlparser::ast;

use super::query::exactly;

/// The prefix of the functions' names, which the number of the column follows.
const PREFIX: &str = "default of column ";

/// The DEFAULTs of a table.
#[derive(Debug)]
pub struct Defaults {
    pub(super) expressions: Vec<Option<Expr>>,
    pub schema: SchemaRef,
}

/// Whether an expression is the word DEFAULT.
pub(super) fn is_default(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Identifier(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

/// The DEFAULT of a column, until it is planned.
pub(super) fn of_column(column: usize) -> ast::Expr {
    call(exactly(format!("{PREFIX}{column}")), [])
}

impl Defaults {
    /// The function that stands for the DEFAULT of a column.
    pub fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let column: usize = name.strip_prefix(PREFIX)?.parse().ok()?;
        let data_type = self.schema.fields().get(column)?.data_type().clone();
        let signature = Signature::nullary(Volatility::Stable);
        Some(Arc::new(ScalarUDF::from(StandIn { name: name.to_owned(), data_type, signature })))
    }

    /// The plan with the DEFAULTs in the places of these functions.
    pub fn fill(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let filled = node.map_expressions(|expression| {
                let name = names.save(&expression);
                let filled = expression.transform_up(|part| self.in_place_of(part))?;
                Ok(filled.update_data(|expression| name.restore(expression)))
            })?;
            match (&filled.data, filled.transformed) {
                (LogicalPlan::Values(_), _) | (_, false) => Ok(filled),
                _ => filled.map_data(LogicalPlan::recompute_schema),
            }
        })
        .data()
    }

    fn in_place_of(&self, part: Expr) -> Result<Transformed<Expr>> {
        let column = match &part {
            Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<StandIn>(),
            _ => None,
        };
        let column = column.and_then(|stand_in| stand_in.name.strip_prefix(PREFIX)?.parse().ok());
        let Some(column) = column else { return Ok(Transformed::no(part)) };
        let column: usize = column;
        let default = match self.expressions.get(column).cloned().flatten() {
            Some(default) => default,
            None => {
                let null = ScalarValue::try_from(self.schema.field(column).data_type())?;
                Expr::Literal(null, None)
            }
        };
        Ok(Transformed::yes(default))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StandIn {
    name: String,
    data_type: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("DEFAULT is replaced when it is planned")
    }
}

//! The types of expressions.
//!
//! DataFusion finds the type of a function by way of the names of its arguments, which it prints. For a chain of functions
//! that takes the square of its length, for each function in it.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::DFSchema;
use datafusion_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, ReturnFieldArgs};

/// The type of an expression over columns of `schema`; `None` for one without a type, whose error comes when it is planned.
pub fn type_of(expression: &Expr, schema: &DFSchema) -> Option<DataType> {
    match expression {
        Expr::Negative(operand) => type_of(operand, schema),
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
            Some(field.data_type().clone())
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (type_of(left, schema)?, type_of(right, schema)?);
            BinaryTypeCoercer::new(&left, op, &right).get_result_type().ok()
        }
        Expr::ScalarFunction(call) => {
            let arguments = call.args.iter().map(|argument| type_of(argument, schema));
            returned(call, &arguments.collect::<Option<Vec<_>>>()?)
        }
        expression => expression.get_type(schema).ok(),
    }
}

/// The type that a function returns, given those of its arguments.
pub(crate) fn returned(call: &ScalarFunction, arguments: &[DataType]) -> Option<DataType> {
    let field = |of: &DataType| -> FieldRef { Field::new("", of.clone(), true).into() };
    let fields: Vec<FieldRef> = arguments.iter().map(field).collect();
    let fields = fields_with_udf(&fields, call.func.as_ref()).ok()?;
    let literals: Vec<_> = call.args.iter().map(Expr::as_literal).collect();
    let arguments = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &literals };
    Some(call.func.return_field_from_args(arguments).ok()?.data_type().clone())
}

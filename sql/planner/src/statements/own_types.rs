//! Parameters that have the types of their values, as literals have.
//!
//! A parameter takes the type that is expected where it stands, and its value is cast to that. Where this would change the value, as a number
//! with a fraction beside an integer, or where nothing tells the type, the statement is planned again with the type of the value.

use alluvium_sql_functions::texts;
use alluvium_sql_syntax::error::{Error, Result};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::expr::{Cast, Placeholder};
use datafusion_expr::{Expr, LogicalPlan};

use crate::SqlFunctions;
use crate::catalog::{Catalog, Relation};
use crate::statements::parameters::place;
use crate::system::SystemSchemas;

/// How often a statement is planned with more types: each round may tell that others do not fit.
const ROUNDS: usize = 3;

/// A statement's plan for the values of its parameters.
#[derive(Debug)]
pub struct PlannedFor<P> {
    /// The plan.
    pub planned: P,
    /// Whether parameters have types of values: for other values it may be another plan.
    pub is_typed: bool,
}

/// Plans a statement, some of whose parameters have the types of their values. `plan` plans it over a catalog, and `rows` is the plan of its rows;
/// where it `assigns` parameters to columns, their values have to fit these.
///
/// # Errors
/// Those of `plan`.
pub fn plan_for<P>(
    catalog: &dyn Catalog,
    values: &[ScalarValue],
    assigns: bool,
    plan: impl Fn(&dyn Catalog) -> Result<P>,
    rows: impl Fn(&P) -> &LogicalPlan,
) -> Result<PlannedFor<P>> {
    let mut types: Vec<Option<FieldRef>> = vec![None; values.len()];
    let with = |types: &[Option<FieldRef>]| plan(&OwnTypes { catalog, types });
    let mut planned = match plan(catalog) {
        Ok(planned) => planned,
        Err(error) => {
            // Functions and operators may need to know what they are given; texts are of any type as long as it can be.
            let own = |are_texts: bool| {
                let is_declared =
                    |value: &&ScalarValue| are_texts || !value.data_type().is_string();
                let own = values.iter().map(|value| Some(value).filter(is_declared));
                own.map(|value| own_type(value?)).collect::<Vec<_>>()
            };
            let planned = [false, true].into_iter().find_map(|are_texts| {
                types = own(are_texts);
                with(&types).ok()
            });
            planned.ok_or(error)?
        }
    };
    for _ in 0..ROUNDS {
        if !declare(rows(&planned), values, assigns, &mut types)? {
            break;
        }
        planned = with(&types)?;
    }
    let is_typed = types.iter().any(Option::is_some);
    Ok(PlannedFor { planned, is_typed })
}

/// Gives parameters that their places do not fit the types of their values. Returns whether there are such.
fn declare(
    plan: &LogicalPlan,
    values: &[ScalarValue],
    assigns: bool,
    types: &mut [Option<FieldRef>],
) -> Result<bool> {
    let mut is_declared = false;
    let mut declare = |id: &str, told: Option<&DataType>| {
        let Some(place) = place(id) else { return };
        let (Some(value), Some(own)) = (values.get(place), types.get_mut(place)) else { return };
        if own.is_none() && !suits(value, told) {
            *own = own_type(value);
            is_declared |= own.is_some();
        }
    };
    let walked = plan.apply_with_subqueries(|node| {
        let are_assigned = assigns && matches!(node, LogicalPlan::Projection(_));
        node.apply_expressions(|expression| {
            let selected = match expression {
                Expr::Alias(alias) => alias.expr.as_ref(),
                expression => expression,
            };
            if are_assigned && matches!(selected, Expr::Placeholder(_)) {
                return Ok(TreeNodeRecursion::Continue);
            }
            expression.apply(|part| {
                match part {
                    Expr::Placeholder(Placeholder { id, field }) => {
                        declare(id, field.as_ref().map(|field| field.data_type()));
                    }
                    // The planner casts what has no type; to declare it changes nothing for casts of the statement.
                    Expr::Cast(Cast { expr, field }) => {
                        if let Expr::Placeholder(Placeholder { id, field: None }) = expr.as_ref() {
                            declare(id, Some(field.data_type()));
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(|error| Error::from_datafusion(&error))?;
    Ok(is_declared)
}

/// The type of a value; `None` of NULL, which has any.
fn own_type(value: &ScalarValue) -> Option<FieldRef> {
    (!value.is_null()).then(|| Field::new("", value.data_type(), true).into())
}

/// Whether a value is the same as one of the type that its place tells.
fn suits(value: &ScalarValue, told: Option<&DataType>) -> bool {
    let given = value.data_type();
    let Some(told) = told else { return !given.is_nested() };
    if value.is_null() || given == *told {
        return true;
    }
    let is_fit = || texts::cast_value(value, told).is_ok();
    match (&given, told) {
        (_, DataType::Null) => false,
        // A text is read as a value of any type, and any value is a text.
        (given, _) if given.is_string() => true,
        (DataType::Boolean, _) => true,
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, told) => told.is_binary(),
        (given, told) if given.is_nested() => {
            std::mem::discriminant(given) == std::mem::discriminant(told) && is_fit()
        }
        (_, told) if told.is_string() => true,
        (given, DataType::Boolean) => given.is_integer(),
        (given, told) if given.is_integer() => told.is_numeric() && is_fit(),
        (given, told) if given.is_floating() => told.is_floating(),
        (DataType::Decimal128(..), told) if told.is_floating() => true,
        (DataType::Decimal128(precision, scale), DataType::Decimal128(digits, places)) => {
            let whole = i16::from(*precision) - i16::from(*scale);
            scale <= places && whole <= i16::from(*digits) - i16::from(*places)
        }
        // Constants have nanoseconds until the plan is complete.
        (
            DataType::Date32 | DataType::Timestamp(..),
            DataType::Timestamp(TimeUnit::Microsecond, _),
        ) => is_fit(),
        (DataType::Time64(_), DataType::Time64(_)) => true,
        (DataType::Interval(_), DataType::Interval(_) | DataType::Duration(_)) => is_fit(),
        _ => false,
    }
}

/// A catalog for a statement whose parameters have types.
struct OwnTypes<'a> {
    catalog: &'a dyn Catalog,
    types: &'a [Option<FieldRef>],
}

impl Catalog for OwnTypes<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        self.catalog.relation(name)
    }

    fn names(&self) -> Vec<String> {
        self.catalog.names()
    }

    fn functions(&self) -> &SqlFunctions {
        self.catalog.functions()
    }

    fn system(&self) -> Option<&SystemSchemas> {
        self.catalog.system()
    }

    fn failure(&self, name: &str) -> Option<Error> {
        self.catalog.failure(name)
    }

    fn outside(&self) -> Vec<(String, SchemaRef)> {
        self.catalog.outside()
    }

    fn parameters(&self) -> &[Option<FieldRef>] {
        self.types
    }
}

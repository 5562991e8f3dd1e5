//! The arguments of a time window function.

use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::planner::RelationPlannerContext;
use datafusion_expr::{Expr, LogicalPlan};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TableFactor,
};

use super::{Duration, Function, wrong};
use crate::error::Position;
use crate::syntax::from_table;

/// The arguments of a call, by their names in calls with named arguments: `DATA => TABLE bid`.
pub(super) struct Arguments<'a> {
    function: Function,
    /// Where the function is named.
    at: Option<Position>,
    table: &'a ast::Expr,
    named: Vec<(&'static str, &'a ast::Expr)>,
}

impl Function {
    /// The arguments after the relation, in order; OFFSET is optional.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Function::Tumble => &["TIMECOL", "SIZE", "OFFSET"],
            Function::Hop => &["TIMECOL", "SLIDE", "SIZE", "OFFSET"],
            Function::Session => &["TIMECOL", "KEY", "SIZE"],
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Function::Tumble => "TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL size)",
            Function::Hop => "HOP(TABLE t, DESCRIPTOR(time), INTERVAL slide, INTERVAL size)",
            Function::Session => {
                "SESSION(TABLE t, DESCRIPTOR(time), DESCRIPTOR(key), INTERVAL gap)"
            }
        }
    }
}

impl<'a> Arguments<'a> {
    pub(super) fn read(
        function: Function,
        arguments: &'a [FunctionArg],
        at: Option<Position>,
    ) -> Result<Arguments<'a>> {
        let usage = || wrong(format!("write {}", function.usage()), at);
        let parameters = function.parameters();
        let mut table = None;
        let mut named: Vec<(&str, &ast::Expr)> = Vec::with_capacity(parameters.len());
        for (number, argument) in arguments.iter().enumerate() {
            let (name, value) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => {
                    let name = if number == 0 {
                        "DATA"
                    } else {
                        parameters.get(number - 1).ok_or_else(usage)?
                    };
                    (name, value)
                }
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                    let name = name.value.to_ascii_uppercase();
                    let mut known = parameters.iter().chain(&["DATA"]);
                    (*known.find(|known| **known == name).ok_or_else(usage)?, value)
                }
                _ => return Err(usage()),
            };
            let is_twice = match name {
                "DATA" => table.replace(value).is_some(),
                name => {
                    let is_twice = named.iter().any(|(other, _)| *other == name);
                    named.push((name, value));
                    is_twice
                }
            };
            if is_twice {
                return Err(usage());
            }
        }
        let required = parameters.iter().filter(|parameter| **parameter != "OFFSET");
        let is_complete =
            required.into_iter().all(|parameter| named.iter().any(|(name, _)| name == parameter));
        match table {
            Some(table) if is_complete => Ok(Arguments { function, at, table, named }),
            _ => Err(usage()),
        }
    }

    fn get(&self, name: &str) -> Option<&'a ast::Expr> {
        self.named.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// The relation, as it is written behind TABLE.
    pub(super) fn relation(&self) -> &'a ast::Expr {
        match self.table {
            ast::Expr::Prefixed { value, .. } => value,
            named => named,
        }
    }

    /// The relation, as FROM names it.
    pub(super) fn table(&self) -> TableFactor {
        let parts: Vec<Ident> = match self.relation() {
            ast::Expr::Identifier(name) => vec![name.clone()],
            ast::Expr::CompoundIdentifier(parts) => parts.clone(),
            ast::Expr::Subquery(query) => {
                return TableFactor::Derived {
                    lateral: false,
                    subquery: query.clone(),
                    alias: None,
                    sample: None,
                };
            }
            // The catalog reports a relation that does not exist, with its position.
            other => vec![Ident::with_quote('"', other.to_string())],
        };
        let alias = parts.last().filter(|_| parts.len() > 1).cloned();
        from_table(ObjectName::from(parts), alias).relation
    }

    /// The column of times.
    pub(super) fn time(
        &self,
        rows: &LogicalPlan,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Column> {
        let named = self.get("TIMECOL").map(described);
        let name = self.function.name();
        let Some([time]) = named.as_deref() else {
            return Err(wrong(format!("{name} takes one time column"), self.at));
        };
        let at = Position::of(*time).or(self.at);
        let planned = context.sql_to_expr((*time).clone(), rows.schema())?;
        let Expr::Column(column) = planned else {
            return Err(wrong(format!("the time of {name} must be a column"), at));
        };
        match rows.schema().qualified_field_from_column(&column)?.1.data_type() {
            DataType::Timestamp(_, _) => Ok(column),
            other => Err(wrong(
                format!("the time of {name} must be a TIMESTAMP: \"{}\" is {other}", column.name),
                at,
            )),
        }
    }

    /// The key columns of sessions.
    pub(super) fn keys(
        &self,
        rows: &LogicalPlan,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Vec<Expr>> {
        let named = self.get("KEY").map(described).unwrap_or_default();
        let keys = named.into_iter().map(|key| {
            let at = Position::of(key).or(self.at);
            match context.sql_to_expr(key.clone(), rows.schema())? {
                Expr::Column(column) => Ok(Expr::Column(column)),
                _ => Err(wrong(format!("a key of {} must be a column", self.function.name()), at)),
            }
        });
        keys.collect()
    }

    /// A required interval above zero.
    pub(super) fn duration(
        &self,
        name: &str,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Duration> {
        let duration = self.interval(name, context)?;
        match duration {
            Some(duration) if duration.0 > 0 => Ok(duration),
            _ => {
                let at = self.get(name).and_then(Position::of).or(self.at);
                let name = name.to_ascii_lowercase();
                Err(wrong(
                    format!("the {name} of {} must be greater than zero", self.function.name()),
                    at,
                ))
            }
        }
    }

    /// The offset of the windows; zero if it is left out.
    pub(super) fn offset(&self, context: &mut dyn RelationPlannerContext) -> Result<Duration> {
        Ok(self.interval("OFFSET", context)?.unwrap_or(Duration(0)))
    }

    fn interval(
        &self,
        name: &str,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Option<Duration>> {
        const DAY: i64 = 86_400_000_000_000;
        let Some(expression) = self.get(name) else { return Ok(None) };
        let planned = context.sql_to_expr(expression.clone(), &DFSchema::empty())?;
        let duration = match planned {
            Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)
                if interval.months == 0 =>
            {
                i64::from(interval.days)
                    .checked_mul(DAY)
                    .and_then(|days| days.checked_add(interval.nanoseconds))
            }
            _ => None,
        };
        duration.map(|duration| Some(Duration(duration))).ok_or_else(|| {
            let (function, name) = (self.function.name(), name.to_ascii_lowercase());
            let message =
                format!("the {name} of {function} must be an INTERVAL of days or shorter units");
            wrong(message, Position::of(expression).or(self.at))
        })
    }
}

/// The columns inside `DESCRIPTOR(…)`, which is optional around a single column.
fn described(expression: &ast::Expr) -> Vec<&ast::Expr> {
    if let ast::Expr::Function(call) = expression
        && call.name.to_string().eq_ignore_ascii_case("descriptor")
        && let FunctionArguments::List(list) = &call.args
    {
        return list
            .args
            .iter()
            .filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(column),
                _ => None,
            })
            .collect();
    }
    vec![expression]
}

//! ASOF joins.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, JoinConstraint, JoinOperator,
};

/// An ASOF join, in whichever of its spellings.
pub struct AsofJoin<'a> {
    /// Its name.
    pub name: &'a str,
    /// The condition on the times, unless it is part of the constraint.
    pub condition: Option<&'a Expr>,
    /// The equalities.
    pub constraint: &'a JoinConstraint,
}

impl<'a> AsofJoin<'a> {
    /// The join, if it is one.
    pub fn of(operator: &'a JoinOperator) -> Option<Self> {
        let JoinOperator::AsOf { match_condition, constraint } = operator else { return None };
        let plain = Self { name: "ASOF JOIN", condition: Some(match_condition), constraint };
        let Expr::Function(call) = match_condition else { return Some(plain) };
        let [name] = &call.name.0[..] else { return Some(plain) };
        let Some(name) = name.as_ident().filter(|name| name.value.ends_with(plain.name)) else {
            return Some(plain);
        };
        let condition = match &call.args {
            FunctionArguments::List(list) => list.args.first(),
            _ => None,
        };
        let condition = condition.and_then(|condition| match condition {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(condition)) => Some(condition),
            _ => None,
        });
        Some(Self { name: &name.value, condition, constraint })
    }

    /// Whether it keeps left rows without a match.
    pub fn keeps_left(&self) -> bool {
        self.name.starts_with("LEFT")
    }
}

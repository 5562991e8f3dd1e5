//! Keys of GROUP BY that say nothing.

use sqlparser::ast::{Expr, GroupByExpr, Select};

/// Drops casts of other keys, as in `GROUP BY t, CAST(t AS DATE)`: DataFusion names a cast as what is cast, and does not tell the two
/// apart.
pub(super) fn drop_casts_of_keys(select: &mut Select) {
    let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else { return };
    if !modifiers.is_empty() || !keys.iter().any(|key| matches!(bare(key), Expr::Cast { .. })) {
        return;
    }
    let others: Vec<Expr> = keys.iter().map(|key| bare(key).clone()).collect();
    keys.retain(|key| {
        let mut cast = bare(key);
        while let Expr::Cast { expr, .. } = cast {
            cast = bare(expr);
            if others.contains(cast) {
                return false;
            }
        }
        true
    });
}

fn bare(mut expression: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expression {
        expression = inner;
    }
    expression
}

//! The clauses of a SELECT.

use sqlparser::ast::{
    Distinct, ExcludeSelectItem, GroupByExpr, GroupByWithModifier, NamedWindowDefinition,
    NamedWindowExpr, ReplaceSelectElement, ReplaceSelectItem, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, Spanned, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Span;

use super::clause::{Clause, none_of, refuse};
use super::function::check_window;
use super::relation::check_joins;
use crate::error::Result;

pub(super) fn check(select: &Select) -> Result<()> {
    let Select {
        select_token,
        optimizer_hints,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    let refused: &[(&dyn Clause, &str)] = &[
        (optimizer_hints, "an optimizer hint"),
        (select_modifiers, "a modifier of SELECT, such as SQL_NO_CACHE"),
        (top, "TOP (write LIMIT)"),
        (exclude, "EXCLUDE behind the selected columns (write * EXCLUDE)"),
        (into, "SELECT … INTO"),
        (lateral_views, "LATERAL VIEW"),
        (prewhere, "PREWHERE"),
        (connect_by, "CONNECT BY"),
        (cluster_by, "CLUSTER BY"),
        (distribute_by, "DISTRIBUTE BY"),
        (sort_by, "SORT BY"),
        (value_table_mode, "SELECT AS STRUCT or AS VALUE"),
    ];
    let at = || select_token.0.span;
    none_of(refused, at)?;
    match distinct {
        None | Some(Distinct::All | Distinct::Distinct | Distinct::On(_)) => {}
    }
    match flavor {
        SelectFlavor::Standard => {}
        SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => {
            refuse("FROM in front of SELECT", at)?;
        }
    }
    check_grouping(group_by, at)?;
    projection.iter().try_for_each(check_item)?;
    from.iter().try_for_each(check_joins)?;
    for NamedWindowDefinition(name, window) in named_window {
        match window {
            NamedWindowExpr::NamedWindow(_) => {
                refuse("a second name for a window", || name.span)?;
            }
            NamedWindowExpr::WindowSpec(window) => check_window(window)?,
        }
    }
    Ok(())
}

fn check_grouping(group_by: &GroupByExpr, at: impl FnOnce() -> Span) -> Result<()> {
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    match modifiers.first() {
        None => Ok(()),
        Some(GroupByWithModifier::Rollup) => refuse("WITH ROLLUP (write GROUP BY ROLLUP (…))", at),
        Some(GroupByWithModifier::Cube) => refuse("WITH CUBE (write GROUP BY CUBE (…))", at),
        Some(GroupByWithModifier::Totals) => refuse("WITH TOTALS", at),
        Some(GroupByWithModifier::GroupingSets(_)) => {
            refuse("GROUPING SETS behind the keys (write GROUP BY GROUPING SETS (…))", at)
        }
    }
}

pub(super) fn check_item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { expr: _, alias: _ } => Ok(()),
        SelectItem::ExprWithAliases { expr, aliases: _ } => {
            refuse("several names of one column", || expr.span())
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
            refuse("the fields of an expression as columns", || item.span())
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options)
        | SelectItem::Wildcard(options) => check_wildcard(options),
    }
}

pub(super) fn check_wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token,
        opt_ilike: _,
        opt_exclude,
        opt_except: _,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let at = || wildcard_token.0.span;
    none_of(&[(opt_rename, "* RENAME"), (opt_alias, "a name for *")], at)?;
    match opt_exclude {
        None | Some(ExcludeSelectItem::Single(_) | ExcludeSelectItem::Multiple(_)) => {}
    }
    if let Some(ReplaceSelectItem { items }) = opt_replace {
        for item in items {
            let ReplaceSelectElement { expr: _, column_name: _, as_keyword: _ } = item.as_ref();
        }
    }
    Ok(())
}

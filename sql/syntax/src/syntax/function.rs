//! Calls of functions, and windows.

use alluvium_sql_functions::{FunctionKind, function_kind};
use sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Spanned, WindowFrame, WindowFrameBound, WindowSpec,
    WindowType,
};

use super::clause::{Clause, check_order, none_of, refuse};
use crate::error::Result;

/// Window functions that look at NULLs as `IGNORE NULLS` says.
const NULL_TREATING: &[&str] = &["first_value", "lag", "last_value", "lead", "nth_value"];

pub(super) fn check(function: &Function) -> Result<()> {
    let Function {
        name,
        uses_odbc_syntax: _,
        parameters,
        args,
        filter: _,
        null_treatment: _,
        over,
        within_group,
    } = function;
    let at = || name.span();
    match parameters {
        FunctionArguments::None => {}
        FunctionArguments::List(_) | FunctionArguments::Subquery(_) => {
            refuse(format_args!("a second list of arguments of {name}"), at)?;
        }
    }
    let empty =
        FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() };
    let list = match args {
        FunctionArguments::None => &empty,
        FunctionArguments::List(list) => list,
        FunctionArguments::Subquery(_) => {
            return refuse(format_args!("{name}(SELECT …)"), at);
        }
    };
    check_arguments(name, list)?;
    check_order(within_group)?;
    check_clauses(function, function_kind(&name.to_string().to_lowercase(), over.is_some()))?;
    match over {
        Some(WindowType::WindowSpec(window)) => check_window(window),
        None | Some(WindowType::NamedWindow(_)) => Ok(()),
    }
}

/// Refuses clauses that calls of functions of this kind do not have.
pub fn check_clauses(function: &Function, kind: Option<FunctionKind>) -> Result<()> {
    let Function { name, args, filter, null_treatment, over, within_group, .. } = function;
    let at = || name.span();
    let folded = name.to_string().to_lowercase();
    let clauses = Clauses::of(args);
    let nulls = null_treatment.is_some() || clauses.nulls;
    let distinct = clauses.distinct;
    let ignored_nulls = nulls && !NULL_TREATING.contains(&folded.as_str());
    let in_call = |clause: &str| format!("{clause} in a call of {folded}()");
    let unused: &[(&dyn Clause, &str)] = match (kind, over) {
        (Some(FunctionKind::Scalar), _) => &[
            (&distinct, "DISTINCT"),
            (filter, "FILTER"),
            (over, "OVER"),
            (within_group, "WITHIN GROUP"),
            (&clauses.order, "ORDER BY"),
            (&nulls, "IGNORE NULLS or RESPECT NULLS"),
        ],
        (Some(FunctionKind::Window), Some(_)) => &[
            (&distinct, "DISTINCT"),
            (filter, "FILTER"),
            (&ignored_nulls, "IGNORE NULLS or RESPECT NULLS"),
        ],
        (Some(FunctionKind::Aggregate), Some(_)) => &[(&nulls, "IGNORE NULLS or RESPECT NULLS")],
        (Some(FunctionKind::Window | FunctionKind::Aggregate), None) | (None, _) => &[],
    };
    if let Some((_, clause)) = unused.iter().find(|(clause, _)| clause.is_there()) {
        refuse(in_call(clause), at)?;
    }
    Ok(())
}

/// Refuses everything but a name and arguments in the call of a function that returns a relation.
pub(super) fn check_bare(function: &Function) -> Result<()> {
    let Function {
        name,
        uses_odbc_syntax: _,
        parameters: _,
        args,
        filter,
        null_treatment,
        over,
        within_group,
    } = function;
    let at = || name.span();
    let refused: &[(&dyn Clause, &str)] = &[
        (filter, "FILTER of a relation"),
        (null_treatment, "IGNORE NULLS of a relation"),
        (over, "OVER behind a relation"),
        (within_group, "WITHIN GROUP of a relation"),
    ];
    none_of(refused, at)?;
    match args {
        FunctionArguments::None | FunctionArguments::Subquery(_) => Ok(()),
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args: _, clauses }) => {
            let refused: &[(&dyn Clause, &str)] = &[
                (duplicate_treatment, "DISTINCT among the arguments of a relation"),
                (clauses, "a clause among the arguments of a relation"),
            ];
            none_of(refused, at)
        }
    }
}

/// Which of the clauses between the brackets of a call are there.
struct Clauses {
    distinct: bool,
    order: bool,
    nulls: bool,
}

impl Clauses {
    fn of(arguments: &FunctionArguments) -> Self {
        let mut found = Self { distinct: false, order: false, nulls: false };
        let FunctionArguments::List(list) = arguments else { return found };
        found.distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
        for clause in &list.clauses {
            found.order |= matches!(clause, FunctionArgumentClause::OrderBy(_));
            found.nulls |= matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_));
        }
        found
    }
}

fn check_arguments(name: &sqlparser::ast::ObjectName, list: &FunctionArgumentList) -> Result<()> {
    let FunctionArgumentList { duplicate_treatment: _, args, clauses } = list;
    let at = || name.span();
    for argument in args {
        let (FunctionArg::Named { name: _, arg, operator: _ }
        | FunctionArg::ExprNamed { name: _, arg, operator: _ }
        | FunctionArg::Unnamed(arg)) = argument;
        match arg {
            FunctionArgExpr::Expr(_) => {}
            FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::Wildcard => {
                if !name.to_string().eq_ignore_ascii_case("count") {
                    refuse(format_args!("{name}(*)"), at)?;
                }
            }
            FunctionArgExpr::WildcardWithOptions(_) => {
                refuse("a choice of columns behind *, in a call", at)?;
            }
        }
    }
    for clause in clauses {
        match clause {
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => {}
            FunctionArgumentClause::OrderBy(order) => check_order(order)?,
            FunctionArgumentClause::Limit(_) => refuse("LIMIT in a call", at)?,
            FunctionArgumentClause::OnOverflow(_) => refuse("ON OVERFLOW", at)?,
            FunctionArgumentClause::Having(_) => refuse("HAVING in a call", at)?,
            FunctionArgumentClause::Separator(_) => refuse("SEPARATOR", at)?,
            FunctionArgumentClause::JsonNullClause(_) => refuse("NULL ON NULL", at)?,
            FunctionArgumentClause::JsonReturningClause(_) => refuse("RETURNING in a call", at)?,
        }
    }
    Ok(())
}

pub(super) fn check_window(window: &WindowSpec) -> Result<()> {
    let WindowSpec { window_name, partition_by: _, order_by, window_frame } = window;
    if let Some(name) = window_name {
        refuse("a window that is based on another one", || name.span)?;
    }
    check_order(order_by)?;
    if let Some(WindowFrame { units: _, start_bound, end_bound }) = window_frame {
        for bound in [Some(start_bound), end_bound.as_ref()].into_iter().flatten() {
            match bound {
                WindowFrameBound::CurrentRow
                | WindowFrameBound::Preceding(_)
                | WindowFrameBound::Following(_) => {}
            }
        }
    }
    Ok(())
}

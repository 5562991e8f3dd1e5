//! Shrinking a program that goes wrong.
//!
//! Candidates with fewer steps, fewer rows or simpler queries are tried in turn. A candidate need not be valid: if
//! it is refused, or goes wrong in another way, it is rejected.

use super::run::{Judges, run};
use super::{Program, Step, Write};
use crate::query::{
    Aggregate, Body, Distinct, Expr, From, Group, JoinKind, Query, Recursion, Select, Window,
};

/// A description of the error that does not depend on rows.
fn signature(what: &str) -> Vec<String> {
    let against = what.lines().filter(|line| line.starts_with("against"));
    let against: Vec<String> =
        against.filter_map(|line| line.split(": ").next().map(str::to_owned)).collect();
    match against.is_empty() {
        true => vec![what.split(['[', '(', '{', ':']).next().unwrap_or_default().to_owned()],
        false => against,
    }
}

/// The smallest program found that goes wrong in the same way.
pub(crate) fn shrink(program: &Program, judges: Judges) -> Program {
    let Some((step, _, what)) = run(program, judges).wrong() else {
        return program.clone();
    };
    let wanted = signature(&what);
    let fails = |program: &Program| {
        let wrong = run(program, judges).wrong();
        wrong.is_some_and(|(.., what)| signature(&what).iter().any(|part| wanted.contains(part)))
    };
    let mut best = program.clone();
    let take = |best: &mut Program, candidate: Program| {
        let taken = candidate != *best && fails(&candidate);
        if taken {
            *best = candidate;
        }
        taken
    };
    let mut cut = best.clone();
    cut.steps.truncate(step + 1);
    take(&mut best, cut);
    let mut alone = best.clone();
    alone.workers = 1;
    take(&mut best, alone);
    let mut bare = best.clone();
    bare.indexes.clear();
    take(&mut best, bare);
    loop {
        let before = best.clone();
        steps(&mut best, &take);
        rows(&mut best, &take);
        queries(&mut best, &take);
        if best == before {
            return best;
        }
    }
}

fn steps(best: &mut Program, take: &impl Fn(&mut Program, Program) -> bool) {
    let mut length = (best.steps.len() / 2).max(1);
    loop {
        let mut start = 0;
        while start < best.steps.len() {
            let mut candidate = best.clone();
            let end = (start + length).min(candidate.steps.len());
            candidate.steps.drain(start..end);
            if !take(best, candidate) {
                start += length;
            }
        }
        if length == 1 {
            break;
        }
        length /= 2;
    }
    // BEGIN and COMMIT are removed together.
    let mut start = 0;
    while start < best.steps.len() {
        if best.steps[start] == Step::Begin {
            let end = best.steps[start..].iter().position(|step| *step == Step::Commit);
            if let Some(end) = end {
                let mut candidate = best.clone();
                candidate.steps.remove(start + end);
                candidate.steps.remove(start);
                take(best, candidate);
            }
        }
        start += 1;
    }
}

fn rows(best: &mut Program, take: &impl Fn(&mut Program, Program) -> bool) {
    for step in 0..best.steps.len() {
        let mut row = 0;
        while let Step::Write(Write::Insert(_, rows)) = &best.steps[step]
            && row < rows.len()
            && rows.len() > 1
        {
            let mut candidate = best.clone();
            if let Step::Write(Write::Insert(_, rows)) = &mut candidate.steps[step] {
                rows.remove(row);
            }
            if !take(best, candidate) {
                row += 1;
            }
        }
    }
}

fn queries(best: &mut Program, take: &impl Fn(&mut Program, Program) -> bool) {
    for view in 0..best.views.len() {
        let is_made = best.steps.contains(&Step::Create(view));
        let mut again = is_made;
        while again {
            again = simpler_queries(&best.views[view].query).into_iter().any(|query| {
                let mut candidate = best.clone();
                candidate.views[view].query = query;
                take(best, candidate)
            });
        }
    }
}

fn simpler_queries(query: &Query) -> Vec<Query> {
    let mut found = Vec::new();
    let mut put = |change: &dyn Fn(&mut Query)| {
        let mut changed = query.clone();
        change(&mut changed);
        found.push(changed);
    };
    if query.top.is_some() {
        put(&|query| query.top = None);
    }
    match &query.body {
        Body::Set(operation, all, left, right) => {
            found.push((**left).clone());
            found.push((**right).clone());
            let with = |left: Query, right: Query| Query {
                body: Body::Set(*operation, *all, Box::new(left), Box::new(right)),
                ..query.clone()
            };
            for simpler in simpler_queries(left) {
                found.push(with(simpler, (**right).clone()));
            }
            for simpler in simpler_queries(right) {
                found.push(with((**left).clone(), simpler));
            }
        }
        Body::Select(select) => {
            if let Some(From::Derived(inner, _)) = &select.from {
                found.push((**inner).clone());
            }
            for simpler in simpler_selects(select) {
                found.push(Query { body: Body::Select(Box::new(simpler)), ..query.clone() });
            }
        }
    }
    found
}

fn simpler_selects(select: &Select) -> Vec<Select> {
    let mut found = Vec::new();
    let mut put = |change: &dyn Fn(&mut Select)| {
        let mut changed = select.clone();
        change(&mut changed);
        found.push(changed);
    };
    if let Some(from) = &select.from {
        for simpler in simpler_froms(from) {
            put(&|select| select.from = Some(simpler.clone()));
        }
    }
    if select.distinct != Distinct::All {
        put(&|select| select.distinct = Distinct::All);
    }
    if select.items.len() > 1 {
        for place in 0..select.items.len() {
            put(&|select| drop(select.items.remove(place)));
        }
    }
    for condition in 0..3 {
        let part = |select: &Select| match condition {
            0 => select.filter.clone(),
            1 => select.having.clone(),
            _ => select.qualify.clone(),
        };
        let set = |select: &mut Select, expr: Option<Expr>| match condition {
            0 => select.filter = expr,
            1 => select.having = expr,
            _ => select.qualify = expr,
        };
        if let Some(expr) = part(select) {
            put(&|select| set(select, None));
            for simpler in simpler_exprs(&expr) {
                put(&|select| set(select, Some(simpler.clone())));
            }
        }
    }
    if let Group::Keys(keys) | Group::Sets(keys, _) = &select.group {
        put(&|select| select.group = Group::None);
        put(&|select| select.group = Group::Keys(keys.clone()));
        for place in 0..keys.len() {
            if let Group::Keys(_) = select.group {
                let mut fewer = keys.clone();
                fewer.remove(place);
                put(&|select| {
                    select.group =
                        if fewer.is_empty() { Group::None } else { Group::Keys(fewer.clone()) };
                });
            }
        }
    }
    for place in 0..select.items.len() {
        for simpler in simpler_exprs(&select.items[place].expr) {
            put(&|select| select.items[place].expr = simpler.clone());
        }
    }
    found
}

fn simpler_froms(from: &From) -> Vec<From> {
    let mut found = Vec::new();
    match from {
        From::Derived(query, alias) => {
            for simpler in simpler_queries(query) {
                found.push(From::Derived(Box::new(simpler), alias.clone()));
            }
        }
        From::Recursive(recursion, alias) => {
            found.push(From::Derived(Box::new(recursion.base.clone()), alias.clone()));
            for base in simpler_queries(&recursion.base) {
                let simpler = Recursion { base, ..(**recursion).clone() };
                found.push(From::Recursive(Box::new(simpler), alias.clone()));
            }
            for step in simpler_queries(&recursion.step) {
                let simpler = Recursion { step, ..(**recursion).clone() };
                found.push(From::Recursive(Box::new(simpler), alias.clone()));
            }
        }
        From::Lateral(left, query, alias, keeps_left) => {
            for simpler in simpler_queries(query) {
                let query = Box::new(simpler);
                found.push(From::Lateral(left.clone(), query, alias.clone(), *keeps_left));
            }
        }
        From::Join(join) => {
            found.push(join.left.clone());
            found.push(join.right.clone());
            let mut put = |change: &dyn Fn(&mut crate::query::Join)| {
                let mut changed = (**join).clone();
                change(&mut changed);
                found.push(From::Join(Box::new(changed)));
            };
            if !matches!(join.kind, JoinKind::Inner | JoinKind::Cross) {
                put(&|join| join.kind = JoinKind::Inner);
            }
            if join.kind == JoinKind::Full {
                put(&|join| join.kind = JoinKind::Left);
                put(&|join| join.kind = JoinKind::Right);
            }
            if !join.using.is_empty() {
                put(&|join| join.using.clear());
            }
            for simpler in join.on.iter().flat_map(simpler_exprs) {
                put(&|join| join.on = Some(simpler.clone()));
            }
            for simpler in simpler_froms(&join.left) {
                put(&|join| join.left = simpler.clone());
            }
            for simpler in simpler_froms(&join.right) {
                put(&|join| join.right = simpler.clone());
            }
        }
        _ => {}
    }
    found
}

/// The parts of an expression, and the expression with one part simplified.
fn simpler_exprs(expr: &Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    let boxed = |expr: &Expr| Box::new(expr.clone());
    match expr {
        Expr::Binary(left, op, right) => {
            found.extend([(**left).clone(), (**right).clone()]);
            let inner = simpler_exprs(left).into_iter();
            found.extend(inner.map(|simpler| Expr::binary(simpler, *op, (**right).clone())));
            let inner = simpler_exprs(right).into_iter();
            found.extend(inner.map(|simpler| Expr::binary((**left).clone(), *op, simpler)));
        }
        Expr::Not(inner) | Expr::Minus(inner) | Expr::IsTrue(inner, _) | Expr::Shift(inner, _) => {
            found.push((**inner).clone());
        }
        Expr::Cast(inner, kind, try_it) => {
            found.push((**inner).clone());
            let inner = simpler_exprs(inner).into_iter();
            found.extend(inner.map(|simpler| Expr::Cast(Box::new(simpler), *kind, *try_it)));
        }
        Expr::Move(inner, _) | Expr::Days(inner, _) | Expr::AtZone(inner, _) => {
            found.push((**inner).clone());
            let with = |simpler| match expr {
                Expr::Move(_, length) => Expr::Move(Box::new(simpler), *length),
                Expr::Days(_, days) => Expr::Days(Box::new(simpler), *days),
                Expr::AtZone(_, zone) => Expr::AtZone(Box::new(simpler), *zone),
                _ => simpler,
            };
            found.extend(simpler_exprs(inner).into_iter().map(with));
        }
        Expr::Rows(left, op, right) if left.len() > 1 => {
            for place in 0..left.len() {
                let (mut left, mut right) = (left.clone(), right.clone());
                left.remove(place);
                right.remove(place);
                found.push(match (&left[..], &right[..]) {
                    ([left], [right]) => Expr::binary(left.clone(), *op, right.clone()),
                    _ => Expr::Rows(left, *op, right),
                });
            }
        }
        Expr::RowAmong(row, query, negated) => {
            let inner = simpler_queries(query).into_iter();
            let inner = inner.filter(|query| query.columns().len() == row.len());
            found.extend(
                inner.map(|simpler| Expr::RowAmong(row.clone(), Box::new(simpler), *negated)),
            );
        }
        Expr::Call(_, arguments) => found.extend(arguments.iter().cloned()),
        Expr::Case(_, branches, otherwise) => {
            found.extend(branches.iter().map(|(_, value)| value.clone()));
            found.extend(otherwise.iter().map(|value| (**value).clone()));
        }
        Expr::Aggregate(aggregate) => {
            let simpler = simpler_aggregates(aggregate).into_iter();
            found.extend(simpler.map(|simpler| Expr::Aggregate(Box::new(simpler))));
        }
        Expr::Window(window) => {
            let simpler = simpler_windows(window).into_iter();
            found.extend(simpler.map(|simpler| Expr::Window(Box::new(simpler))));
        }
        Expr::Exists(query, negated) => {
            let inner = simpler_queries(query).into_iter();
            found.extend(inner.map(|simpler| Expr::Exists(Box::new(simpler), *negated)));
        }
        Expr::Among(inner, query, negated) => {
            let simpler = simpler_queries(query).into_iter();
            found.extend(
                simpler.map(|simpler| Expr::Among(boxed(inner), Box::new(simpler), *negated)),
            );
        }
        Expr::Scalar(query, kind) => {
            let inner = simpler_queries(query).into_iter();
            found.extend(inner.map(|simpler| Expr::Scalar(Box::new(simpler), *kind)));
        }
        _ => {}
    }
    found
}

/// An aggregate with one of its parts removed or made simpler.
fn simpler_aggregates(aggregate: &Aggregate) -> Vec<Aggregate> {
    let mut found = Vec::new();
    let mut put = |change: &dyn Fn(&mut Aggregate)| {
        let mut changed = aggregate.clone();
        change(&mut changed);
        found.push(changed);
    };
    if aggregate.filter.is_some() {
        put(&|aggregate| aggregate.filter = None);
    }
    if aggregate.distinct {
        put(&|aggregate| aggregate.distinct = false);
    }
    for simpler in aggregate.filter.iter().flat_map(simpler_exprs) {
        put(&|aggregate| aggregate.filter = Some(simpler.clone()));
    }
    for (place, argument) in aggregate.arguments.iter().enumerate() {
        for simpler in simpler_exprs(argument) {
            put(&|aggregate| aggregate.arguments[place] = simpler.clone());
        }
    }
    found
}

/// A window with one of its parts removed or made simpler.
fn simpler_windows(window: &Window) -> Vec<Window> {
    let mut found = Vec::new();
    let mut put = |change: &dyn Fn(&mut Window)| {
        let mut changed = window.clone();
        change(&mut changed);
        found.push(changed);
    };
    if !window.partition.is_empty() {
        put(&|window| window.partition.clear());
    }
    for place in 0..window.order.len() {
        put(&|window| drop(window.order.remove(place)));
    }
    if window.frame.is_some() {
        put(&|window| window.frame = None);
    }
    if window.filter.is_some() {
        put(&|window| window.filter = None);
    }
    found
}

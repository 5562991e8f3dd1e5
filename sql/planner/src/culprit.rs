//! Where the error of a statement is that does not say it.
//!
//! DataFusion plans most expressions without their places in the text. So what cannot be planned is planned again without one
//! expression after the other, NULL in its place: if that error does not come, it is about this expression, or one in it. Columns
//! and constants inside of others are right by themselves, so it is about what is made of them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sqlparser::ast::{Expr, Query, Value, Visit, VisitMut, Visitor, VisitorMut};

use alluvium_sql_syntax::error::{Error, Position};

/// The most expressions of a statement that is searched.
const LARGEST: usize = 2_000;

/// How many expressions beside each other are tried one by one, and not half of them at a time.
const FEW: usize = 16;

/// After how long a search gives up: planning a statement may take long itself.
const LONGEST: Duration = Duration::from_millis(500);

/// The error with the place of the expression that it is about, if it has none and planning says which one that is.
pub(crate) fn located<P: Visit + VisitMut + Clone, T>(
    error: Error,
    part: &P,
    plan: &dyn Fn(&P) -> Result<T, Error>,
) -> Error {
    if error.position.is_some() {
        return error;
    }
    let culprit =
        culprit(part, &error.message, &|part| plan(part).err().map(|error| error.message));
    error.at(culprit)
}

/// The place of the expression that planning fails for with this message.
pub(crate) fn culprit<P: Visit + VisitMut + Clone>(
    part: &P,
    message: &str,
    failure: &dyn Fn(&P) -> Option<String>,
) -> Option<Position> {
    let mut outline = Outline::default();
    let _ = Visit::visit(part, &mut outline);
    let expressions = outline.finished();
    if expressions.len() > LARGEST {
        return None;
    }
    let without = |left_out: &BTreeSet<usize>| {
        let mut part = part.clone();
        let _ = VisitMut::visit(
            &mut part,
            &mut LeaveOut { expressions: &expressions, left_out, next: 0 },
        );
        failure(&part)
    };
    let search = Search { message, without: &without, began: Instant::now() };
    // The statement is right, and an error came while it ran.
    if without(&BTreeSet::new()).is_none_or(|other| other != message) {
        return None;
    }
    let mut beside: Vec<usize> = (0..expressions.len()).collect();
    beside.retain(|number| expressions[*number].depth == 0);
    let mut position = None;
    while let Some(found) = search.find(&beside) {
        position = expressions[found].position.or(position);
        let inside = found + 1..found + expressions[found].size;
        let is_part = |number: &usize| {
            let Expression { depth, is_operand, .. } = expressions[*number];
            depth == expressions[found].depth + 1 && !is_operand
        };
        beside = inside.filter(is_part).collect();
    }
    position
}

/// An expression of a statement.
struct Expression {
    position: Option<Position>,
    /// The number of expressions around it.
    depth: usize,
    /// The number of expressions in it, with itself.
    size: usize,
    /// Whether it is a column or a constant in another expression.
    is_operand: bool,
}

/// The expressions of a statement, each before those in it.
#[derive(Default)]
struct Outline {
    expressions: Vec<Expression>,
    /// The enclosing expressions.
    open: Vec<usize>,
    /// For each expression and query around whether it is a query: what a query has on its own is no operand.
    queries: Vec<bool>,
}

impl Outline {
    /// The expressions. Those without a place of their own are where the first in them is.
    fn finished(mut self) -> Vec<Expression> {
        for number in (0..self.expressions.len()).rev() {
            if self.expressions[number].position.is_none() {
                let inside = &self.expressions[number..number + self.expressions[number].size];
                self.expressions[number].position = inside.iter().find_map(|part| part.position);
            }
        }
        self.expressions
    }
}

impl Visitor for Outline {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries.push(true);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let is_plain = matches!(
            expression,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Wildcard(_)
        );
        let is_inside = self.queries.last() == Some(&false);
        self.expressions.push(Expression {
            position: Position::of(expression),
            depth: self.open.len(),
            size: 1,
            is_operand: is_plain && is_inside,
        });
        self.open.push(self.expressions.len() - 1);
        self.queries.push(false);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.queries.pop();
        if let Some(closed) = self.open.pop() {
            self.expressions[closed].size = self.expressions.len() - closed;
        }
        ControlFlow::Continue(())
    }
}

/// Puts NULL in the place of some expressions.
struct LeaveOut<'a> {
    expressions: &'a [Expression],
    left_out: &'a BTreeSet<usize>,
    /// The number of the next expression.
    next: usize,
}

impl VisitorMut for LeaveOut<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let number = self.next;
        self.next += 1;
        if self.left_out.contains(&number) {
            *expression = Expr::value(Value::Null);
            self.next = number + self.expressions.get(number).map_or(1, |found| found.size);
        }
        ControlFlow::Continue(())
    }
}

struct Search<'a> {
    message: &'a str,
    /// Why the statement cannot be planned without these expressions, if it cannot.
    without: &'a dyn Fn(&BTreeSet<usize>) -> Option<String>,
    began: Instant,
}

impl Search<'_> {
    /// The expression among these without which the error does not come; rather one without which there is none at all.
    fn find(&self, beside: &[usize]) -> Option<usize> {
        if beside.len() > FEW {
            let (first, second) = beside.split_at(beside.len() / 2);
            let is_gone = self.without(first).is_none_or(|other| other != self.message);
            return self.find(if is_gone { first } else { second });
        }
        let mut other_error = None;
        for &number in beside {
            if self.began.elapsed() > LONGEST {
                break;
            }
            match self.without(&[number]) {
                None => return Some(number),
                Some(other) if other != self.message => {
                    other_error = other_error.or(Some(number));
                }
                Some(_) => {}
            }
        }
        other_error
    }

    fn without(&self, expressions: &[usize]) -> Option<String> {
        (self.without)(&expressions.iter().copied().collect())
    }
}

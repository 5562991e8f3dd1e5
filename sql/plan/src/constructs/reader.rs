//! The constructs of one text.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use alluvium_sql_syntax::error::{Error, Position};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::syntax::AsofJoin;
use sqlparser::ast::{
    self, BinaryOperator, Expr, GroupByExpr, JoinConstraint, JoinOperator, Query, Select, SetExpr,
    Spanned, TableFactor, Visitor, WindowType,
};
use sqlparser::tokenizer::Span;

use super::names::{aggregate, column_name, key_name, parts};
use super::{Clause, Constructs, Spot};

/// Reads the constructs of one text.
#[derive(Default)]
pub(super) struct Reader {
    /// The view, if it is not the one that is explained.
    view: Option<String>,
    found: Constructs,
    /// The names under which relations are used.
    aliases: Vec<(String, String)>,
    /// References to columns: the qualifier, the name.
    references: Vec<(Option<String>, String, Spot)>,
    /// The spans of the expressions.
    spans: Vec<Span>,
}

impl Reader {
    /// A reader of the text of a view, with its name if it is not the one that is explained.
    pub(super) fn of(view: Option<String>) -> Self {
        Self { view, ..Self::default() }
    }

    fn spot(&self, span: Span) -> Option<Spot> {
        Some(Spot { view: self.view.clone(), position: Position::of_span(span)? })
    }

    fn clause(&mut self, clause: Clause, span: Span) {
        let spot = self.spot(span);
        self.found.clauses.extend(spot.map(|spot| (clause, spot)));
    }

    /// The constructs, with the relations of the columns.
    pub(super) fn finish(mut self) -> Constructs {
        let all: BTreeSet<String> = self.aliases.iter().map(|(_, name)| name.clone()).collect();
        for (qualifier, name, spot) in self.references {
            let relations = match qualifier {
                None => all.clone(),
                Some(qualifier) => {
                    let of_alias = self.aliases.iter().filter(|(alias, _)| *alias == qualifier);
                    of_alias.map(|(_, name)| name.clone()).collect()
                }
            };
            self.found.columns.push((relations, name, spot));
        }
        self.found
    }

    fn relation(&mut self, name: &ast::ObjectName, alias: Option<&ast::TableAlias>) {
        let folded = name::of_object(name).unwrap_or_default();
        let spot = self.spot(name.span());
        self.found.relations.extend(spot.map(|spot| (folded.clone(), spot)));
        let alias = alias.map_or_else(|| folded.clone(), |alias| fold(&alias.name));
        self.aliases.push((alias, folded));
    }

    fn join(&mut self, join: &ast::Join) {
        let constraint = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint) => Some(constraint),
            operator => AsofJoin::of(operator).map(|join| join.constraint),
        };
        let span = match constraint {
            Some(JoinConstraint::On(on)) => on.span(),
            _ => join.relation.span(),
        };
        if let Some(JoinConstraint::Using(columns)) = constraint {
            for column in columns {
                let name = column.0.last().and_then(|part| part.as_ident()).map(fold);
                let found = name.zip(self.spot(column.span()));
                let found = found.map(|(name, spot)| (name.clone(), name, spot));
                self.found.equalities.extend(found);
            }
        }
        let spot = self.spot(span);
        self.found.joins.extend(spot);
    }

    fn grouping(&mut self, select: &Select) {
        let expressions = match &select.group_by {
            GroupByExpr::Expressions(expressions, _) => &expressions[..],
            GroupByExpr::All(_) => &[],
        };
        let Some(first) = expressions.first() else {
            if let Some(span) = select.projection.iter().find_map(aggregate) {
                self.clause(Clause::Group(Vec::new()), span);
            }
            return;
        };
        let names = expressions.iter().map(|key| key_name(key, &select.projection)).collect();
        match select.projection.iter().any(|item| aggregate(item).is_some()) {
            true => self.clause(Clause::Group(names), first.span()),
            // It is as good as DISTINCT, unless HAVING or ORDER BY aggregates.
            false => {
                self.clause(Clause::Group(names), first.span());
                self.clause(Clause::Distinct, first.span());
            }
        }
    }

    fn equality(&mut self, left: &Expr, right: &Expr, span: Span) {
        let names = column_name(left).zip(column_name(right));
        let found = names.zip(self.spot(span));
        let found = found.map(|((left, right), spot)| (left, right, spot));
        self.found.equalities.extend(found);
    }

    /// An expression that computes something. Of several around the same parts the outermost counts.
    fn expression(&mut self, expression: &Expr) {
        let Some(parts) = parts(expression) else { return };
        let span = expression.span();
        let is_inner =
            self.found.expressions.iter().zip(&self.spans).any(|((other, _), around)| {
                *other == parts && around.start <= span.start && span.end <= around.end
            });
        if let Some(spot) = self.spot(span)
            && !is_inner
        {
            self.found.expressions.push((parts, spot));
            self.spans.push(span);
        }
    }
}

impl Visitor for Reader {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let mut bodies = vec![query.body.as_ref()];
        while let Some(body) = bodies.pop() {
            let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
            bodies.extend([left.as_ref(), right.as_ref()]);
            let is_all = matches!(set_quantifier, ast::SetQuantifier::All);
            let clause = match (op, is_all) {
                (ast::SetOperator::Union, true) => continue,
                (ast::SetOperator::Union, false) => Clause::Distinct,
                (ast::SetOperator::Intersect, true) => Clause::Set("INTERSECT ALL"),
                (ast::SetOperator::Intersect, false) => Clause::Set("INTERSECT"),
                (_, true) => Clause::Set("EXCEPT ALL"),
                (_, false) => Clause::Set("EXCEPT"),
            };
            self.clause(clause, right.span());
        }
        if let Some(limit) = &query.limit_clause {
            self.clause(Clause::Partition(Vec::new()), limit.span());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        match &select.distinct {
            Some(ast::Distinct::Distinct) => self.clause(Clause::Distinct, select.span()),
            Some(ast::Distinct::On(keys)) if !keys.is_empty() => {
                let names = keys.iter().map(|key| key_name(key, &select.projection)).collect();
                self.clause(Clause::Partition(names), keys[0].span());
            }
            _ => {}
        }
        self.grouping(select);
        for (number, from) in select.from.iter().enumerate() {
            from.joins.iter().for_each(|join| self.join(join));
            if number > 0 {
                let spot = self.spot(from.relation.span());
                self.found.joins.extend(spot);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                self.relation(name, alias.as_ref());
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                table_with_joins.joins.iter().for_each(|join| self.join(join));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        let span = expression.span();
        match expression {
            Expr::Identifier(name) => {
                let spot = self.spot(span);
                self.references.extend(spot.map(|spot| (None, fold(name), spot)));
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., qualifier, name] = &parts[..] {
                    let spot = self.spot(span);
                    let found = spot.map(|spot| (Some(fold(qualifier)), fold(name), spot));
                    self.references.extend(found);
                }
            }
            // TABLE bid, an argument of TUMBLE, HOP and SESSION.
            Expr::Prefixed { value, .. } => {
                if let Expr::CompoundIdentifier(parts) = value.as_ref() {
                    let name = ast::ObjectName::from(parts.clone());
                    self.relation(&name, None);
                }
            }
            Expr::InSubquery { expr, .. } => {
                let spot = self.spot(expr.span());
                self.found.joins.extend(spot);
            }
            Expr::Exists { subquery, .. } => {
                let spot = self.spot(subquery.span());
                self.found.joins.extend(spot);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                self.equality(left, right, span);
            }
            Expr::Function(function) => {
                if let Some(WindowType::WindowSpec(over)) = &function.over {
                    let names = over.partition_by.iter().map(|key| key_name(key, &[])).collect();
                    let first = over.partition_by.first().map(Spanned::span);
                    self.clause(Clause::Partition(names), first.unwrap_or(function.name.span()));
                }
            }
            _ => {}
        }
        self.expression(expression);
        ControlFlow::Continue(())
    }
}

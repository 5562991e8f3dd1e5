//! Queries: WITH, SELECT, set operations and LIMIT.

use super::{Dialect, Text};
use crate::query::expression::{Expr, Order};
use crate::query::select::{
    Body, Distinct, From, Group, JoinKind, Query, Select, SetOperation, Sets, Top,
};

impl Text {
    pub(super) fn query(&mut self, query: &Query) {
        if !query.with.is_empty() {
            self.push("WITH ");
            self.list(&query.with, |text, (name, inner)| {
                text.push(&format!("{name} AS ("));
                text.query(inner);
                text.push(")");
            });
            self.push(" ");
        }
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Set(operation, all, left, right) => {
                if *all && *operation != SetOperation::Union {
                    // DataFusion plans a join, which ignores how often a row occurs.
                    self.only(&[Dialect::DuckDb]);
                }
                self.operand(left);
                let word = match operation {
                    SetOperation::Union => " UNION ",
                    SetOperation::Intersect => " INTERSECT ",
                    SetOperation::Except => " EXCEPT ",
                };
                self.push(word);
                self.push(if *all { "ALL " } else { "" });
                self.operand(right);
            }
        }
        if let Some(top) = &query.top {
            self.top(query, top);
        }
    }

    fn top(&mut self, query: &Query, top: &Top) {
        match &query.body {
            Body::Select(select) if matches!(select.group, Group::Sets(..)) => {
                // DataFusion infers from a condition that a key is constant, also in grouping sets without the key.
                self.only(&[Dialect::DuckDb]);
            }
            Body::Select(select) if select.from.as_ref().is_some_and(has_outer_join) => {
                // DataFusion infers from ON that a column is constant, also in rows without a match.
                self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            Body::Set(..) => {
                // DataFusion takes a column that is a constant in each input for one constant in all of them.
                self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            Body::Select(_) => {}
        }
        let columns = query.columns();
        if !top.order.is_empty() {
            self.push(" ORDER BY ");
            self.list(&top.order, |text, (column, descending, nulls_first)| {
                text.push(&columns[*column].0);
                text.direction(*descending, *nulls_first);
            });
        }
        if top.with_ties {
            // Others have no such clause.
            self.only(&[]);
            return self.push(&format!(" FETCH FIRST {} ROWS WITH TIES", top.limit));
        }
        self.push(&format!(" LIMIT {}", top.limit));
        if top.offset > 0 {
            self.push(&format!(" OFFSET {}", top.offset));
        }
    }

    fn operand(&mut self, query: &Query) {
        let is_plain = query.with.is_empty()
            && query.top.is_none()
            && matches!(&query.body, Body::Select(select) if !matches!(select.distinct, Distinct::On(..)));
        if is_plain {
            return self.query(query);
        }
        self.push("SELECT * FROM (");
        self.query(query);
        self.push(") AS operand");
    }

    fn direction(&mut self, descending: bool, nulls_first: bool) {
        self.push(if descending { " DESC" } else { "" });
        // By default, NULLs are last, and first if descending.
        if self.dialect != Dialect::Alluvium || nulls_first != descending {
            self.push(if nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }

    pub(super) fn orders(&mut self, orders: &[Order]) {
        self.list(orders, |text, order| {
            text.expr(&order.expr);
            text.direction(order.descending, order.nulls_first);
        });
    }

    fn select(&mut self, select: &Select) {
        self.push("SELECT ");
        match &select.distinct {
            Distinct::All => {}
            Distinct::Rows => self.push("DISTINCT "),
            Distinct::On(on, _) => {
                self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
                self.push("DISTINCT ON (");
                self.exprs(on);
                self.push(") ");
            }
        }
        self.list(&select.items, |text, item| {
            if matches!(item.expr, Expr::Exists(..) | Expr::Among(..) | Expr::RowAmong(..)) {
                // DataFusion supports these only in conditions.
                text.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            text.expr(&item.expr);
            text.push(&format!(" AS {}", item.name));
        });
        if let Some(from) = &select.from {
            self.push(" FROM ");
            self.from(from);
        }
        if let Some(filter) = &select.filter {
            if select.from.as_ref().is_some_and(has_row_without_input) {
                // DataFusion drops the condition if it is the same for all rows.
                self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            self.push(" WHERE ");
            self.expr(filter);
        }
        match &select.group {
            Group::None => {}
            Group::Keys(keys) => {
                self.push(" GROUP BY ");
                self.exprs(keys);
            }
            Group::Sets(keys, sets) => {
                if matches!(&select.from, Some(From::Derived(query, _)) if matches!(query.body, Body::Set(..)))
                {
                    // DataFusion emits a total per input if a key is the same constant in all of them.
                    self.only(&[Dialect::DuckDb]);
                }
                self.sets(keys, sets);
            }
        }
        if let Some(having) = &select.having {
            self.push(" HAVING ");
            self.expr(having);
        }
        if let Some(qualify) = &select.qualify {
            self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
            self.push(" QUALIFY ");
            self.expr(qualify);
        }
        if let Distinct::On(_, order) = &select.distinct {
            self.push(" ORDER BY ");
            self.orders(order);
        }
    }

    fn sets(&mut self, keys: &[Expr], sets: &Sets) {
        self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
        match sets {
            Sets::Rollup | Sets::Cube => {
                let word = if *sets == Sets::Rollup { "ROLLUP" } else { "CUBE" };
                self.push(&format!(" GROUP BY {word} ("));
                self.exprs(keys);
            }
            Sets::Listed(sets) => {
                self.push(" GROUP BY GROUPING SETS (");
                self.list(sets, |text, set| {
                    text.push("(");
                    text.list(set, |text, key| text.expr(&keys[*key]));
                    text.push(")");
                });
            }
        }
        self.push(")");
    }
}

/// Whether rows without a match are kept.
fn has_outer_join(from: &From) -> bool {
    let From::Join(join) = from else { return false };
    matches!(join.kind, JoinKind::Left | JoinKind::Right | JoinKind::Full | JoinKind::LeftAsof)
        || has_outer_join(&join.left)
        || has_outer_join(&join.right)
}

/// Whether FROM contains an aggregate that returns a row for empty input.
fn has_row_without_input(from: &From) -> bool {
    match from {
        From::Derived(query, _) => match &query.body {
            Body::Select(select) => match &select.group {
                Group::None
                    if select.items.iter().any(|item| matches!(item.expr, Expr::Aggregate(_))) =>
                {
                    true
                }
                Group::Sets(keys, sets) => sets.listed(keys.len()).iter().any(Vec::is_empty),
                Group::None => select.from.as_ref().is_some_and(has_row_without_input),
                Group::Keys(_) => false,
            },
            Body::Set(..) => false,
        },
        From::Join(join) => has_row_without_input(&join.left) || has_row_without_input(&join.right),
        From::Lateral(left, ..) => has_row_without_input(left),
        From::Recursive(..) | From::Relation(..) | From::Windowed(..) | From::Unnested(..) => false,
    }
}

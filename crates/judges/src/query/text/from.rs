//! The relations in FROM.

use super::expression::interval;
use super::{Dialect, Text};
use crate::query::expression::{Expr, Op};
use crate::query::pivot::{Pivot, Unpivot};
use crate::query::select::{From, Join, JoinKind, Recursion, Span};

impl Text {
    pub(super) fn from(&mut self, from: &From) {
        match from {
            From::Relation(name, alias) => self.push(&format!("{name} AS {alias}")),
            From::Derived(query, alias)
                if self.dialect == Dialect::Alluvium
                    && let Some(pivot) = Pivot::of(query) =>
            {
                self.pivot(&pivot);
                self.push(&format!(" AS {alias}"));
            }
            From::Derived(query, alias) if let Some(unpivot) = Unpivot::of(query) => {
                if self.dialect == Dialect::Alluvium {
                    self.unpivot(&unpivot);
                } else {
                    // DataFusion takes the names of the columns for one constant.
                    self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
                    self.push("(");
                    self.query(query);
                    self.push(")");
                }
                self.push(&format!(" AS {alias}"));
            }
            From::Derived(query, alias) => {
                self.push("(");
                self.query(query);
                self.push(&format!(") AS {alias}"));
            }
            From::Join(join) => self.join(join),
            From::Recursive(recursion, alias) => {
                let Recursion { name, all, base, step } = &**recursion;
                self.push(&format!("(WITH RECURSIVE {name} AS ("));
                self.query(base);
                self.push(if *all { " UNION ALL " } else { " UNION " });
                self.query(step);
                self.push(&format!(") SELECT * FROM {name}) AS {alias}"));
            }
            From::Lateral(left, query, alias, keeps_left) => {
                self.only(&[]);
                self.from(left);
                let kind = if *keeps_left { "LEFT JOIN" } else { "JOIN" };
                self.push(&format!(" {kind} LATERAL ("));
                self.query(query);
                self.push(&format!(") AS {alias} ON TRUE"));
            }
            From::Windowed(name, alias, time, span) => self.windowed(name, alias, time, span),
            From::Unnested(name, alias, list, element, place, true) => {
                self.only(&[]);
                self.push(&format!("{name} AS {alias} LEFT JOIN UNNEST("));
                self.expr(list);
                let place = place.as_ref().map(|place| format!(", {place}"));
                let ordinality = if place.is_some() { " WITH ORDINALITY" } else { "" };
                let place = place.unwrap_or_default();
                self.push(&format!("){ordinality} AS u ({element}{place}) ON TRUE"));
            }
            From::Unnested(name, alias, list, element, place, false) => {
                self.only(&[Dialect::DataFusion]);
                match (self.dialect, place) {
                    (Dialect::Alluvium, None) => {
                        self.push(&format!("{name} AS {alias}, UNNEST("));
                        self.expr(list);
                        self.push(&format!(") AS u ({element})"));
                    }
                    (Dialect::Alluvium, Some(place)) => {
                        self.push(&format!("{name} AS {alias}, UNNEST("));
                        self.expr(list);
                        self.push(&format!(") WITH ORDINALITY AS u ({element}, {place})"));
                    }
                    (_, None) => {
                        self.push(&format!("(SELECT {alias}.*, UNNEST("));
                        self.expr(list);
                        self.push(&format!(") AS {element} FROM {name} AS {alias}) AS {alias}"));
                    }
                    (_, Some(place)) => {
                        self.push(&format!("(SELECT {alias}.*, UNNEST("));
                        self.expr(list);
                        self.push(&format!(") AS {element}, UNNEST(range(1, CAST(cardinality("));
                        self.expr(list);
                        self.push(&format!(
                            ") AS BIGINT) + 1)) AS {place} FROM {name} AS {alias}) AS {alias}"
                        ));
                    }
                }
            }
        }
    }

    fn pivot(&mut self, pivot: &Pivot<'_>) {
        self.push("(");
        self.query(pivot.rows);
        self.push(&format!(") AS {} PIVOT (", pivot.alias));
        self.aggregate(&pivot.aggregate);
        self.push(" FOR ");
        self.expr(pivot.by);
        self.push(" IN (");
        self.list(&pivot.values, |text, (value, name)| {
            text.expr(value);
            text.push(&format!(" AS {name}"));
        });
        self.push("))");
    }

    fn unpivot(&mut self, unpivot: &Unpivot<'_>) {
        self.push("(");
        self.query(unpivot.rows);
        let Unpivot { alias, name, value, columns, .. } = unpivot;
        let columns = columns.join(", ");
        self.push(&format!(") AS {alias} UNPIVOT ({value} FOR {name} IN ({columns}))"));
    }

    fn join(&mut self, join: &Join) {
        if join.kind.is_filter() && self.dialect == Dialect::Sqlite {
            return self.exists(join);
        }
        if join.kind.is_filter() {
            self.only(&[Dialect::DataFusion]);
        }
        if join.kind.is_asof() {
            // Others choose among rows of one time as they like.
            self.only(&[]);
        }
        self.from(&join.left);
        self.push(&format!(" {} ", join.kind.sql()));
        // A join on the right needs parentheses.
        let is_tree = match &join.right {
            From::Join(inner) => !(inner.kind.is_filter() && self.dialect == Dialect::Sqlite),
            right => matches!(right, From::Unnested(..)),
        };
        self.push(if is_tree { "(" } else { "" });
        self.from(&join.right);
        self.push(if is_tree { ")" } else { "" });
        // In SQLite, columns merged by several USING clauses are ambiguous.
        if !join.using.is_empty() && self.dialect != Dialect::Sqlite {
            self.push(&format!(" USING ({})", join.using.join(", ")));
        } else if let (JoinKind::LeftAsof, Some(Expr::Binary(equalities, Op::And, time))) =
            (join.kind, &join.on)
        {
            self.push(" MATCH_CONDITION (");
            self.expr(time);
            self.push(") ON ");
            self.expr(equalities);
        } else if let Some(on) = &join.on {
            self.push(" ON ");
            self.expr(on);
        }
    }

    /// A semi or anti join of a relation as EXISTS, for SQLite, which has no such joins.
    fn exists(&mut self, join: &Join) {
        let (kept, other) = match join.kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => (&join.left, &join.right),
            _ => (&join.right, &join.left),
        };
        let (From::Relation(_, alias) | From::Derived(_, alias)) = kept else {
            return self.refuse();
        };
        let not = match join.kind {
            JoinKind::LeftAnti | JoinKind::RightAnti => "NOT ",
            _ => "",
        };
        self.push("(SELECT * FROM ");
        self.from(kept);
        self.push(&format!(" WHERE {not}EXISTS (SELECT 1 FROM "));
        self.from(other);
        self.push(" WHERE ");
        match &join.on {
            Some(on) => self.expr(on),
            None => self.push("TRUE"),
        }
        self.push(&format!(")) AS {alias}"));
    }

    fn windowed(&mut self, name: &str, alias: &str, time: &str, span: &Span) {
        self.only(&[Dialect::DataFusion]);
        if self.dialect == Dialect::Alluvium {
            let interval = |seconds: i64| format!("INTERVAL {seconds} SECOND");
            let text = match span {
                Span::Tumble(size, 0) => format!("TUMBLE({name}, {time}, {})", interval(*size)),
                Span::Tumble(size, offset) => format!(
                    "TABLE(TUMBLE(TABLE {name}, DESCRIPTOR({time}), {}, {}))",
                    interval(*size),
                    interval(*offset)
                ),
                Span::Hop(slide, size) => {
                    format!("HOP({name}, {time}, {}, {})", interval(*slide), interval(*size))
                }
                Span::Session(key, gap) => {
                    format!("SESSION({name}, {time}, {key}, {})", interval(*gap))
                }
            };
            return self.push(&format!("{text} AS {alias}"));
        }
        let (slide, size, offset) = match span {
            Span::Tumble(size, offset) => (*size, *size, *offset),
            Span::Hop(slide, size) if size % slide == 0 => (*slide, *size, 0),
            _ => return self.refuse(),
        };
        let moved = |seconds: i64| {
            let sign = if seconds < 0 { '-' } else { '+' };
            format!("{sign} {}", interval(seconds))
        };
        let start =
            format!("date_bin({}, w.{time} {}) {}", interval(slide), moved(-offset), moved(offset));
        let windows: Vec<String> =
            (0..size / slide).map(|place| format!("({})", interval(place * slide))).collect();
        self.push(&format!(
            "(SELECT w.*, {start} - b.length AS window_start, {start} - b.length {} AS window_end \
             FROM {name} AS w CROSS JOIN (VALUES {}) AS b(length) WHERE w.{time} IS NOT NULL) AS {alias}",
            moved(size),
            windows.join(", ")
        ));
    }
}

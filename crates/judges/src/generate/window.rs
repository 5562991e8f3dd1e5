//! Generating window functions, DISTINCT ON, and top-k queries.

use super::{Maker, Sight, named, sorts};
use crate::query::{
    Body, Bound, Distinct, Expr, Frame, From, Item, Kind, Op, Order, Query, Select, Top, Units,
    Window,
};

/// The window functions; repeated names are drawn more often.
const FUNCTIONS: [&str; 29] = [
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "ntile",
    "lag",
    "lead",
    "cume_dist",
    "percent_rank",
    "first_value",
    "last_value",
    "nth_value",
    "min",
    "max",
    "avg",
    "count",
    "first_value",
    "last_value",
    "nth_value",
    "sum",
    "sum",
    "count",
    "avg",
    "min",
    "max",
];

/// Whether the function can return different values for equal rows.
fn distinguishes_copies(window: &Window) -> bool {
    let rows = window.frame.is_some_and(|frame| frame.units == Units::Rows);
    rows || DISTINGUISHING.contains(&window.function)
}

/// Functions of which a query has at most one.
const DISTINGUISHING: [&str; 5] = ["row_number", "ntile", "lag", "lead", "nth_value"];

impl Maker {
    /// Window functions beside some columns, sometimes with QUALIFY.
    pub(super) fn windows(&mut self, from: From, sight: &Sight) -> Query {
        // The selected columns break ties of the order.
        let shown = self.shown(sight);
        // Two such functions may order equal rows in two different ways, so there is at most one.
        let mut distinguishes = false;
        let mut exprs = shown.clone();
        for place in 0..3 + self.below(2) {
            let function = match place == 0 && self.once_in(2) {
                true => self.one_of(&DISTINGUISHING),
                false => self.one_of(&FUNCTIONS),
            };
            let window = self.window(function, sight, &shown);
            if distinguishes_copies(&window) && std::mem::replace(&mut distinguishes, true) {
                continue;
            }
            exprs.push(Expr::Window(Box::new(window)));
        }
        let mut select = Select::of(named(exprs), from);
        if self.once_in(3) {
            select.filter = Some(self.condition(sight, 1));
        }
        if self.once_in(4) {
            let function = self.one_of(&FUNCTIONS);
            let window = self.window(function, sight, &shown);
            let may = !distinguishes || !distinguishes_copies(&window);
            if window.kind.is_whole() && may {
                let op = self.comparison();
                let number = Expr::whole(self.below(4) as i64);
                select.qualify = Some(Expr::binary(Expr::Window(Box::new(window)), op, number));
            }
        }
        Query::select(select)
    }

    /// Some columns of types that can be sorted.
    fn shown(&mut self, sight: &Sight) -> Vec<Expr> {
        // DataFusion does not support RANGE frames over bytes and times of day.
        let ranges = |kind| sorts(kind) && !matches!(kind, Kind::Bytes | Kind::Clock);
        let mut columns = Self::columns(sight, ranges);
        self.rng.shuffle(&mut columns);
        columns.truncate(4);
        if columns.is_empty() {
            columns.push(Expr::whole(1));
        }
        columns
    }

    /// An order by all of these columns, in random sequence and direction.
    fn total(&mut self, columns: &[Expr]) -> Vec<Order> {
        let mut columns = columns.to_vec();
        self.rng.shuffle(&mut columns);
        columns.into_iter().map(|expr| self.order(expr)).collect()
    }

    pub(super) fn order(&mut self, expr: Expr) -> Order {
        Order { expr, descending: self.once_in(3), nulls_first: self.once_in(3) }
    }

    fn window(&mut self, function: &'static str, sight: &Sight, shown: &[Expr]) -> Window {
        let of_shown = |maker: &mut Self, kind: fn(Kind) -> bool| {
            let fitting: Vec<Expr> =
                shown.iter().filter(|column| kind(column.kind())).cloned().collect();
            (!fitting.is_empty()).then(|| maker.one_of(&fitting))
        };
        let whole = of_shown(self, |kind| matches!(kind, Kind::Integer | Kind::Big));
        let any = of_shown(self, |_| true).unwrap_or_else(|| Expr::whole(1));
        let mut window = Window {
            function,
            arguments: Vec::new(),
            ignore_nulls: false,
            filter: None,
            partition: Vec::new(),
            order: Vec::new(),
            frame: None,
            kind: match function {
                "row_number" | "rank" | "dense_rank" | "ntile" => Kind::Unsigned,
                _ => Kind::Big,
            },
        };
        self.set_arguments(&mut window, whole, &any);
        if self.once_in(2) && !shown.is_empty() {
            window.partition = vec![self.one_of(shown)];
        }
        let numeric = match self.has_nan && self.once_in(2) {
            true => of_shown(self, Kind::is_float),
            false => of_shown(self, |kind| matches!(kind, Kind::Integer | Kind::Big)),
        };
        self.set_order_and_frame(&mut window, sight, shown, any, numeric);
        window
    }

    /// Draws the arguments of a window function, and sets its type.
    fn set_arguments(&mut self, window: &mut Window, whole: Option<Expr>, any: &Expr) {
        match window.function {
            "percent_rank" | "cume_dist" => window.kind = Kind::Real,
            "ntile" => window.arguments = vec![Expr::whole(1 + self.below(3) as i64)],
            "lag" | "lead" => {
                window.kind = any.kind();
                window.arguments = vec![any.clone()];
                if self.once_in(2) {
                    window.arguments.push(Expr::whole(1 + self.below(2) as i64));
                    if self.once_in(2) {
                        window.arguments.push(self.constant(any.kind()));
                    }
                }
            }
            "first_value" | "last_value" | "nth_value" => {
                window.kind = any.kind();
                window.arguments = vec![any.clone()];
                if window.function == "nth_value" {
                    window.arguments.push(Expr::whole(2));
                } else {
                    window.ignore_nulls = self.once_in(2);
                }
            }
            "sum" | "avg" => {
                let number = whole.unwrap_or_else(|| Expr::whole(2));
                window.arguments = vec![number];
                window.kind = if window.function == "avg" { Kind::Real } else { Kind::Big };
            }
            "min" | "max" => {
                window.kind = any.kind();
                window.arguments = vec![any.clone()];
            }
            _ => {}
        }
    }

    /// Draws an order and a frame with which the result does not depend on the order of the input.
    fn set_order_and_frame(
        &mut self,
        window: &mut Window,
        sight: &Sight,
        shown: &[Expr],
        any: Expr,
        numeric: Option<Expr>,
    ) {
        let function = window.function;
        let is_aggregate = matches!(function, "sum" | "count" | "avg" | "min" | "max");
        let ranks = matches!(function, "rank" | "dense_rank" | "percent_rank" | "cume_dist");
        if ranks {
            window.order = vec![self.order(any)];
            return;
        }
        if is_aggregate && self.once_in(5) {
            if self.once_in(3) {
                window.filter = Some(self.condition(sight, 0));
            }
            return;
        }
        if is_aggregate
            && self.once_in(3)
            && let Some(number) = numeric
        {
            let start = self.one_of(&[Bound::Start, Bound::Preceding(2), Bound::Current]);
            let end = self.one_of(&[Bound::Current, Bound::Following(1), Bound::End]);
            window.order = vec![self.order(number)];
            let end = self.earlier(start, end);
            window.frame = Some(Frame { units: Units::Range, start, end });
            window.filter = self.once_in(5).then(|| self.condition(sight, 0));
            return;
        }
        if is_aggregate && self.once_in(3) {
            let start = self.one_of(&[Bound::Start, Bound::Preceding(1)]);
            let end = self.one_of(&[Bound::Current, Bound::Following(1)]);
            window.order = vec![self.order(any)];
            window.frame = Some(Frame { units: Units::Groups, start, end });
            return;
        }
        window.order = self.total(shown);
        let framed = is_aggregate || matches!(function, "first_value" | "last_value" | "nth_value");
        if framed && self.once_in(2) {
            let start = self.one_of(&[Bound::Start, Bound::Preceding(1), Bound::Current]);
            let mut end = self.one_of(&[Bound::Current, Bound::Following(2), Bound::End]);
            if is_aggregate {
                end = self.earlier(start, end);
                window.filter = self.once_in(5).then(|| self.condition(sight, 0));
            }
            window.frame = Some(Frame { units: Units::Rows, start, end });
        }
    }

    /// An end of a frame, or sometimes one before the row.
    fn earlier(&mut self, start: Bound, end: Bound) -> Bound {
        let may = start != Bound::Current && self.once_in(4);
        if may { Bound::Preceding(1) } else { end }
    }

    /// Top-k: the first rows overall or per group.
    pub(super) fn first(&mut self, from: From, sight: &Sight) -> Query {
        let shown = self.shown(sight);
        match self.below(6) {
            0 | 1 => {
                let query = Select::of(named(shown), from);
                self.limited(Query::select(query))
            }
            2 | 3 => {
                let mut select = Select::of(named(shown.clone()), from);
                let on = self.one_of(&shown);
                let rest: Vec<Expr> = shown.into_iter().filter(|other| *other != on).collect();
                let order = self.total(&rest);
                let mut orders = vec![self.order(on.clone())];
                orders.extend(order);
                select.distinct = Distinct::On(vec![on], orders);
                Query::select(select)
            }
            _ => {
                let mut exprs = shown.clone();
                let function = self.one_of(&["row_number", "row_number", "rank", "dense_rank"]);
                let partition =
                    if self.once_in(4) { Vec::new() } else { vec![self.one_of(&shown)] };
                let order = match function {
                    "row_number" => self.total(&shown),
                    _ => {
                        let column = self.one_of(&shown);
                        vec![self.order(column)]
                    }
                };
                let window = Window {
                    function,
                    arguments: Vec::new(),
                    ignore_nulls: false,
                    filter: None,
                    partition,
                    order,
                    frame: None,
                    kind: Kind::Unsigned,
                };
                exprs.push(Expr::Window(Box::new(window.clone())));
                let number = Expr::whole(1 + self.below(3) as i64);
                let op = self.one_of(&[Op::LessEqual, Op::LessEqual, Op::Less, Op::Equal]);
                if self.once_in(3) {
                    let mut select = Select::of(named(exprs), from);
                    select.qualify = Some(Expr::binary(Expr::Window(Box::new(window)), op, number));
                    return Query::select(select);
                }
                let inner = Query::select(Select::of(named(exprs), from));
                let alias = self.alias();
                let columns = inner.columns();
                let column = |(name, kind): &(String, Kind)| {
                    Expr::Column(alias.clone(), name.clone(), *kind)
                };
                let place = column(&columns[columns.len() - 1]);
                let mut shown: Vec<Expr> = columns.iter().map(column).collect();
                if self.once_in(2) {
                    shown.pop();
                }
                let mut filter = Expr::binary(place, op, number);
                if self.once_in(4) {
                    let sight = vec![(alias.clone(), columns[..columns.len() - 1].to_vec())];
                    filter = Expr::binary(filter, Op::And, self.condition(&sight, 0));
                }
                let mut select =
                    Select::of(named(shown), From::Derived(Box::new(inner), alias.clone()));
                select.filter = Some(filter);
                Query::select(select)
            }
        }
    }

    /// The first rows of a query, ordered by all of its columns.
    pub(super) fn limited(&mut self, mut query: Query) -> Query {
        let columns = query.columns();
        let is_on = matches!(&query.body, crate::query::Body::Select(select)
            if matches!(select.distinct, Distinct::On(..)));
        if !is_on && columns.iter().all(|(_, kind)| sorts(*kind)) {
            let mut places: Vec<usize> = (0..columns.len()).collect();
            self.rng.shuffle(&mut places);
            let order = places.into_iter();
            let order = order.map(|place| (place, self.once_in(3), self.once_in(3))).collect();
            let offset = if self.once_in(2) { self.below(3) as u64 } else { 0 };
            let limit = 1 + self.below(5) as u64;
            query.top = Some(Top { order, limit, offset, with_ties: false });
        }
        query
    }

    /// The first rows in an order of some columns, and all that are equal to the last of them. `None` if the columns of the query
    /// have no order.
    pub(super) fn tied(&mut self) -> Option<(Query, f64)> {
        let (from, sight, _) = match self.once_in(3) {
            true => self.derived(40.0),
            false => self.relation(60.0),
        };
        let exprs = match self.once_in(4) {
            true => None,
            false => Some(self.items(&sight, 4)),
        };
        let mut query = match exprs {
            Some(exprs) => Query::select(Select::of(named(exprs), from)),
            None => self.grouped(from, &sight, false),
        };
        let columns = query.columns();
        // DataFusion refuses some ranks in the order of an expression, in queries of views that are not kept.
        let Body::Select(select) = &query.body else { return None };
        let is_plain = |item: &Item| matches!(item.expr, Expr::Column(..) | Expr::Aggregate(_));
        let mut places: Vec<usize> = (0..columns.len())
            .filter(|place| sorts(columns[*place].1) && is_plain(&select.items[*place]))
            .collect();
        self.rng.shuffle(&mut places);
        places.truncate(1 + usize::from(self.once_in(4)));
        if places.is_empty() {
            return None;
        }
        let order = places.into_iter();
        let order = order.map(|place| (place, self.once_in(3), self.once_in(3))).collect();
        let limit = 1 + self.below(4) as u64;
        query.top = Some(Top { order, limit, offset: 0, with_ties: true });
        Some((query, 6.0))
    }
}

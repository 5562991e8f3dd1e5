//! ASOF joins.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::joins::asof_join::{self, Nearest, Side, Spec};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode, sides};
use crate::bounds::least;
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::{self, Names};
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, OwnRows, Place, Rendering};
use crate::prune::{place, place_in_two, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Each left row with the nearest of the right rows that agree with it on its keys.
///
/// The output is that of [`asof_join`](alluvium_dataflow::joins::asof_join::asof_join()). No right row has NULL among its keys and
/// times.
#[derive(Clone, Debug)]
pub struct AsofJoin {
    /// The left rows.
    pub left: Box<IncrementalPlan>,
    /// The right rows.
    pub right: Box<IncrementalPlan>,
    /// Pairs of a left and a right column of the same type.
    pub on: Vec<(usize, usize)>,
    /// The times, of the same type.
    pub time: (usize, usize),
    /// Columns that order right rows of one time.
    pub ties: Vec<usize>,
    /// Which right row is the nearest.
    pub nearest: Nearest,
    /// Whether left rows without a match are kept, with NULLs.
    pub keeps_left: bool,
    /// Which rows of the two sides are needed.
    pub retention: (Retention, Retention),
}

impl IncrementalPlan {
    /// A join of two inputs that agree on the pairs of columns `on`; `ties` are columns of the right one.
    pub(crate) fn asof_join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        (on, time): (Vec<(usize, usize)>, (usize, usize)),
        ties: Vec<usize>,
        (nearest, keeps_left): (Nearest, bool),
    ) -> Result<IncrementalPlan> {
        sides::check_types(&left, &right, &on)?;
        sides::check_types(&left, &right, &[time])?;
        let equal: Vec<usize> = on.iter().map(|pair| pair.1).chain([time.1]).collect();
        let ties = deciding(&right, &equal, ties);
        let left_fields = left.schema.fields().iter().map(|field| field.as_ref().clone());
        let right_fields = right.schema.fields().iter().map(|field| {
            let nullable = field.is_nullable() || keeps_left;
            field.as_ref().clone().with_nullable(nullable)
        });
        let fields: Vec<Field> = left_fields.chain(right_fields).collect();
        // A left row is there at most once, and its match may become another.
        let properties = Properties { append_only: false, ..left.properties.clone() };
        let node = Node::AsofJoin(AsofJoin {
            left: Box::new(left),
            right: Box::new(right),
            on,
            time,
            ties,
            nearest,
            keeps_left,
            retention: Default::default(),
        });
        Ok(IncrementalPlan::new(node, Arc::new(Schema::new(fields)), properties))
    }
}

/// The columns of `ties` that decide the order of rows equal in the columns `equal`: those before which some can still be equal.
fn deciding(rows: &IncrementalPlan, equal: &[usize], ties: Vec<usize>) -> Vec<usize> {
    let mut known = equal.to_vec();
    let mut deciding = Vec::new();
    for column in ties {
        if rows.properties.has_key_within(known.iter().copied()) {
            break;
        }
        if !known.contains(&column) {
            known.push(column);
            deciding.push(column);
        }
    }
    deciding
}

/// Why all right rows are kept.
fn last_is_needed() -> Reason {
    Reason::new("when the last row of a key is deleted, the one before it, however old, is the match of later left rows")
        .with_remedy(
            "declare the table of the right side WITH ('append_only' = 'true') if nothing is deleted; or, if matches of \
             another day do not count, add the equality of the days: it is a bound where the times of both sides have LATENESS",
        )
}

/// Why rows are kept whose match is the next row.
fn next_is_open() -> Reason {
    Reason::new("a later row of the right side can be the match of a left row of any time").with_remedy(
        "if matches of another day do not count, add the equality of the days: it is a bound where the times of both \
         sides have LATENESS",
    )
}

/// Why a column has no bound.
fn another_match() -> Reason {
    Reason::new("the match of a row can change, whatever else is in the row")
        .with_remedy("select the time of the left side, and give the times of both sides LATENESS")
}

impl PlanNode for AsofJoin {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.left, &self.right]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.left, &mut self.right]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let width = self.left.width();
        if self.keeps_left && required.iter().all(|&column| column < width) {
            return prune(*self.left, required);
        }
        let AsofJoin { left, right, on, time, ties, nearest, keeps_left, .. } = self;
        let (from_left, from_right): (Vec<usize>, Vec<usize>) =
            required.iter().partition(|&&column| column < width);
        let mut of_left: BTreeSet<usize> = from_left.into_iter().collect();
        of_left.extend(on.iter().map(|pair| pair.0).chain([time.0]));
        let mut of_right: BTreeSet<usize> =
            from_right.into_iter().map(|column| column - width).collect();
        of_right.extend(on.iter().map(|pair| pair.1).chain([time.1]));
        // A row that is not chosen has another value in one of these columns.
        of_right.extend(&ties);
        let (left, used_left) = prune_to(*left, of_left)?;
        let (right, used_right) = prune_to(*right, of_right)?;
        let moved = |(l, r): (usize, usize)| (place(&used_left, l), place(&used_right, r));
        let on = on.into_iter().map(moved).collect();
        let ties = ties.into_iter().map(|column| place(&used_right, column)).collect();
        let place = |&column: &usize| place_in_two((&used_left, &used_right), width, column);
        let columns: Vec<usize> = required.iter().map(place).collect();
        let kind = (nearest, keeps_left);
        let joined = IncrementalPlan::asof_join(left, right, (on, moved(time)), ties, kind)?;
        IncrementalPlan::columns(joined, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let (left, right) = (self.left.bound(&[]), self.right.bound(&[]));
        let (width, later) = (left.len(), self.nearest.later);
        let mut bounds: LowerBounds = vec![Err(another_match()); schema.fields().len()];
        let reason = if later { next_is_open } else { last_is_needed };
        // Changes of right rows read left rows of their key, and those of either side read right rows.
        let mut of_left: LowerBounds = vec![Err(next_is_open()); width];
        let mut of_right: LowerBounds = vec![Err(reason()); right.len()];
        for &(l, r) in &self.on {
            bounds[l] = least(&left[l], &right[r]);
            bounds[width + r] = bounds[l].clone();
            of_left[l] = right[r].clone();
            of_right[r] = bounds[l].clone();
        }
        let (l, r) = self.time;
        match later {
            // A right row is the match of rows after it only, and a left row can have any right row before it.
            false => {
                bounds[l] = least(&left[l], &right[r]);
                of_left[l] = right[r].clone();
            }
            // Of the rows that change, one of the two sides changes, and the right one is not before that.
            true => bounds[width + r] = least(&left[l], &right[r]),
        }
        let keys = self.on.iter().map(|pair| pair.0).chain([l]);
        let of_left = Retention::by_first(&of_left, keys, &self.left.schema, next_is_open);
        let keys = self.on.iter().map(|pair| pair.1).chain([r]);
        let mut of_right = Retention::by_first(&of_right, keys, &self.right.schema, reason);
        if of_right.column().is_none() && !later && self.right.properties.append_only {
            // Of the right rows before all that still change, later left rows can match the last one.
            let times: LowerBounds = (0..right.len()).map(|_| bounds[l].clone()).collect();
            of_right = Retention::by(&times, r, &self.right.schema).with_last(1);
        }
        self.retention = (of_left, of_right);
        // State is pruned at the least cost by the first column of its keys.
        let pruned = self.retention.1.column().map(|column| (1, column));
        let pruned = pruned.or(self.retention.0.column().map(|column| (0, column)));
        let is_pruned = |pair: &(usize, usize)| match pruned {
            Some((1, column)) => pair.1 == column,
            Some((_, column)) => pair.0 == column,
            None => false,
        };
        if let Some(place) = self.on.iter().position(is_pruned) {
            self.on[..=place].rotate_right(1);
        }
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("asof join");
        canonical.pairs(&self.on);
        canonical.pairs(&[self.time]);
        canonical.columns(&self.ties);
        canonical.flag(self.nearest.later);
        canonical.flag(self.nearest.or_equal);
        canonical.flag(self.keeps_left);
        self.retention.0.encode(canonical);
        self.retention.1.encode(canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let keys: (Vec<usize>, Vec<usize>) = self.on.iter().copied().unzip();
        let spec = Spec::compile(
            &Side { schema: &self.left.schema, keys: &keys.0, time: self.time.0 },
            &Side { schema: &self.right.schema, keys: &keys.1, time: self.time.1 },
            &self.ties,
            self.nearest,
            self.keeps_left,
            plan.schema.clone(),
        )?;
        let (left, right) = (compiler.rows(&self.left)?, compiler.rows(&self.right)?);
        let id = compiler.next_id("asof_join");
        let (of_left, of_right) = &self.retention;
        let left_rows = OwnRows::new(
            format!("{id}.left"),
            "asof left",
            plan,
            of_left,
            |column| spec.left_column(column),
            compiler,
        );
        let right_rows = OwnRows::new(
            format!("{id}.right"),
            "asof right",
            plan,
            of_right,
            |column| spec.right_column(column),
            compiler,
        );
        let places = vec![left_rows.place(), right_rows.place()];
        let operator = AsofRows { left, right, spec, kept: [left_rows, right_rows] };
        Ok(compiler.add_stateful(plan, operator, places, None))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let (left, right) = (Names(&self.left.schema), Names(&self.right.schema));
        line.push_str(if self.keeps_left { "left asof join on " } else { "asof join on " });
        for &(l, r) in &self.on {
            write!(line, "{} = {} and ", left.column(l), right.column(r))?;
        }
        let operator = match (self.nearest.later, self.nearest.or_equal) {
            (false, true) => ">=",
            (false, false) => ">",
            (true, true) => "<=",
            (true, false) => "<",
        };
        write!(line, "{} {operator} {}", left.column(self.time.0), right.column(self.time.1))
    }

    fn clause(&self) -> Option<Clause> {
        Some(sides::clause(&self.left, &self.right, &self.on))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        sides::retained(&self.left, &self.right, &self.retention)
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::sides(&self.left, &self.right, &self.on, places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// An ASOF join, ready to be rendered.
#[derive(Debug)]
struct AsofRows {
    left: OperatorId,
    right: OperatorId,
    spec: Spec,
    kept: [OwnRows; 2],
}

impl Operator for AsofRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (left, right) = (rendering.rows(self.left), rendering.rows(self.right));
        let contexts = OwnRows::contexts(&self.kept, rendering);
        asof_join::asof_join(&self.spec, left, right, &contexts)
    }
}

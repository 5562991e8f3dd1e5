//! Outer, semi, anti and mark joins: joins that depend on whether a row has a partner.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::joins::outer_join;
use alluvium_dataflow::joins::outer_join::OuterJoinKind;
use alluvium_dataflow::map::can_fail;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::rows::layout::Layout;
use alluvium_trace::Epoch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_physical_expr::PhysicalExpr;

use super::sides::{self, Side};
use super::{Indexed, Node, PlanNode};
use crate::bounds::{PairBounds, conjuncts, least, no_time_on_side};
use crate::constructs::Clause;
use crate::expression::{self, Expression};
use crate::fault::{self, Fault};
use crate::fingerprint::Canonical;
use crate::names::{self, Names};
use crate::physical::{Arranged, CompileResult, Place};
use crate::physical::{Compiler, Operator, OperatorId, Rendering};
use crate::properties::shifted;
use crate::prune::{place, place_in_two, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Pairs of rows that agree on their keys, and rows chosen by whether they are in a pair.
///
/// The output is that of [`outer_join`](alluvium_dataflow::joins::outer_join::outer_join). NULL keys are equal here:
/// for an `=` join the planner makes sure that they do not meet.
#[derive(Clone, Debug)]
pub struct OuterJoin {
    /// The left rows.
    pub left: Box<IncrementalPlan>,
    /// The right rows.
    pub right: Box<IncrementalPlan>,
    /// Pairs of a left and a right column of the same type.
    pub on: Vec<(usize, usize)>,
    /// Which kind of join.
    pub kind: OuterJoinKind,
    /// Over the columns of both sides; true for the pairs that count.
    pub residual: Option<Arc<dyn PhysicalExpr>>,
    /// Which rows of the two sides are needed.
    pub retention: (Retention, Retention),
}

impl IncrementalPlan {
    /// A join of two inputs that agree on the pairs of columns `on`; `residual` is over the columns of both.
    pub(crate) fn outer_join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        on: Vec<(usize, usize)>,
        kind: OuterJoinKind,
        residual: Option<Expression>,
    ) -> Result<IncrementalPlan> {
        if kind == OuterJoinKind::Left && on.is_empty() && residual.is_none() && right.has_one_row()
        {
            return IncrementalPlan::join(left, right, on);
        }
        sides::check_types(&left, &right, &on)?;
        let (l, r) = (&left.properties, &right.properties);
        let width = left.width();
        let shifted = |key: &Vec<usize>| shifted(key, width);
        let unique = match kind {
            OuterJoinKind::Semi | OuterJoinKind::Anti | OuterJoinKind::Mark => l.unique.clone(),
            OuterJoinKind::Left if r.has_key_within(on.iter().map(|pair| pair.1)) => {
                l.unique.clone()
            }
            OuterJoinKind::Right if l.has_key_within(on.iter().map(|pair| pair.0)) => {
                r.unique.iter().map(shifted).collect()
            }
            OuterJoinKind::Left | OuterJoinKind::Right => {
                let pairs = l.unique.iter().flat_map(|left| {
                    r.unique.iter().map(|right| [left.clone(), shifted(right)].concat())
                });
                pairs.collect()
            }
            // A left and a right row without partners can be equal: all NULL.
            OuterJoinKind::Full => Vec::new(),
        };
        // Partners are never lost, so a row that has one keeps it; a row without one may find one.
        let append_only = kind == OuterJoinKind::Semi && l.append_only && r.append_only;
        // Rows without a partner have NULL for what would follow from the other side's key.
        let dependencies = match kind {
            OuterJoinKind::Right | OuterJoinKind::Full => Vec::new(),
            _ => l.all_dependencies(width),
        };
        let properties = Properties::new(unique, append_only).with(dependencies);
        let (left, right) = (Box::new(left), Box::new(right));
        let schema = output_schema(&left, &right, kind);
        let node = Node::OuterJoin(OuterJoin {
            left,
            right,
            on,
            kind,
            residual,
            retention: Default::default(),
        });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

fn output_schema(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    kind: OuterJoinKind,
) -> SchemaRef {
    let fields = |plan: &IncrementalPlan, nullable: bool| -> Vec<Field> {
        let fields = plan.schema.fields().iter().map(|field| field.as_ref().clone());
        fields
            .map(|field| {
                let nullable = nullable || field.is_nullable();
                field.with_nullable(nullable)
            })
            .collect()
    };
    let mut all = fields(left, kind.keeps_right());
    match kind {
        OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full => {
            all.extend(fields(right, kind.keeps_left()));
        }
        OuterJoinKind::Mark => all.push(Field::new("mark", DataType::Boolean, false)),
        OuterJoinKind::Semi | OuterJoinKind::Anti => {}
    }
    Arc::new(Schema::new(all))
}

/// The columns of both sides, left ones first.
pub(crate) fn joined_schema(left: &IncrementalPlan, right: &IncrementalPlan) -> Schema {
    let fields = left.schema.fields().iter().chain(right.schema.fields());
    Schema::new(fields.cloned().collect::<Vec<_>>())
}

impl OuterJoin {
    /// The side that is broadcast, because the join has no keys and that side at most one row, while the other
    /// side stays where it is.
    pub(crate) fn broadcast(&self) -> Option<Side> {
        let single = self.right.properties.at_most_one_row();
        let without_keys = self.on.is_empty() && self.residual.is_none();
        (without_keys && single && !self.kind.keeps_right()).then_some(Side::Right)
    }

    /// Whether only columns of the left side are required and each left row comes exactly once.
    fn is_left_side(&self, required: &[usize]) -> bool {
        let width = self.left.width();
        let only_left = required.iter().all(|&column| column < width);
        let on_right = self.on.iter().map(|pair| pair.1);
        let once = match self.kind {
            OuterJoinKind::Mark => true,
            OuterJoinKind::Left => self.right.properties.has_key_within(on_right),
            _ => false,
        };
        // A residual that fails for a pair makes that pair an error, whatever is required.
        only_left && once && self.residual.as_ref().is_none_or(|residual| !can_fail(residual))
    }
}

impl OuterJoin {
    /// The side whose rows with partners are kept, its keys, and which of its rows are needed; of a full join, which keeps
    /// those of both, the left one.
    fn with_partners(&self) -> (&IncrementalPlan, Vec<usize>, &Retention) {
        let (left, right) = &self.retention;
        match self.kind == OuterJoinKind::Right {
            true => (&self.right, self.on.iter().map(|pair| pair.1).collect(), right),
            false => (&self.left, self.on.iter().map(|pair| pair.0).collect(), left),
        }
    }
}

/// Why a column of an outer join has no bound.
fn with_others() -> Reason {
    Reason::new("a row can change with a later row of the other side, whatever its time")
        .with_remedy("join on a time that has LATENESS on both sides")
}

/// Why rows are kept that are not joined on a time.
fn timeless() -> Reason {
    Reason::new("the sides are not joined on a time, so a later row can match any row")
        .with_remedy("join on a time that has LATENESS on both sides")
}

impl OuterJoin {
    /// The lower bounds of both sides without a residual condition. A change of any kind reads all rows of its key: both sides
    /// are pruned by a key.
    fn bound_by_keys(&mut self, left: &LowerBounds, right: &LowerBounds) -> LowerBounds {
        let width = left.len();
        let mut bounds: LowerBounds = vec![Err(with_others()); width + right.len()];
        for &(l, r) in &self.on {
            bounds[l] = least(&left[l], &right[r]);
            bounds[width + r] = bounds[l].clone();
        }
        let keys = self.on.iter().map(|pair| pair.0);
        let retention = Retention::by_first(&bounds, keys, &self.left.schema, timeless);
        self.retention = (retention.clone(), retention);
        if let (Retention::From { column, .. }, Retention::From { column: of_right, .. }) =
            (&self.retention.0, &mut self.retention.1)
            && let Some(place) = self.on.iter().position(|pair| pair.0 == *column)
        {
            *of_right = self.on[place].1;
            self.on[..=place].rotate_right(1);
        }
        bounds
    }

    /// The lower bounds of both sides with a residual condition. A row is read for its pairs with later rows of the other
    /// side; where it matters whether it has a match, also when it changes itself or a pair of it does. The rows with a match
    /// are read with it.
    fn bound_by_rows(&mut self, left: LowerBounds, right: LowerBounds) -> LowerBounds {
        let width = left.len();
        let schema = joined_schema(&self.left, &self.right);
        let own: LowerBounds = left.iter().chain(&right).cloned().collect();
        let conditions = conjuncts(self.residual.as_ref());
        let pairs = PairBounds::new(left, right, &self.on, &schema, &conditions);
        let of_pairs = pairs.of_all();
        // A row without a match fulfils no condition, so its own bound has to be known.
        let of_rows: LowerBounds = match fault::armed(Fault::BoundOfPairs) {
            true => of_pairs.clone(),
            false => own.iter().zip(&of_pairs).map(|(own, pairs)| least(own, pairs)).collect(),
        };
        let matters_left = self.kind.keeps_left() || self.kind == OuterJoinKind::Semi;
        let matters_right = self.kind.keeps_right();
        let keys = self.on.iter().map(|pair| pair.0);
        let by = if matters_left { &of_rows } else { &pairs.by_right };
        let of_left = Retention::by_first(by, keys.chain(0..width), &schema, no_time_on_side);
        let keys = self.on.iter().map(|pair| width + pair.1);
        let by = if matters_right { &of_rows } else { &pairs.by_left };
        let of_right =
            Retention::by_first(by, keys.chain(width..own.len()), &schema, no_time_on_side);
        self.retention = (of_left, of_right.behind(width));
        let (l, r) = (self.retention.0.column(), self.retention.1.column());
        let is_pruned = |pair: &(usize, usize)| Some(pair.0) == l || Some(pair.1) == r;
        if let Some(place) = self.on.iter().position(is_pruned) {
            self.on[..=place].rotate_right(1);
        }
        let matters = |column: usize| if column < width { matters_left } else { matters_right };
        let bound = |column: usize| {
            if matters(column) { of_rows[column].clone() } else { of_pairs[column].clone() }
        };
        (0..own.len()).map(bound).collect()
    }
}

impl PlanNode for OuterJoin {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.left, &self.right]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.left, &mut self.right]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        if self.is_left_side(required) {
            return prune(*self.left, required);
        }
        let OuterJoin { left, right, on, kind, residual, .. } = self;
        let width = left.width();
        let mut of_left: BTreeSet<usize> = on.iter().map(|&(l, _)| l).collect();
        let mut of_right: BTreeSet<usize> = on.iter().map(|&(_, r)| r).collect();
        let mut use_column = |column: usize| {
            if column < width {
                of_left.insert(column)
            } else {
                of_right.insert(column - width)
            };
        };
        let marks = kind == OuterJoinKind::Mark;
        required.iter().filter(|&&column| column < width || !marks).for_each(|&it| use_column(it));
        if let Some(residual) = &residual {
            expression::for_each_column(residual, &mut use_column);
        }
        let (left, used_left) = prune_to(*left, of_left)?;
        let (right, used_right) = prune_to(*right, of_right)?;
        let moved = |column: usize| place_in_two((&used_left, &used_right), width, column);
        let names = joined_schema(&left, &right);
        let residual = residual.map(|residual| {
            expression::replace_columns(residual, |column| {
                expression::column(&names, moved(column))
            })
        });
        let on = on.iter().map(|&(l, r)| (place(&used_left, l), place(&used_right, r))).collect();
        let columns: Vec<usize> = required
            .iter()
            .map(|&column| if marks && column >= width { used_left.len() } else { moved(column) })
            .collect();
        let joined = IncrementalPlan::outer_join(left, right, on, kind, residual.transpose()?)?;
        IncrementalPlan::columns(joined, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let width = self.left.width();
        let (left, right) = (self.left.bound(&[]), self.right.bound(&[]));
        let mut bounds = match self.residual {
            Some(_) => self.bound_by_rows(left, right),
            None => self.bound_by_keys(&left, &right),
        };
        // A mark takes the place of the right side's columns, and semijoins have none.
        bounds.truncate(schema.fields().len().min(match self.kind {
            OuterJoinKind::Left | OuterJoinKind::Right | OuterJoinKind::Full => bounds.len(),
            OuterJoinKind::Semi | OuterJoinKind::Anti | OuterJoinKind::Mark => width,
        }));
        bounds.resize(schema.fields().len(), Err(with_others()));
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text(kind_name(self.kind));
        canonical.pairs(&self.on);
        self.retention.0.encode(canonical);
        self.retention.1.encode(canonical);
        canonical.flag(self.residual.is_some());
        if let Some(residual) = &self.residual {
            canonical.expression(residual, &joined_schema(&self.left, &self.right));
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let id = compiler.next_id("outer_join");
        let inputs = (self.left.as_ref(), self.right.as_ref());
        let (left, right) = match self.residual {
            Some(_) => compiler.whole_sides(inputs, &self.on, &self.retention, &id)?,
            None => compiler.sides(inputs, &self.on, self.broadcast(), &self.retention, &id)?,
        };
        let spec = outer_join::Spec::new(
            self.kind,
            (&left.schema, &left.columns),
            (&right.schema, &right.columns),
            self.residual.clone(),
            plan.schema.clone(),
        );
        let places = vec![left.place(), right.place()];
        let fallible = self.residual.as_ref().is_some_and(can_fail);
        let operator = OuterJoinRows { left, right, spec, fallible };
        let rows =
            compiler.add_stateful(plan, operator, places, self.residual.is_some().then_some(id));
        if self.residual.is_some() {
            let (side, keys, retention) = self.with_partners();
            compiler.prune(retention, &Layout::keyed(side.schema.clone(), &keys)?);
        }
        Ok(rows)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let (left, right) = (Names(&self.left.schema), Names(&self.right.schema));
        line.push_str(kind_name(self.kind));
        for (number, &(l, r)) in self.on.iter().enumerate() {
            line.push_str(if number == 0 { " on " } else { " and " });
            write!(line, "{} = {}", left.column(l), right.column(r))?;
        }
        match &self.residual {
            Some(residual) => {
                let pairs = joined_schema(&self.left, &self.right);
                write!(line, " where {}", Names(&pairs).expression(residual)?)
            }
            None => Ok(()),
        }
    }

    fn burden(&self) -> Option<&'static str> {
        self.on.is_empty().then_some(sides::WITHOUT_EQUALITY)
    }

    fn clause(&self) -> Option<Clause> {
        Some(sides::clause(&self.left, &self.right, &self.on))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        let mut retained = sides::retained(&self.left, &self.right, &self.retention);
        if self.residual.is_some() {
            let (side, _, retention) = self.with_partners();
            retained.push(("rows with partners", &side.schema, retention));
        }
        retained
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let sides = names::sides(&self.left, &self.right, &self.on, places);
        let matches = || names::kept("rows with partners", places.get(2..).unwrap_or_default());
        Some(match self.residual {
            Some(_) => format!("{sides}, {}", matches()),
            None => sides,
        })
    }

    /// A side that is not pruned is a table or an index; the rows with partners are kept besides.
    fn needs_state(&self) -> bool {
        self.residual.is_some() || self.retention.0.column().is_some()
    }

    fn indexed(&mut self) -> Vec<Indexed<'_>> {
        match self.broadcast() {
            Some(_) => Vec::new(),
            None => {
                let (left, right) = (&mut *self.left, &mut *self.right);
                let keeps = (self.kind.keeps_left(), self.kind.keeps_right());
                let may_be_wider = self.residual.is_none();
                sides::keyed(left, right, &mut self.on, &self.retention, may_be_wider, keeps)
            }
        }
    }
}

/// The name of a join in SQL, or nearly so.
fn kind_name(kind: OuterJoinKind) -> &'static str {
    match kind {
        OuterJoinKind::Left => "left join",
        OuterJoinKind::Right => "right join",
        OuterJoinKind::Full => "full join",
        OuterJoinKind::Semi => "semi join",
        OuterJoinKind::Anti => "anti join",
        OuterJoinKind::Mark => "mark join",
    }
}

/// A join, ready to be rendered.
#[derive(Debug)]
struct OuterJoinRows {
    left: Arranged,
    right: Arranged,
    spec: outer_join::Spec,
    /// Whether the residual condition can fail.
    fallible: bool,
}

impl Operator for OuterJoinRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (left, right) = (self.left.render(rendering), self.right.render(rendering));
        let context = rendering.context();
        let of_side = |side: &Arranged| rendering.pruned(context.clone(), side.pruning());
        let contexts = outer_join::Contexts {
            left_matches: of_side(&self.left),
            right_matches: of_side(&self.right),
            join: context,
        };
        let joined = outer_join::outer_join(&self.spec, left, right, &contexts);
        if let Some(errors) = joined.errors
            && self.fallible
        {
            rendering.report(errors);
        }
        joined.rows
    }
}

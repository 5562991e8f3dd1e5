//! Range joins: comparisons of rows with values that move.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::joins::range_join::{self, End, Ends, Left, Right, Spec};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_expr::Operator as Comparison;
use datafusion_physical_expr::expressions::BinaryExpr;

use super::outer_join::joined_schema;
use super::{Node, PlanNode, sides};
use crate::bounds::PairBounds;
use crate::constructs::Clause;
use crate::expression::{self, Expression};
use crate::fingerprint::Canonical;
use crate::names::{self, Names};
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, OwnRows, Place, Rendering};
use crate::properties::shifted;
use crate::prune::{place, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Pairs of rows that agree on their keys, and of which the left one has a value between the ends that the right one has.
///
/// The output is all left columns, and then the payload of the right rows. NULL keys are equal here. No row has NULL as its value
/// or an end, and no right row has ends that no value is between; but a right row may have NULL as all of its ends, and then is paired
/// with all left rows, also with those that have NULL as their value.
#[derive(Clone, Debug)]
pub struct RangeJoin {
    /// The left rows.
    pub left: Box<IncrementalPlan>,
    /// The right rows.
    pub right: Box<IncrementalPlan>,
    /// Pairs of a left and a right column of the same type.
    pub on: Vec<(usize, usize)>,
    /// The left column that is compared.
    pub value: usize,
    /// The right columns that it is compared with, of the same type.
    pub ends: Ends,
    /// The right columns that are in the output. The fewer these are, the fewer rows change with an end.
    pub payload: Vec<usize>,
    /// Which rows of the two sides are needed: all.
    pub retention: (Retention, Retention),
}

impl IncrementalPlan {
    /// Pairs of rows that agree on the pairs of columns `on`, and of which the left one has a `value` between `ends`.
    pub(crate) fn range_join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        on: Vec<(usize, usize)>,
        (value, ends): (usize, Ends),
        payload: Vec<usize>,
    ) -> Result<IncrementalPlan> {
        sides::check_types(&left, &right, &on)?;
        let compared: Vec<_> = each_end(ends).map(|end| (value, end.column)).collect();
        sides::check_types(&left, &right, &compared)?;
        let width = left.width();
        let (l, r) = (&left.properties, &right.properties);
        // Where right rows may differ in nothing else, their pairs may be equal.
        let of_payload = r
            .of_columns(&payload, right.width())
            .unique
            .into_iter()
            .map(|key| shifted(&key, width));
        let mut unique: Vec<Vec<usize>> = of_payload
            .flat_map(|right| {
                l.unique.iter().map(move |left| [left.clone(), right.clone()].concat())
            })
            .collect();
        if r.has_key_within(on.iter().map(|pair| pair.1)) {
            unique.extend(l.unique.iter().cloned());
        }
        let properties =
            Properties::new(unique, l.append_only && r.append_only).with(l.all_dependencies(width));
        let fields = left.schema.fields().iter().cloned();
        let of_right = payload.iter().map(|&column| Arc::clone(&right.schema.fields()[column]));
        let schema = Arc::new(Schema::new(fields.chain(of_right).collect::<Vec<_>>()));
        let (left, right) = (Box::new(left), Box::new(right));
        let all = || Retention::All(any_row_is_passed());
        let retention = (all(), all());
        let node = Node::RangeJoin(RangeJoin { left, right, on, value, ends, payload, retention });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

/// Why all rows are kept.
fn any_row_is_passed() -> Reason {
    Reason::new("an end of the range can pass a row of any age when it moves")
}

/// The ends that there are, the low one first.
fn each_end(ends: Ends) -> impl Iterator<Item = End> {
    ends.low.into_iter().chain(ends.high)
}

impl RangeJoin {
    /// How the value compares with each end.
    fn comparisons(&self) -> impl Iterator<Item = (Comparison, End)> {
        let low = self.ends.low.map(|end| match end.is_included {
            true => (Comparison::GtEq, end),
            false => (Comparison::Gt, end),
        });
        let high = self.ends.high.map(|end| match end.is_included {
            true => (Comparison::LtEq, end),
            false => (Comparison::Lt, end),
        });
        low.into_iter().chain(high)
    }
}

impl PlanNode for RangeJoin {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.left, &self.right]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.left, &mut self.right]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let RangeJoin { left, right, on, value, ends, payload, .. } = self;
        let width = left.width();
        let (from_left, from_right): (Vec<usize>, Vec<usize>) =
            required.iter().partition(|&&column| column < width);
        let mut of_left: BTreeSet<usize> = from_left.into_iter().collect();
        of_left.extend(on.iter().map(|pair| pair.0).chain([value]));
        let kept: BTreeSet<usize> =
            from_right.into_iter().map(|column| payload[column - width]).collect();
        let mut of_right = kept.clone();
        of_right.extend(on.iter().map(|pair| pair.1));
        of_right.extend(each_end(ends).map(|end| end.column));
        let (left, used_left) = prune_to(*left, of_left)?;
        let (right, used_right) = prune_to(*right, of_right)?;
        let on = on.iter().map(|&(l, r)| (place(&used_left, l), place(&used_right, r))).collect();
        let end = |end: End| End { column: place(&used_right, end.column), ..end };
        let ends = Ends { low: ends.low.map(end), high: ends.high.map(end) };
        let kept: Vec<usize> = kept.into_iter().collect();
        let columns: Vec<usize> = required
            .iter()
            .map(|&column| match column.checked_sub(width) {
                None => place(&used_left, column),
                Some(of_payload) => used_left.len() + place(&kept, payload[of_payload]),
            })
            .collect();
        let payload = kept.iter().map(|&column| place(&used_right, column)).collect();
        let value = place(&used_left, value);
        let joined = IncrementalPlan::range_join(left, right, on, (value, ends), payload)?;
        IncrementalPlan::columns(joined, &columns)
    }

    fn bound(&mut self, _: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let width = self.left.width();
        let (left, right) = (self.left.bound(&[]), self.right.bound(&[]));
        let schema = joined_schema(&self.left, &self.right);
        let conditions: Vec<Expression> = self
            .comparisons()
            .map(|(operator, end)| {
                let value = expression::column(&schema, self.value);
                let end = expression::column(&schema, width + end.column);
                Arc::new(BinaryExpr::new(value, operator, end)) as Expression
            })
            .collect();
        let pairs = PairBounds::new(left, right, &self.on, &schema, &conditions).of_all();
        let payload = self.payload.iter().map(|column| width + column);
        (0..width).chain(payload).map(|column| pairs[column].clone()).collect()
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("range join");
        canonical.pairs(&self.on);
        canonical.number(self.value);
        for end in [self.ends.low, self.ends.high] {
            canonical.optional(end.map(|end| end.column));
            canonical.flag(end.is_some_and(|end| end.is_included));
        }
        canonical.columns(&self.payload);
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
            &Left { schema: &self.left.schema, keys: &keys.0, value: self.value },
            &Right {
                schema: &self.right.schema,
                keys: &keys.1,
                ends: self.ends,
                payload: &self.payload,
            },
            plan.schema.clone(),
        )?;
        let (left, right) = (compiler.rows(&self.left)?, compiler.rows(&self.right)?);
        let id = compiler.next_id("range_join");
        let mut own = |side: &str, kind: &str| {
            let (id, all) = (format!("{id}.{side}"), Retention::default());
            OwnRows::new(id, kind, plan, &all, |_| None, compiler)
        };
        let kept = [own("left", "range left"), own("right", "range right")];
        let places = kept.iter().map(OwnRows::place).collect();
        Ok(compiler.add_stateful(plan, RangeRows { left, right, spec, kept }, places, None))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let (left, right) = (Names(&self.left.schema), Names(&self.right.schema));
        line.push_str("range join on ");
        for &(l, r) in &self.on {
            write!(line, "{} = {} and ", left.column(l), right.column(r))?;
        }
        let value = left.column(self.value);
        let compared = self
            .comparisons()
            .map(|(operator, end)| format!("{value} {operator} {}", right.column(end.column)));
        line.push_str(&compared.collect::<Vec<_>>().join(" and "));
        Ok(())
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

/// A range join, ready to be rendered.
#[derive(Debug)]
struct RangeRows {
    left: OperatorId,
    right: OperatorId,
    spec: Spec,
    kept: [OwnRows; 2],
}

impl Operator for RangeRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (left, right) = (rendering.rows(self.left), rendering.rows(self.right));
        let contexts = OwnRows::contexts(&self.kept, rendering);
        range_join::range_join(&self.spec, left, right, &contexts)
    }
}

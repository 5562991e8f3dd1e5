//! Sessions: what the functions that are the bounds of sessions make of rows.

use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Place, PrunedBy, Rendering};
use crate::plan::names;
use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::sessions::{self, END, SessionBound, sessions};
use alluvium_dataflow::window::{Argument, WindowFunction};
use alluvium_trace::Epoch;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion_common::{Result, ScalarValue};

use super::{Node, PlanNode};
use crate::plan::expression::Expression;
use crate::plan::fingerprint::Canonical;
use crate::plan::names::Names;
use crate::plan::prune::{place, place_in_two, prune, prune_to};
use crate::plan::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};
use crate::planner::Clause;

/// All input columns, then bounds of the row's session.
#[derive(Clone, Debug)]
pub struct Session {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// The columns that rows of a session agree on.
    pub keys: Vec<usize>,
    /// The column with the time.
    pub time: usize,
    /// How far apart rows of a session are at most, in microseconds, and not quite.
    pub gap: i64,
    /// Which bounds, and their columns.
    pub bounds: Vec<(SessionBound, FieldRef)>,
    /// Which rows are needed: those of sessions that end after what is to come.
    pub retention: Retention,
    /// The columns of the rows that are kept: those of the input, and the end of the session.
    kept: SchemaRef,
}

impl IncrementalPlan {
    /// All columns of the input, then these bounds of sessions.
    fn sessions(
        input: IncrementalPlan,
        keys: Vec<usize>,
        (time, gap): (usize, i64),
        bounds: Vec<(SessionBound, FieldRef)>,
    ) -> IncrementalPlan {
        let fields = bounds.iter().map(|(_, field)| field);
        let fields: Vec<_> = input.schema.fields().iter().chain(fields).cloned().collect();
        let properties = Properties { append_only: false, ..input.properties.clone() };
        let end = Field::new("window_end", input.schema.field(time).data_type().clone(), true);
        let kept = input.schema.fields().iter().cloned().chain([Arc::new(end)]);
        let kept = Arc::new(Schema::new(kept.collect::<Vec<_>>()));
        let retention = Retention::default();
        let input = Box::new(input);
        let node = Node::Session(Session { input, keys, time, gap, bounds, retention, kept });
        IncrementalPlan::new(node, Arc::new(Schema::new(fields)), properties)
    }
}

/// The sessions that window functions are the bounds of, if they are all of the same ones.
pub(super) fn from_window(
    input: &IncrementalPlan,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    functions: &[WindowFunction],
) -> Option<IncrementalPlan> {
    let &[(time, SortOptions { descending: false, .. })] = order else { return None };
    let microseconds = matches!(
        input.schema.field(time).data_type(),
        DataType::Timestamp(TimeUnit::Microsecond, _)
    );
    let bound = |function: &WindowFunction| {
        // The name of what a window computes is its whole definition.
        let (bound, name) = match function.function.name() {
            "session_start" => (SessionBound::Start, "window_start"),
            "session_end" => (SessionBound::End, "window_end"),
            _ => return None,
        };
        let field = Arc::new(function.result.as_ref().clone().with_name(name));
        match &function.arguments[..] {
            [
                Argument::Column(of),
                Argument::Constant(ScalarValue::DurationMicrosecond(Some(gap))),
            ] if *of == time && microseconds => Some((*gap, (bound, field))),
            _ => None,
        }
    };
    let bounds: Option<Vec<_>> = functions.iter().map(bound).collect();
    let (gaps, bounds): (Vec<i64>, Vec<_>) = bounds?.into_iter().unzip();
    let gap = *gaps.first()?;
    let same = gaps.iter().all(|other| *other == gap);
    let times = (time, gap);
    same.then(|| IncrementalPlan::sessions(input.clone(), keys.to_vec(), times, bounds))
}

impl PlanNode for Session {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Session { input, keys, time, gap, bounds, .. } = self;
        let width = input.width();
        let kept: Vec<usize> =
            (0..bounds.len()).filter(|number| required.contains(&(width + number))).collect();
        if kept.is_empty() {
            return prune(*input, required);
        }
        let mut used: BTreeSet<usize> =
            required.iter().copied().filter(|&column| column < width).collect();
        used.extend(keys.iter().copied().chain([time]));
        let (input, used) = prune_to(*input, used)?;
        let keys = keys.into_iter().map(|key| place(&used, key)).collect();
        let bounds = kept.iter().map(|&number| bounds[number].clone()).collect();
        let plan = IncrementalPlan::sessions(input, keys, (place(&used, time), gap), bounds);
        let place = |&column: &usize| place_in_two((&used, &kept), width, column);
        let columns: Vec<usize> = required.iter().map(place).collect();
        IncrementalPlan::columns(plan, &columns)
    }

    /// A row that changes, at some time, changes sessions that end after it.
    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let below = self.input.bound(&[]);
        let width = below.len();
        self.retention = match Retention::by(&below, self.time, schema) {
            Retention::From { bound, .. } => Retention::from(width, bound),
            all @ Retention::All(_) => all,
        };
        let changes = |what: &str| {
            Reason::new(format!(
                "a session goes on while rows come, and changes the {what} of its first rows"
            ))
            .with_remedy("use the end of the sessions, or add it to the key")
        };
        let bound = |column: usize| match column.checked_sub(width) {
            Some(number) if self.bounds[number].0 == SessionBound::End => below[self.time].clone(),
            Some(_) => Err(changes("start")),
            None if self.keys.contains(&column) => below[column].clone(),
            None => Err(changes("columns")),
        };
        (0..schema.fields().len()).map(bound).collect()
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("session");
        self.retention.encode(canonical);
        canonical.columns(&self.keys);
        canonical.number(self.time);
        canonical.text(&self.gap.to_string());
        canonical.number(self.bounds.len());
        for (bound, field) in &self.bounds {
            canonical.flag(*bound == SessionBound::End);
            canonical.data_type(field.data_type());
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
        let bounds: Vec<SessionBound> = self.bounds.iter().map(|(bound, _)| *bound).collect();
        let (schema, times) = (&self.input.schema, (self.time, self.gap));
        let spec = sessions::Spec::compile(schema, &self.keys, times, &bounds, &plan.schema)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("session");
        let by = compiler.pruning(&id, &self.retention, Some(END));
        let operator = SessionRows { input, spec, by };
        Ok(compiler.add_stateful(plan, operator, Vec::new(), Some(id)))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        let gap = ScalarValue::new_interval_mdn(0, 0, self.gap.saturating_mul(1_000));
        write!(line, "sessions of {} with gaps of {gap}", below.column(self.time))?;
        if !self.keys.is_empty() {
            write!(line, " by {}", below.plain(&self.keys))?;
        }
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Partition(Names(&self.input.schema).each(&self.keys)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows with their sessions", &self.kept, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let mut kept = "rows with their sessions".to_string();
        if !self.keys.is_empty() {
            kept += &format!(" by {}", Names(&self.input.schema).list(&self.keys));
        }
        Some(names::kept(&kept, places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// Sessions, ready to be rendered.
#[derive(Debug)]
struct SessionRows {
    input: OperatorId,
    spec: sessions::Spec,
    /// Below what the kept rows are pruned, by the ends of their sessions.
    by: Option<PrunedBy>,
}

impl Operator for SessionRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        let kept = rendering.pruned(context.clone(), self.by.as_ref());
        let (rows, errors) = sessions(&self.spec, rendering.rows(self.input), &context, &kept);
        rendering.report(errors);
        rows
    }
}

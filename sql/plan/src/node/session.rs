//! Sessions: rows with the bounds of their session.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::reductions::window::{Argument, WindowFunction};
use alluvium_dataflow::rows::codec::has_floats;
use alluvium_dataflow::time::sessions::{self, END, SessionBound, sessions};
use alluvium_sql_functions::microseconds;
use alluvium_trace::Epoch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue};

use super::{Node, PlanNode};
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Place, PrunedBy, Rendering};
use crate::prune::{place, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Columns of the rows, then bounds of their sessions.
#[derive(Clone, Debug)]
pub struct Session {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// The columns that rows of a session agree on.
    pub keys: Vec<usize>,
    /// The column with the time.
    pub time: usize,
    /// How far apart rows of a session are at most, in the unit of the time, and not quite.
    pub gap: i64,
    /// Which bounds, and their columns.
    pub bounds: Vec<(SessionBound, FieldRef)>,
    /// Whether rows of a session are only counted: then the columns are the `keys`, in the input's order, and else all of the
    /// input.
    pub counted: bool,
    /// Which rows are needed: those of sessions that end after all that is to come.
    pub retention: Retention,
    /// The columns of the rows that are kept: those of the input, and the end of the session.
    kept: SchemaRef,
}

impl IncrementalPlan {
    /// All columns of the input, or only the keys, then these bounds of sessions.
    fn sessions(
        input: IncrementalPlan,
        keys: Vec<usize>,
        (time, gap): (usize, i64),
        bounds: Vec<(SessionBound, FieldRef)>,
        counted: bool,
    ) -> IncrementalPlan {
        let properties = match counted {
            true => Properties::default(),
            false => Properties { append_only: false, ..input.properties.clone() },
        };
        let width = input.width();
        let passed = passed(&keys, width, counted).map(|column| &input.schema.fields()[column]);
        let fields: Vec<_> = passed.chain(bounds.iter().map(|(_, field)| field)).cloned().collect();
        let end = Field::new("window_end", input.schema.field(time).data_type().clone(), true);
        let kept = input.schema.fields().iter().cloned().chain([Arc::new(end)]);
        let kept = Arc::new(Schema::new(kept.collect::<Vec<_>>()));
        let retention = Retention::default();
        let input = Box::new(input);
        let node =
            Node::Session(Session { input, keys, time, gap, bounds, counted, retention, kept });
        IncrementalPlan::new(node, Arc::new(Schema::new(fields)), properties)
    }
}

/// The columns of an input of so many that come before the bounds of sessions.
fn passed(keys: &[usize], width: usize, counted: bool) -> impl Iterator<Item = usize> {
    (0..width).filter(move |column| !counted || keys.contains(column))
}

/// The sessions that window functions are the bounds of, if they are all of the same ones.
pub(super) fn from_window(
    input: &IncrementalPlan,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    functions: &[WindowFunction],
) -> Option<IncrementalPlan> {
    let &[(time, SortOptions { descending: false, .. })] = order else { return None };
    let DataType::Timestamp(unit, _) = input.schema.field(time).data_type() else { return None };
    let unit = microseconds::nanoseconds(*unit);
    let bound = |function: &WindowFunction| {
        // The name of a window function is its whole definition.
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
            ] if *of == time => Some((gap.checked_mul(1_000)?, (bound, field))),
            _ => None,
        }
    };
    let bounds: Option<Vec<_>> = functions.iter().map(bound).collect();
    let (gaps, bounds): (Vec<i64>, Vec<_>) = bounds?.into_iter().unzip();
    let gap = *gaps.first()?;
    let is_gap = gap % unit == 0 && gaps.iter().all(|other| *other == gap);
    let (keys, times) = (keys.to_vec(), (time, gap / unit));
    is_gap.then(|| IncrementalPlan::sessions(input.clone(), keys, times, bounds, false))
}

impl Session {
    /// The columns of the input that come before the bounds.
    fn passed(&self) -> impl Iterator<Item = usize> {
        passed(&self.keys, self.input.width(), self.counted)
    }

    /// The rows that are kept.
    fn kept_rows(&self) -> &'static str {
        match self.counted {
            true => "sessions and the numbers of their rows",
            false => "rows with their sessions",
        }
    }
}

impl PlanNode for Session {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    /// If the rows of a session need not be told apart, and none is ever taken back, they are counted.
    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let before: Vec<usize> = self.passed().collect();
        let Session { input, keys, time, gap, bounds, .. } = self;
        let width = before.len();
        let kept: Vec<usize> =
            (0..bounds.len()).filter(|number| required.contains(&(width + number))).collect();
        let columns = required.iter().filter(|&&column| column < width);
        let columns: Vec<usize> = columns.map(|&column| before[column]).collect();
        if kept.is_empty() {
            return prune(*input, &columns);
        }
        // Floats that are equal can differ in their bytes.
        let is_key = |column: &usize| {
            let data_type = input.schema.field(*column).data_type();
            keys.contains(column) && !has_floats(data_type)
        };
        let counted = input.properties.append_only
            && !keys.is_empty()
            && columns.iter().chain(&keys).all(is_key);
        let used: BTreeSet<usize> = columns.iter().chain(&keys).copied().chain([time]).collect();
        let (input, used) = prune_to(*input, used)?;
        let keys: Vec<usize> = keys.into_iter().map(|key| place(&used, key)).collect();
        let passed: Vec<usize> = passed(&keys, used.len(), counted).map(|at| used[at]).collect();
        let bounds = kept.iter().map(|&number| bounds[number].clone()).collect();
        let times = (place(&used, time), gap);
        let plan = IncrementalPlan::sessions(input, keys, times, bounds, counted);
        let place = |&column: &usize| match column.checked_sub(width) {
            None => place(&passed, before[column]),
            Some(number) => passed.len() + place(&kept, number),
        };
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
        let columns = self.passed().map(|column| match self.keys.contains(&column) {
            true => below[column].clone(),
            false => Err(changes("columns")),
        });
        let bounds = self.bounds.iter().map(|(bound, _)| match bound {
            SessionBound::End => below[self.time].clone(),
            SessionBound::Start => Err(changes("start")),
        });
        columns.chain(bounds).collect()
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
        if self.counted {
            canonical.text("counted");
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
        let (keys, output) = (&self.keys, &plan.schema);
        let spec = sessions::Spec::compile(schema, keys, times, &bounds, self.counted, output)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("session");
        let by = compiler.pruning(&id, &self.retention, Some(END));
        let operator = SessionRows { input, spec, by };
        Ok(compiler.add_stateful(plan, operator, Vec::new(), Some(id)))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        let unit = match below.0.field(self.time).data_type() {
            DataType::Timestamp(unit, _) => microseconds::nanoseconds(*unit),
            _ => 1,
        };
        let gap = ScalarValue::new_interval_mdn(0, 0, self.gap.saturating_mul(unit));
        let gap = names::quoted(&gap).unwrap_or_default();
        let what = if self.counted { "counted sessions" } else { "sessions" };
        write!(line, "{what} of {} with gaps of {gap}", below.column(self.time))?;
        if !self.keys.is_empty() {
            write!(line, " by {}", below.plain(&self.keys))?;
        }
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Partition(Names(&self.input.schema).each(&self.keys)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![(self.kept_rows(), &self.kept, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let mut kept = self.kept_rows().to_string();
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
    /// The pruning of the kept rows, by the ends of their sessions.
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

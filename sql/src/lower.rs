//! From plans to dataflows: what a worker builds for a table, a view, a subscription.
//!
//! All workers build the same dataflows in the same order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alluvium_dataflow::aggregate::{self, Function};
use alluvium_dataflow::arrangement::{Kept, keep};
use alluvium_dataflow::codec::{CodecError, KeyCodec, ValueCodec};
use alluvium_dataflow::constant::constant;
use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::default::or_default;
use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::distinct::distinct;
use alluvium_dataflow::errors::keep_errors;
use alluvium_dataflow::exchange::exchange;
use alluvium_dataflow::import::Imports;
use alluvium_dataflow::join::join;
use alluvium_dataflow::layout::Layout;
use alluvium_dataflow::map::{can_fail, map};
use alluvium_dataflow::sink;
pub use alluvium_dataflow::sink::Sink;
use alluvium_dataflow::table::{self, TableInput};
use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::{Handle as Probe, Probe as _};
use timely::dataflow::operators::{Concat, Concatenate};
use timely::worker::Worker;

use crate::plan::{IncrementalPlan, Node};

/// A table as a worker runs it.
pub struct TableDataflow {
    /// Where its changes enter.
    pub input: TableInput,
    /// What it holds.
    pub contents: Contents,
    /// How far it has come.
    pub probe: Probe<Epoch>,
    /// Copies of absent rows that were to be taken away and were not: only unkeyed tables refuse.
    pub refused: Arc<AtomicU64>,
}

/// A view as a worker runs it. Dropping it ends the dataflow; what is on its way is let go.
pub struct ViewDataflow {
    /// Its rows, if it was asked to keep them.
    pub contents: Option<Contents>,
    /// Rows of its errors, if any of its expressions can fail: (expression, row, message: Utf8; epoch: UInt64).
    pub errors: Option<Contents>,
    /// How far it has come.
    pub probe: Probe<Epoch>,
    /// Ends the dataflow when dropped.
    _imports: Imports,
}

/// What a dataflow that is being built may read.
pub trait Relations {
    /// The contents of a table or materialized view, if there is one of this name.
    fn contents(&self, relation: &str) -> Option<Contents>;
}

/// Checks that rows of these columns can be kept: the first column type without an encoding is refused.
pub fn check(schema: &SchemaRef) -> Result<(), CodecError> {
    let types: Vec<DataType> =
        schema.fields().iter().map(|field| field.data_type().clone()).collect();
    KeyCodec::new(&types)?;
    ValueCodec::new(&types)?;
    Ok(())
}

/// Checks every row a plan keeps; see [`check`].
pub fn check_plan(plan: &IncrementalPlan) -> Result<(), CodecError> {
    check(&plan.schema)?;
    match &plan.node {
        Node::Scan { .. } | Node::Constant { .. } => Ok(()),
        Node::Map { input, .. }
        | Node::Aggregate { input, .. }
        | Node::Distinct { input }
        | Node::View { input, .. } => check_plan(input),
        Node::Join { left, right, .. } => check_plan(left).and_then(|()| check_plan(right)),
        Node::Union { inputs } => inputs.iter().try_for_each(check_plan),
    }
}

/// Builds a table that changes from `start` on. `primary_key` is empty for one without a key.
///
/// Its columns have passed [`check`].
pub fn table(
    worker: &mut Worker,
    name: &str,
    schema: SchemaRef,
    primary_key: &[usize],
    start: Epoch,
) -> TableDataflow {
    let refused = Arc::new(AtomicU64::new(0));
    let probe = Probe::new();
    let (input, contents) = worker.dataflow_named::<Epoch, _, _>(name, |scope| {
        let (mut input, rows) =
            table::table(scope, name, schema, primary_key, Arc::clone(&refused))
                .expect("the columns of a table are checked before it is built");
        input.advance_to(start);
        rows.arranged.stream.clone().probe_with(&probe);
        (input, Contents::new(&rows))
    });
    TableDataflow { input, contents, probe, refused }
}

/// Builds a view as of `as_of`, the last complete epoch: what its relations hold then enters at that
/// epoch, later changes at theirs.
///
/// The plan has passed [`check_plan`], and `relations` knows what it scans.
pub fn view(
    worker: &mut Worker,
    name: &str,
    plan: &IncrementalPlan,
    as_of: Epoch,
    relations: &dyn Relations,
    kept: bool,
    sink: Option<Box<dyn Sink>>,
) -> ViewDataflow {
    worker.dataflow_named::<Epoch, _, _>(name, |scope| {
        let mut lowering = Lowering {
            scope,
            as_of,
            relations,
            imports: Imports::default(),
            scans: HashMap::new(),
            errors: Vec::new(),
            inside_views: 0,
        };
        let expectation = "a plan is checked before it is built";
        let rows = lowering.rows(plan).expect(expectation);
        let Lowering { imports, errors, .. } = lowering;
        let probe = Probe::new();
        rows.clone().probe_with(&probe);
        let contents = kept.then(|| {
            let layout = Layout::rows(plan.schema.clone()).expect(expectation);
            let kept = keep(rows.clone(), layout, "Contents");
            kept.arranged.stream.clone().probe_with(&probe);
            Contents::new(&kept)
        });
        if let Some(taker) = sink {
            sink::sink(rows, taker).probe_with(&probe);
        }
        let errors = (!errors.is_empty()).then(|| {
            let kept = keep_errors(scope.concatenate(errors)).expect("errors have one schema");
            kept.arranged.stream.clone().probe_with(&probe);
            Contents::new(&kept)
        });
        ViewDataflow { contents, errors, probe, _imports: imports }
    })
}

/// A dataflow in the making.
struct Lowering<'scope, 'a> {
    scope: Scope<'scope, Epoch>,
    as_of: Epoch,
    relations: &'a dyn Relations,
    imports: Imports,
    scans: HashMap<String, Kept<'scope, Epoch>>,
    errors: Vec<DeltaStream<'scope, Epoch>>,
    /// How many views that report their errors themselves surround the node in hand.
    inside_views: usize,
}

impl<'scope> Lowering<'scope, '_> {
    fn rows(&mut self, plan: &IncrementalPlan) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
        match &plan.node {
            Node::Scan { relation, columns } => Ok(self.scan(relation).deltas(columns)),
            Node::Constant { rows } => Ok(constant(self.scope, rows.clone(), self.as_of)),
            Node::Map { input, filter, project } => {
                let fallible = filter.iter().chain(project).any(can_fail);
                let stream = self.rows(input)?;
                let (rows, errors) =
                    map(stream, filter.clone(), project.clone(), plan.schema.clone());
                if fallible {
                    self.report(errors);
                }
                Ok(rows)
            }
            Node::Join { left, right, on } => {
                let keys: (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
                let left_rows = self.arranged(left, &keys.0, "ArrangeLeft")?;
                let right_rows = self.arranged(right, &keys.1, "ArrangeRight")?;
                let all =
                    |side: &IncrementalPlan| (0..side.schema.fields().len()).collect::<Vec<_>>();
                Ok(join(left_rows, right_rows, &all(left), &all(right)))
            }
            Node::Aggregate { input, keys, aggregates } => {
                let stream = self.rows(input)?;
                let names: Vec<String> = plan.schema.fields()[keys.len()..]
                    .iter()
                    .map(|field| field.name().clone())
                    .collect();
                let groups = aggregate::aggregate(
                    stream,
                    &input.schema,
                    keys,
                    aggregates,
                    &plan.schema,
                    &names,
                )?;
                let mut answered = groups.rows.clone();
                if let Some(errors) = groups.errors {
                    // A group whose total is an error has an answer too: no row, and no default.
                    answered = answered.concat(errors.clone());
                    self.report(errors);
                }
                if !keys.is_empty() {
                    return Ok(groups.rows);
                }
                let row = empty_group(&plan.schema, aggregates);
                let constant = constant(self.scope, row.clone(), self.as_of);
                let default = exchange(constant, &[], KeyCodec::new(&[])?);
                Ok(or_default(groups.rows, answered, default, row))
            }
            Node::Distinct { input } => {
                let stream = self.rows(input)?;
                let columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
                let stream = exchange(stream, &columns, key_codec(&plan.schema, &columns)?);
                distinct(stream, plan.schema.clone())
            }
            Node::Union { inputs } => {
                let mut streams = Vec::with_capacity(inputs.len());
                for input in inputs {
                    streams.push(relabelled(self.rows(input)?, input, &plan.schema));
                }
                Ok(self.scope.concatenate(streams))
            }
            Node::View { input, .. } => {
                self.inside_views += 1;
                let rows = self.rows(input);
                self.inside_views -= 1;
                rows
            }
        }
    }

    fn scan(&mut self, relation: &str) -> Kept<'scope, Epoch> {
        if let Some(scan) = self.scans.get(relation) {
            return scan.clone();
        }
        let contents = self
            .relations
            .contents(relation)
            .expect("a relation cannot be dropped while a view of it is built");
        let scan = contents.import(self.scope, self.as_of, &mut self.imports);
        self.scans.insert(relation.to_owned(), scan.clone());
        scan
    }

    fn arranged(
        &mut self,
        plan: &IncrementalPlan,
        keys: &[usize],
        name: &str,
    ) -> Result<Kept<'scope, Epoch>, CodecError> {
        let rows = self.rows(plan)?;
        let rows = exchange(rows, keys, key_codec(&plan.schema, keys)?);
        Ok(keep(rows, Layout::keyed(plan.schema.clone(), keys)?, name))
    }

    fn report(&mut self, errors: DeltaStream<'scope, Epoch>) {
        if self.inside_views == 0 {
            self.errors.push(errors);
        }
    }
}

fn key_codec(schema: &SchemaRef, keys: &[usize]) -> Result<KeyCodec, CodecError> {
    let types: Vec<DataType> =
        keys.iter().map(|&key| schema.field(key).data_type().clone()).collect();
    KeyCodec::new(&types)
}

/// The rows of `plan` under the names of `schema`, and with NULLs where that allows them.
fn relabelled<'scope>(
    rows: DeltaStream<'scope, Epoch>,
    plan: &IncrementalPlan,
    schema: &SchemaRef,
) -> DeltaStream<'scope, Epoch> {
    if plan.schema == *schema {
        return rows;
    }
    let column = |(number, field): (usize, &FieldRef)| {
        Arc::new(Column::new(field.name(), number)) as Arc<dyn PhysicalExpr>
    };
    let columns = plan.schema.fields().iter().enumerate().map(column).collect();
    let (rows, _never_fails) = map(rows, None, columns, schema.clone());
    rows
}

/// What an aggregate without keys comes to over no rows.
fn empty_group(schema: &SchemaRef, aggregates: &[aggregate::Aggregate]) -> RecordBatch {
    let columns: Vec<ArrayRef> = aggregates
        .iter()
        .map(|aggregate| match aggregate.function {
            Function::Count => Arc::new(Int64Array::from(vec![0])) as ArrayRef,
            _ => new_null_array(&aggregate.result, 1),
        })
        .collect();
    RecordBatch::try_new(schema.clone(), columns).expect("a column for each aggregate")
}

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
use alluvium_dataflow::delta::{Delta, DeltaStream, Times};
use alluvium_dataflow::distinct::distinct;
use alluvium_dataflow::errors::keep_errors;
use alluvium_dataflow::exchange::{broadcast, exchange};
use alluvium_dataflow::import::Imports;
use alluvium_dataflow::input::{Input, input};
use alluvium_dataflow::join::join;
use alluvium_dataflow::layout::{Layout, all_columns, types_of};
use alluvium_dataflow::map::{can_fail, map, message};
use alluvium_dataflow::outer_join::outer_join;
use alluvium_dataflow::ranked::top;
use alluvium_dataflow::sets::set_operation;
use alluvium_dataflow::sink;
pub use alluvium_dataflow::sink::Sink;
use alluvium_dataflow::table::{self, TableInput};
use alluvium_dataflow::unnest::unnest;
use alluvium_dataflow::window::window;
use alluvium_trace::Epoch;
use alluvium_trace::memory::context;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::{Handle as Probe, Probe as _};
use timely::dataflow::operators::{Concat, Concatenate};
use timely::worker::Worker;

use crate::plan::node::{self, Side};
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

/// A view or an index as a worker runs it. Dropping it ends the dataflow; what is on its way is let go.
pub struct ViewDataflow {
    /// Its rows, if it was asked to keep them.
    pub contents: Option<Contents>,
    /// Rows of its errors, if any of its expressions can fail: (expression, row, message: Utf8; epoch: UInt64).
    pub errors: Option<Contents>,
    /// How far it has come.
    pub probe: Probe<Epoch>,
    /// Where the rows enter that pass through tables which keep none.
    pub streams: Vec<StreamInput>,
    /// Ends the dataflow when dropped.
    _imports: Imports,
}

/// Where the rows of a table that keeps none enter a view, as they pass.
pub struct StreamInput {
    /// The table.
    pub relation: String,
    columns: Vec<usize>,
    input: Input<Epoch>,
}

impl StreamInput {
    /// Rows of the table and their weights at `epoch`, which must not be before the last [`StreamInput::advance_to`].
    /// Without weights every row is inserted once. They are asked for when the dataflow takes them.
    pub fn send(
        &mut self,
        epoch: Epoch,
        rows: impl FnOnce() -> (RecordBatch, Option<ScalarBuffer<i64>>) + 'static,
    ) {
        let columns = self.columns.clone();
        self.input.send(epoch, move || {
            let (rows, weights) = rows();
            let rows = rows.project(&columns).expect("the columns are of the table");
            Delta::new(rows, Times::Same(epoch), weights)
        });
    }

    /// Promises to send nothing before `epoch`.
    pub fn advance_to(&mut self, epoch: Epoch) {
        self.input.advance_to(epoch);
    }
}

/// What a dataflow that is being built may read.
pub trait Relations {
    /// The contents of a table or materialized view, if there is one of this name.
    fn contents(&self, relation: &str) -> Option<Contents>;

    /// The contents of the index of this number, if there is one.
    fn index(&self, number: u64) -> Option<Contents>;
}

/// Checks that rows of these columns can be kept: the first column type without an encoding is refused.
pub fn check(schema: &SchemaRef) -> Result<(), CodecError> {
    let types = types_of(schema, &all_columns(schema));
    ValueCodec::new(&types)?;
    Ok(())
}

/// Checks that rows can be found by these columns.
pub fn check_keys(schema: &SchemaRef, keys: &[usize]) -> Result<(), CodecError> {
    KeyCodec::new(&types_of(schema, keys)).map(drop)
}

/// Checks that rows can be put into this order.
fn check_order(schema: &SchemaRef, order: &[(usize, SortOptions)]) -> Result<(), CodecError> {
    let columns: Vec<usize> = order.iter().map(|(column, _)| *column).collect();
    check_keys(schema, &columns)
}

/// Checks every row a plan keeps; see [`check`].
pub fn check_plan(plan: &IncrementalPlan) -> Result<(), CodecError> {
    check(&plan.schema)?;
    match &plan.node {
        // A list that is made to be unnested is never kept.
        Node::Unnest(node::Unnest { input, .. }) if matches!(input.node, Node::Map(_)) => {
            return input.inputs().into_iter().try_for_each(check_plan);
        }
        // Whatever is computed may sort what it is computed of.
        Node::Aggregate(node::Aggregate { input, keys, aggregates, fallbacks }) => {
            let added_up = aggregates.iter().filter_map(|aggregate| aggregate.input);
            let fallbacks = fallbacks.iter().flat_map(|function| function.columns());
            let used: Vec<usize> = keys.iter().copied().chain(added_up).chain(fallbacks).collect();
            check_keys(&input.schema, &used)?;
        }
        Node::Distinct(node::Distinct { input }) => {
            check_keys(&input.schema, &all_columns(&input.schema))?
        }
        Node::Top(node::Top { input, keys, order, .. }) => {
            check_keys(&input.schema, keys)?;
            check_order(&input.schema, order)?;
        }
        Node::Window(node::Window { input, keys, order, ties, .. }) => {
            check_keys(&input.schema, keys)?;
            check_order(&input.schema, order)?;
            check_keys(&input.schema, ties.as_deref().unwrap_or_default())?;
        }
        Node::SetOperation(_) => check_keys(&plan.schema, &all_columns(&plan.schema))?,
        Node::Join(node::Join { left, right, on })
        | Node::OuterJoin(node::OuterJoin { left, right, on, .. }) => {
            let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
            check_keys(&left.schema, &left_keys)?;
            check_keys(&right.schema, &right_keys)?;
        }
        _ => {}
    }
    plan.inputs().into_iter().try_for_each(check_plan)
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
    context::enter(context::current().for_relation(name));
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

/// How the rows of a view or an index are kept.
pub enum Keep {
    /// They are not.
    Nothing,
    /// To be read, in no order.
    Rows,
    /// Sorted by these columns.
    By(Vec<usize>),
}

/// Builds a view or an index as of `as_of`, the last complete epoch: what its relations hold then enters
/// at that epoch, later changes at theirs.
///
/// The plan has passed [`check_plan`], and `relations` knows what it scans.
pub fn view(
    worker: &mut Worker,
    name: &str,
    plan: &IncrementalPlan,
    as_of: Epoch,
    relations: &dyn Relations,
    kept: Keep,
    sink: Option<Box<dyn Sink>>,
) -> ViewDataflow {
    context::enter(context::current().for_relation(name));
    worker.dataflow_named::<Epoch, _, _>(name, |scope| {
        let mut lowering = Lowering {
            scope,
            as_of,
            relations,
            imports: Imports::default(),
            scans: HashMap::new(),
            built: Vec::new(),
            streams: Vec::new(),
            errors: Vec::new(),
            inside_views: 0,
        };
        let expectation = "a plan is checked before it is built";
        let (rows, arrangement) = match &kept {
            Keep::Nothing => (lowering.rows(plan).expect(expectation), None),
            Keep::Rows => {
                let rows = lowering.rows(plan).expect(expectation);
                let layout = Layout::rows(plan.schema.clone()).expect(expectation);
                (rows.clone(), Some(keep(rows, layout, "Contents")))
            }
            Keep::By(keys) => {
                let rows = lowering.partitioned(plan, keys).expect(expectation);
                let layout = Layout::keyed(plan.schema.clone(), keys).expect(expectation);
                (rows.clone(), Some(keep(rows, layout, "Index")))
            }
        };
        let Lowering { imports, streams, errors, .. } = lowering;
        let probe = Probe::new();
        rows.clone().probe_with(&probe);
        let contents = arrangement.map(|kept| {
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
        ViewDataflow { contents, errors, probe, streams, _imports: imports }
    })
}

/// The two sides of a join, each with the places of its columns.
type Sides<'scope> = (Kept<'scope, Epoch>, Vec<usize>, Kept<'scope, Epoch>, Vec<usize>);

/// A dataflow in the making.
struct Lowering<'scope, 'a> {
    scope: Scope<'scope, Epoch>,
    as_of: Epoch,
    relations: &'a dyn Relations,
    imports: Imports,
    scans: HashMap<String, Kept<'scope, Epoch>>,
    /// What takes state to know and was built already: equal plans are built once.
    built: Vec<(IncrementalPlan, DeltaStream<'scope, Epoch>)>,
    streams: Vec<StreamInput>,
    errors: Vec<DeltaStream<'scope, Epoch>>,
    /// How many views that report their errors themselves surround the node in hand.
    inside_views: usize,
}

impl<'scope> Lowering<'scope, '_> {
    /// The rows of a plan; those of an equal one, if they take state to know and there is one already.
    fn rows(&mut self, plan: &IncrementalPlan) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
        // What stands in a view does not report its errors: it is not what stands outside of it.
        let takes_state = matches!(
            plan.node,
            Node::Aggregate(_)
                | Node::Distinct(_)
                | Node::Top(_)
                | Node::Window(_)
                | Node::OuterJoin(_)
                | Node::SetOperation(_)
        );
        if !takes_state || self.inside_views > 0 {
            return self.build(plan);
        }
        if let Some((_, rows)) = self.built.iter().find(|(built, _)| built == plan) {
            return Ok(rows.clone());
        }
        let rows = self.build(plan)?;
        self.built.push((plan.clone(), rows.clone()));
        Ok(rows)
    }

    fn build(&mut self, plan: &IncrementalPlan) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
        match &plan.node {
            Node::Scan(node::Scan { relation, columns }) => Ok(self.scan(relation).deltas(columns)),
            Node::IndexScan(node::IndexScan { number, .. }) => {
                let all = all_columns(&plan.schema);
                Ok(self.index(*number).deltas(&all))
            }
            Node::Stream(node::Stream { relation, columns }) => {
                let (mut input, rows) = input(self.scope, relation);
                input.advance_to(self.as_of + 1);
                let (relation, columns) = (relation.clone(), columns.clone());
                self.streams.push(StreamInput { relation, columns, input });
                Ok(rows)
            }
            Node::Constant(node::Constant { rows }) => {
                Ok(constant(self.scope, rows.clone(), self.as_of))
            }
            Node::Map(node::Map { input, filter, project }) => {
                let fallible = filter.iter().chain(project).any(can_fail);
                let stream = self.rows(input)?;
                let (rows, errors) =
                    map(stream, filter.clone(), project.clone(), plan.schema.clone());
                if fallible {
                    self.report(errors);
                }
                Ok(rows)
            }
            Node::Unnest(node::Unnest { input, lists }) => {
                Ok(unnest(self.rows(input)?, lists.clone(), plan.schema.clone()))
            }
            Node::Join(inner @ node::Join { left, right, on }) => {
                let (left_rows, left_columns, right_rows, right_columns) =
                    self.sides(inner.broadcast(), left, right, on)?;
                Ok(join(left_rows, right_rows, &left_columns, &right_columns))
            }
            Node::OuterJoin(join @ node::OuterJoin { left, right, on, kind, residual }) => {
                let sides = match residual {
                    Some(_) => {
                        let keys: (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
                        let (left_rows, left_columns) = self.arranged_whole(left, &keys.0)?;
                        let (right_rows, right_columns) = self.arranged_whole(right, &keys.1)?;
                        (left_rows, left_columns, right_rows, right_columns)
                    }
                    None => self.sides(join.broadcast(), left, right, on)?,
                };
                let (left_rows, left_columns, right_rows, right_columns) = sides;
                let schema = plan.schema.clone();
                let joined = outer_join(
                    (left_rows, &left_columns),
                    (right_rows, &right_columns),
                    *kind,
                    residual.clone(),
                    schema,
                );
                if let Some(errors) = joined.errors
                    && residual.as_ref().is_some_and(can_fail)
                {
                    self.report(errors);
                }
                Ok(joined.rows)
            }
            Node::SetOperation(node::SetOperation { left, right, operation }) => {
                let columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
                let mut side = |side: &IncrementalPlan| -> Result<_, CodecError> {
                    let rows = relabelled(self.rows(side)?, side, &plan.schema);
                    Ok(exchange(rows, &columns, KeyCodec::new(&types_of(&plan.schema, &columns))?))
                };
                set_operation(side(left)?, side(right)?, *operation, plan.schema.clone())
            }
            Node::Aggregate(node::Aggregate { input, keys, aggregates, fallbacks }) => {
                let stream = self.rows(input)?;
                let groups = aggregate::aggregate(
                    stream,
                    &input.schema,
                    keys,
                    aggregates,
                    fallbacks,
                    input.properties.append_only,
                    &plan.schema,
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
                let row = empty_group(plan, &input.schema, aggregates, fallbacks)?;
                let constant = constant(self.scope, row.clone(), self.as_of);
                let default = exchange(constant, &[], KeyCodec::new(&[])?);
                Ok(or_default(groups.rows, answered, default, row))
            }
            Node::Distinct(node::Distinct { input }) => {
                let stream = self.rows(input)?;
                let columns = all_columns(&plan.schema);
                let codec = KeyCodec::new(&types_of(&plan.schema, &columns))?;
                let stream = exchange(stream, &columns, codec);
                distinct(stream, plan.schema.clone())
            }
            Node::Top(node::Top { input, keys, order, which }) => {
                let rows = self.rows(input)?;
                top(
                    rows,
                    &input.schema,
                    keys,
                    order,
                    *which,
                    input.properties.append_only,
                    plan.schema.clone(),
                )
            }
            Node::Window(node::Window { input, keys, order, ties, functions }) => {
                let rows = self.rows(input)?;
                let ties = ties.as_deref().unwrap_or_default();
                let windowed =
                    window(rows, &input.schema, keys, order, ties, functions, &plan.schema)?;
                self.report(windowed.errors);
                Ok(windowed.rows)
            }
            Node::Union(node::Union { inputs }) => {
                let mut streams = Vec::with_capacity(inputs.len());
                for input in inputs {
                    streams.push(relabelled(self.rows(input)?, input, &plan.schema));
                }
                Ok(self.scope.concatenate(streams))
            }
            Node::View(node::View { input, .. }) => {
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

    fn index(&mut self, number: u64) -> Kept<'scope, Epoch> {
        let contents = self
            .relations
            .index(number)
            .expect("an index is not dropped while a view that uses it is built");
        contents.import(self.scope, self.as_of, &mut self.imports)
    }

    /// The rows of a plan sorted by `keys`, and where its columns are in them.
    fn arranged(
        &mut self,
        plan: &IncrementalPlan,
        keys: &[usize],
    ) -> Result<(Kept<'scope, Epoch>, Vec<usize>), CodecError> {
        let all = all_columns(&plan.schema);
        match &plan.node {
            Node::IndexScan(node::IndexScan { number, keys: kept }) if kept == keys => {
                Ok((self.index(*number), all))
            }
            Node::Scan(node::Scan { relation, columns }) if plan.is_stored_by(keys) => {
                Ok((self.scan(relation), columns.clone()))
            }
            _ => {
                let rows = self.partitioned(plan, keys)?;
                Ok((keep(rows, Layout::keyed(plan.schema.clone(), keys)?, "Arrange"), all))
            }
        }
    }

    /// The rows of a plan, each on the worker of its `keys`.
    fn partitioned(
        &mut self,
        plan: &IncrementalPlan,
        keys: &[usize],
    ) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
        Ok(exchange(self.rows(plan)?, keys, KeyCodec::new(&types_of(&plan.schema, keys))?))
    }

    /// As [`Lowering::arranged`], with the rows of the plan and nothing else.
    fn arranged_whole(
        &mut self,
        plan: &IncrementalPlan,
        keys: &[usize],
    ) -> Result<(Kept<'scope, Epoch>, Vec<usize>), CodecError> {
        let (rows, columns) = self.arranged(plan, keys)?;
        if columns.iter().copied().eq(0..rows.layout.schema().fields().len()) {
            return Ok((rows, columns));
        }
        let rows = self.partitioned(plan, keys)?;
        let layout = Layout::keyed(plan.schema.clone(), keys)?;
        Ok((keep(rows, layout, "Arrange"), (0..plan.schema.fields().len()).collect()))
    }

    /// Both sides of a join by their keys, and where their columns are; or, of a join without keys, one
    /// side where it is and the other, a single row, on all workers.
    fn sides(
        &mut self,
        broadcast_side: Option<Side>,
        left: &IncrementalPlan,
        right: &IncrementalPlan,
        on: &[(usize, usize)],
    ) -> Result<Sides<'scope>, CodecError> {
        if let Some(side) = broadcast_side {
            let mut keep_under_one_key = |plan: &IncrementalPlan, everywhere: bool| {
                let rows = self.rows(plan)?;
                let rows = if everywhere { broadcast(rows) } else { rows };
                let layout = Layout::keyed(plan.schema.clone(), &[])?;
                let columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
                Ok::<_, CodecError>((keep(rows, layout, "Arrange"), columns))
            };
            let (left_rows, left_columns) = keep_under_one_key(left, side == Side::Left)?;
            let (right_rows, right_columns) = keep_under_one_key(right, side == Side::Right)?;
            return Ok((left_rows, left_columns, right_rows, right_columns));
        }
        let keys: (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
        let (left_rows, left_columns) = self.arranged(left, &keys.0)?;
        let (right_rows, right_columns) = self.arranged(right, &keys.1)?;
        Ok((left_rows, left_columns, right_rows, right_columns))
    }

    fn report(&mut self, errors: DeltaStream<'scope, Epoch>) {
        if self.inside_views == 0 {
            self.errors.push(errors);
        }
    }
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
fn empty_group(
    plan: &IncrementalPlan,
    input: &SchemaRef,
    aggregates: &[aggregate::Aggregate],
    fallbacks: &[aggregate::Fallback],
) -> Result<RecordBatch, CodecError> {
    let own = aggregates.iter().map(|aggregate| match aggregate.function {
        Function::Count => Ok(Arc::new(Int64Array::from(vec![0])) as ArrayRef),
        _ => Ok(new_null_array(&aggregate.result, 1)),
    });
    let others = fallbacks.iter().map(|function| function.over_nothing(input));
    let columns = own
        .chain(others)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| CodecError::Evaluation(message(&error)))?;
    Ok(RecordBatch::try_new(plan.schema.clone(), columns)?)
}

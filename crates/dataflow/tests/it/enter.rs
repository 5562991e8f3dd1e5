//! An arrangement of an outer scope, joined inside a loop.
//!
//! Differential dataflow's own wrapper for entered traces hides the batches from a tactic. The wrapper here gives
//! descriptions and frontiers one more coordinate and leaves the pages accessible; the tactic extends the times
//! it reads. The test counts the paths of a changing acyclic graph by following its edges in a loop: a linear
//! recursion, whose fixpoint needs only the join.

use std::collections::BTreeMap;

use alluvium_dataflow::arrangement::arrange;
use alluvium_dataflow::delta::{Delta, DeltaStream};
use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::input::input;
use alluvium_dataflow::layout::Layout;
use alluvium_trace::memory::context;
use alluvium_trace::{Batch, Cursors, Epoch, Spine};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::operators::join::{Fresh, JoinTactic, join_with_tactic};
use differential_dataflow::trace::{BatchReader, Description, TraceReader};
use timely::container::NoopBuilder;
use timely::dataflow::Scope;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Concat, ConnectLoop, Enter, Feedback, Leave};
use timely::order::Product;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::progress::timestamp::Refines;

use crate::harness::{Feed, Rows, Run, at, every_seed, feed, history, numbers};

/// Time inside the loop: the epoch and the iteration.
type Round = Product<Epoch, u64>;

/// A batch of the outer scope, seen from inside; tactics can read its pages.
#[derive(Clone)]
struct EnteredBatch {
    batch: Batch<Epoch>,
    description: Description<Round>,
}

impl EnteredBatch {
    fn new(batch: Batch<Epoch>) -> Self {
        let inner = |frontier: &Antichain<Epoch>| inward(frontier.borrow());
        let description = batch.description();
        let description = Description::new(
            inner(description.lower()),
            inner(description.upper()),
            inner(description.since()),
        );
        Self { batch, description }
    }
}

impl BatchReader for EnteredBatch {
    type Time = Round;
    fn len(&self) -> usize {
        self.batch.len()
    }
    fn description(&self) -> &Description<Round> {
        &self.description
    }
}

fn inward(frontier: AntichainRef<'_, Epoch>) -> Antichain<Round> {
    frontier.iter().map(|epoch| Round::to_inner(*epoch)).collect()
}

fn outward(frontier: AntichainRef<'_, Round>) -> Antichain<Epoch> {
    frontier.iter().map(|time| time.outer).collect()
}

/// A trace of the outer scope, seen from inside.
struct Entered<Tr> {
    trace: Tr,
    logical: Antichain<Round>,
    physical: Antichain<Round>,
}

impl<Tr> TraceReader for Entered<Tr>
where
    Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>>,
{
    type Time = Round;
    type Batch = EnteredBatch;

    fn batches_through(&mut self, upper: AntichainRef<'_, Round>) -> Option<Vec<EnteredBatch>> {
        let batches = self.trace.batches_through(outward(upper).borrow())?;
        Some(batches.into_iter().map(EnteredBatch::new).collect())
    }
    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, Round>) {
        self.trace.set_logical_compaction(outward(frontier).borrow());
    }
    fn get_logical_compaction(&mut self) -> AntichainRef<'_, Round> {
        self.logical = inward(self.trace.get_logical_compaction());
        self.logical.borrow()
    }
    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, Round>) {
        self.trace.set_physical_compaction(outward(frontier).borrow());
    }
    fn get_physical_compaction(&mut self) -> AntichainRef<'_, Round> {
        self.physical = inward(self.trace.get_physical_compaction());
        self.physical.borrow()
    }
    fn map_batches<F: FnMut(&EnteredBatch)>(&self, mut visit: F) {
        self.trace.map_batches(|batch| visit(&EnteredBatch::new(batch.clone())));
    }
}

/// Joins paths, by their end, with edges, by their start: (start, end) and (start, end) to (start, end).
struct Follow {
    paths: Layout,
    edges: Layout,
}

impl JoinTactic<Batch<Round>, EnteredBatch, Delta<Round>> for Follow {
    fn prep(
        &mut self,
        paths: Vec<Batch<Round>>,
        edges: Vec<EnteredBatch>,
        _fresh: Fresh,
        _meet: Round,
    ) -> Box<dyn Iterator<Item = Delta<Round>>> {
        use alluvium_dataflow::codec::Encoded;
        use differential_dataflow::lattice::Lattice;
        let mut paths = Cursors::new(paths);
        let mut edges = Cursors::new(edges.into_iter().map(|entered| entered.batch));
        let (mut keys, mut starts, mut ends) = (Encoded::new(), Encoded::new(), Encoded::new());
        let (mut times, mut weights) = (Vec::new(), Vec::new());
        while let (Some(end), Some(start)) = (paths.key(), edges.key()) {
            match end.cmp(start) {
                std::cmp::Ordering::Less => paths.seek_key(start),
                std::cmp::Ordering::Greater => edges.seek_key(end),
                std::cmp::Ordering::Equal => {
                    let end = end.to_vec();
                    while let Some(path) = paths.val() {
                        edges.rewind_vals();
                        while let Some(edge) = edges.val() {
                            paths.updates(|path_time, path_weight| {
                                edges.updates(|epoch, edge_weight| {
                                    keys.push(&end);
                                    starts.push(path);
                                    ends.push(edge);
                                    times.push(path_time.join(&Round::to_inner(epoch)));
                                    weights.push(path_weight * edge_weight);
                                });
                            });
                            edges.step_val();
                        }
                        paths.step_val();
                    }
                    paths.step_key();
                    edges.step_key();
                }
            }
        }
        if times.is_empty() {
            return Box::new(std::iter::empty());
        }
        let mut columns = self.paths.decode(keys.iter(), starts.iter(), &[0]);
        columns.extend(self.edges.decode(keys.iter(), ends.iter(), &[1]));
        let rows = arrow::array::RecordBatch::try_new(numbers(&["start", "end"]), columns).unwrap();
        let times = alluvium_dataflow::delta::Times::Each(times.into());
        Box::new(std::iter::once(Delta::new(rows, times, Some(weights.into()))))
    }
}

/// Converts the time of each row; messages keep theirs.
fn with_times<'scope, M, From, To>(
    stream: timely::dataflow::Stream<'scope, M, Delta<From>>,
    convert: impl Fn(&From) -> To + Copy + 'static,
) -> timely::dataflow::Stream<'scope, M, Delta<To>>
where
    M: timely::progress::Timestamp,
    From: Clone + Default + 'static,
    To: Clone + Default + 'static,
{
    stream.unary::<NoopBuilder<Delta<To>>, _, _, _>(Pipeline, "Times", move |_, _| {
        move |input, output| {
            input.for_each(|capability, delta: &mut Delta<From>| {
                let times: Vec<To> = (0..delta.len()).map(|row| convert(delta.time(row))).collect();
                let mut converted = Delta::new(
                    delta.rows.clone(),
                    alluvium_dataflow::delta::Times::Each(times.into()),
                    delta.weights.clone(),
                );
                output.session_with_builder(&capability).give_container(&mut converted);
            });
        }
    })
}

fn paths<'scope>(
    scope: Scope<'scope, Epoch>,
    edges: DeltaStream<'scope, Epoch>,
) -> DeltaStream<'scope, Epoch> {
    let schema = numbers(&["start", "end"]);
    let by_start = Layout::keyed(schema.clone(), &[0]).unwrap();
    let by_end = Layout::keyed(schema, &[1]).unwrap();
    let kept = arrange::<_, Spine<Epoch>>(edges.clone(), &by_start, "Edges", &context::current());
    scope.iterative::<u64, _, _>(|inner| {
        let entered = Arranged {
            stream: kept.stream.enter(inner).map(EnteredBatch::new),
            trace: Entered {
                trace: kept.trace,
                logical: Antichain::new(),
                physical: Antichain::new(),
            },
        };
        let first = with_times(edges.enter(inner), |epoch: &Epoch| Round::to_inner(*epoch));
        let (handle, longer) = inner.feedback(Product::new(0, 1));
        // A row that enters the next iteration changes one iteration later.
        let longer = with_times(longer, |time: &Round| Product::new(time.outer, time.inner + 1));
        let all = first.concat(longer);
        let ended = arrange::<_, Spine<Round>>(all.clone(), &by_end, "Paths", &context::current());
        let tactic = Follow { paths: by_end, edges: by_start };
        join_with_tactic(ended, entered, tactic).connect_loop(handle);
        with_times(all, |time: &Round| time.outer).leave(scope)
    })
}

/// The number of paths between each two nodes.
fn count_paths(edges: &Rows) -> Rows {
    let mut all = edges.clone();
    let mut last = edges.clone();
    while !last.is_empty() {
        let mut longer = Rows::new();
        for (path, count) in &last {
            for (edge, times) in edges.iter().filter(|(edge, _)| edge[0] == path[1]) {
                *longer.entry(vec![path[0], edge[1]]).or_default() += count * times;
            }
        }
        for (path, count) in &longer {
            *all.entry(path.clone()).or_default() += count;
        }
        last = longer;
    }
    all
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    // Paths are not exchanged, so there is one worker.
    let run = Run { workers: 1, ..Run::draw(seed, fault) };
    let edges = history(&mut run.random(0xe47e4), run.epochs, |random| {
        let start = random.below(6) as i64;
        vec![Some(start), Some(start + 1 + random.below(3) as i64)]
    });
    let (settings, script) = (run.clone(), edges.clone());
    let views = run.execute(["paths"], move |worker, watch| {
        let input = worker.dataflow(|scope| {
            let (input, edges) = input(scope, "edges", &context::current());
            watch.watch(&"paths", paths(scope, edges));
            input
        });
        let schema = numbers(&["start", "end"]);
        feed(worker, &settings, &schema, vec![Feed::new(input, &script)], &watch.probe);
    });
    run.compare(&views, |epoch| BTreeMap::from([("paths", count_paths(&at(&edges, epoch)))]))
}

#[test]
fn an_outer_arrangement_joined_inside_a_loop_counts_the_paths_of_a_changing_graph() {
    every_seed(60, check);
}

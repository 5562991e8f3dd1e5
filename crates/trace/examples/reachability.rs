//! Which places of a map can be reached, where the roads take ten times the memory that the program may use.
//!
//! ```sh
//! cargo run --release -p alluvium-trace --example reachability -- [MiB of memory] [workers]
//! ```
//!
//! The program is one of differential-dataflow: it arranges roads by where they start, and follows them in `iterate`. It
//! says `arrange_typed` in place of `arrange_by_key`, so that state goes to files when the budget is used up. Each road has
//! a name, which is stored and never needed.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use alluvium_storage::{Scratch, Storage};
use alluvium_trace::Failure;
use alluvium_trace::memory::{MemoryBudget, StateContext, context};
use alluvium_trace::typed::{ArrangeTyped, Codec, DistinctTyped, TypedArrangement};
use differential_dataflow::VecCollection;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::input::Input;
use differential_dataflow::operators::Iterate;
use differential_dataflow::trace::TraceReader;
use procfs::process::Process;
use timely::Config;

type Place = u64;

/// Where a road leads, and its name.
type Road = (Place, String);

/// How many roads start at a place.
const ROADS: u64 = 8;

/// The bytes of a road in the arrangement.
const ROAD_BYTES: u64 = 41;

/// Roads lead to places of the same region.
const REGIONS: u64 = 4;

const MIB: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |given| given.parse());
    let (memory, workers) = (number(64)? * MIB, number(2)? as usize);
    let places = 10 * memory / (ROADS * ROAD_BYTES);

    let files: Arc<dyn Storage> = Arc::new(Scratch::create()?);
    let state = StateContext::new(MemoryBudget::new(memory as usize), Some(files));
    let results = Arc::new(Results::default());
    let (budget, shared) = (state.budget().clone(), Arc::clone(&results));
    let guards = timely::execute(Config::process(workers), move |worker| {
        // From here on, the budget counts the state of this worker.
        context::enter(state.for_worker(Arc::default()));
        let followed = catch_unwind(AssertUnwindSafe(|| follow_roads(worker, places, &shared)));
        if let Err(caught) = followed {
            // The other workers would wait for this one.
            eprintln!("{}", Failure::reason(&*caught).unwrap_or("a worker has panicked"));
            Scratch::remove_all();
            std::process::exit(1);
        }
    })?;
    guards.join().into_iter().collect::<Result<Vec<()>, String>>()?;

    let arranged = results.arranged.load(Ordering::Relaxed) as u64;
    println!("arrangement: {} MiB, budget: {} MiB", arranged / MIB, memory / MIB);
    for region in 0..2 {
        let reached = results.reached[region].load(Ordering::Relaxed);
        println!("from place {region}: {reached} of {places} places are reached");
        assert_eq!(reached, in_order(region as Place, places), "what one pass finds");
    }
    println!("memory at its peak: counted {} MiB", budget.peak() as u64 / MIB);
    println!("memory at its peak: resident {} MiB", peak_resident()? / MIB);
    Ok(())
}

/// The findings of all workers.
#[derive(Default)]
struct Results {
    /// The bytes of the arranged roads.
    arranged: AtomicUsize,
    /// How many places are reached in each epoch beyond those of the one before.
    reached: [AtomicI64; 2],
}

/// The places that can be reached from the roots.
fn reachable<'scope>(
    roads: TypedArrangement<'scope, Place, Road, u64>,
    roots: VecCollection<'scope, u64, Place>,
) -> VecCollection<'scope, u64, Place> {
    roots.clone().iterate(|scope, reached| {
        let (roads, roots) = (roads.enter(scope), roots.enter(scope));
        reached
            .map(|place| (place, ()))
            .arrange_typed()
            // The destination comes first: the name need not be decoded.
            .join_core(roads, |_, _, road| [Place::decode(&mut road.bytes())])
            .concat(roots)
            .distinct_typed()
    })
}

/// The program of one worker: all roads and one root, and then another root.
fn follow_roads(worker: &mut timely::worker::Worker, places: u64, results: &Arc<Results>) {
    let (mut roads, mut roots, trace, probe) = worker.dataflow(|scope| {
        let (roads_input, roads) = scope.new_collection();
        let (roots_input, roots) = scope.new_collection();
        let roads = roads.arrange_typed_named("Roads");
        let trace = roads.trace.clone();
        let results = Arc::clone(results);
        let reached = reachable(roads, roots).inspect(move |(_, epoch, change)| {
            results.reached[*epoch as usize].fetch_add(*change as i64, Ordering::Relaxed);
        });
        (roads_input, roots_input, trace, reached.probe().0)
    });

    let (index, peers) = (worker.index() as u64, worker.peers());
    let start = Instant::now();
    // Each worker reads what it will keep. So no worker is ahead of another, whose messages would wait in memory.
    let is_own = |place: &Place| place.hashed() % peers as u64 == index;
    for (count, place) in (0..places).filter(is_own).enumerate() {
        roads_from(place, places).for_each(|road| roads.insert((place, road)));
        // Inserted rows go to the arrangement before more comes.
        if count % 500 == 0 {
            roads.flush();
            worker.step();
        }
    }
    for (root, what) in
        [(0, "sort and arrange the roads, follow them from place 0"), (1, "and from 1")]
    {
        if index == 0 {
            roots.insert(root);
        }
        roads.advance_to(root + 1);
        roads.flush();
        roots.advance_to(root + 1);
        roots.flush();
        while probe.less_than(roots.time()) {
            worker.step_or_park(None);
        }
        if index == 0 {
            println!("{what}: {:.1} s since the start", start.elapsed().as_secs_f64());
        }
    }
    trace.map_batches(|batch| {
        results.arranged.fetch_add(batch.rows().bytes(), Ordering::Relaxed);
    });
}

/// The roads that start at a place: forward, to places of its region.
fn roads_from(place: Place, places: u64) -> impl Iterator<Item = Road> {
    let mut random = fastrand::Rng::with_seed(place);
    (0..ROADS)
        .map(move |number| {
            let to = place + REGIONS * random.u64(1..5_000);
            (to, format!("road {number} from {place:08} to {to:08}"))
        })
        .filter(move |(to, _)| *to < places)
}

/// How many places are reached from one: as all roads lead forward, one pass finds them.
fn in_order(root: Place, places: u64) -> i64 {
    let mut is_reached = vec![false; places as usize];
    is_reached[root as usize] = true;
    for place in root..places {
        if is_reached[place as usize] {
            roads_from(place, places).for_each(|(to, _)| is_reached[to as usize] = true);
        }
    }
    is_reached.iter().filter(|is_reached| **is_reached).count() as i64
}

/// The most bytes of this process that were in memory.
fn peak_resident() -> Result<u64, Box<dyn Error>> {
    let status = Process::myself()?.status()?;
    Ok(status.vmhwm.ok_or("the system does not count it")? << 10)
}

//! The cost of subscribers: the call that commits, and the time on processors for each change that one of them takes.
//!
//! One row is committed each 20 ms, as a client that has its own pace would do, into a table with a view over it. All
//! subscribers of the view are tasks of one thread, which is woken when there is something for one of them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Durability, Engine, Subscription};
use alluvium_benches::processors;
use futures::Stream;
use tempfile::TempDir;

const PERIOD: Duration = Duration::from_millis(20);
const EPOCHS: u64 = 250;

/// The tasks that can continue, by number.
#[derive(Default)]
struct Ready {
    tasks: Mutex<VecDeque<usize>>,
    some: Condvar,
}

/// Wakes one of them.
struct Task(usize, Arc<Ready>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let Self(number, ready) = &*self;
        ready.tasks.lock().unwrap_or_else(PoisonError::into_inner).push_back(*number);
        ready.some.notify_one();
    }
}

/// Takes changes until all subscriptions have ended; `taken` counts them.
fn take_all(mut subscriptions: Vec<Subscription>, taken: &AtomicU64) {
    let ready = Arc::new(Ready::default());
    let wakers: Vec<Waker> = (0..subscriptions.len())
        .map(|number| Arc::new(Task(number, ready.clone())).into())
        .collect();
    ready.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend(0..subscriptions.len());
    let mut open = subscriptions.len();
    while open > 0 {
        let mut tasks = ready.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.is_empty() {
            tasks = ready.some.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
        let woken = std::mem::take(&mut *tasks);
        drop(tasks);
        for number in woken {
            let mut context = Context::from_waker(&wakers[number]);
            loop {
                match Pin::new(&mut subscriptions[number]).poll_next(&mut context) {
                    Poll::Ready(Some(change)) => {
                        change.expect("it is not behind");
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                    Poll::Ready(None) => {
                        open -= 1;
                        break;
                    }
                    Poll::Pending => break,
                }
            }
        }
    }
}

fn row(number: u64) -> RecordBatch {
    let column = |value: u64| Arc::new(Int64Array::from(vec![value as i64])) as ArrayRef;
    RecordBatch::try_from_iter([("k", column(number % 100)), ("v", column(number))])
        .expect("two columns")
}

/// The cost of a run: the median and the 99th percentile of a commit in microseconds, the seconds on processors in all, and how
/// many changes were taken.
struct Cost {
    median: f64,
    tail: f64,
    processors: f64,
    taken: u64,
}

fn cost(subscribers: usize, view: &str, is_durable: bool) -> Cost {
    let directory = TempDir::new().expect("there is a temporary folder");
    let builder = Engine::builder().workers(1);
    let engine = match is_durable {
        true => {
            let state = format!("file:{}", directory.path().display());
            builder.state(state).durability(Durability::Always).open()
        }
        false => builder.open_in_memory(),
    };
    let engine = engine.expect("an engine opens");
    engine
        .execute(&format!(
            "CREATE TABLE t (k BIGINT, v BIGINT);
             CREATE {view} s AS SELECT k, CAST(SUM(v) AS BIGINT) AS s FROM t GROUP BY k"
        ))
        .expect("the statements are right");
    let subscriptions: Vec<Subscription> =
        (0..subscribers).map(|_| engine.subscribe("s").expect("the view exists")).collect();
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let taken = &taken;
        scope.spawn(move || take_all(subscriptions, taken));
        let snapshots = subscribers as u64;
        while taken.load(Ordering::Relaxed) < snapshots {
            thread::sleep(PERIOD);
        }
        let (before, begun) = (processors(), Instant::now());
        let mut commits = Vec::new();
        for number in 0..EPOCHS {
            thread::sleep((PERIOD * number as u32).saturating_sub(begun.elapsed()));
            let start = Instant::now();
            let mut transaction = engine.begin().expect("nobody else writes");
            transaction.insert("t", row(number)).expect("the row fits");
            transaction.commit().expect("it commits");
            commits.push(start.elapsed().as_secs_f64() * 1e6);
        }
        engine.wait(EPOCHS).expect("epochs complete");
        while taken.load(Ordering::Relaxed) < snapshots * (1 + EPOCHS) {
            thread::sleep(Duration::from_millis(1));
        }
        let spent = processors() - before;
        engine.execute("DROP VIEW s").expect("nobody reads it");
        commits.sort_by(f64::total_cmp);
        let at = |share: f64| commits[((commits.len() - 1) as f64 * share) as usize];
        let taken = snapshots * EPOCHS;
        Cost { median: at(0.5), tail: at(0.99), processors: spent, taken }
    })
}

pub(crate) fn run() {
    for (view, is_durable) in
        [("MATERIALIZED VIEW", false), ("VIEW", false), ("MATERIALIZED VIEW", true)]
    {
        let place = if is_durable { "with a journal" } else { "in memory" };
        println!("{view}, {place}");
        let nobody = cost(0, view, is_durable);
        println!("  nobody: commit {:.0} us, p99 {:.0} us", nobody.median, nobody.tail);
        for subscribers in [1, 100, 1000] {
            let cost = cost(subscribers, view, is_durable);
            println!(
                "  {subscribers} subscribers: commit {:.0} us (x{:.2}), p99 {:.0} us, {:.2} us of processor time a change",
                cost.median,
                cost.median / nobody.median,
                cost.tail,
                1e6 * (cost.processors - nobody.processors) / cost.taken as f64,
            );
        }
    }
}

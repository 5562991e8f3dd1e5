//! Differential-dataflow's side: programs for some queries, with the spines that come with it.
//!
//! Each worker has its share of every epoch before the clock starts. As on Alluvium's side, which is built on the same
//! dataflow, up to four epochs are incomplete, nothing reads the view unless the answer is asked for, and the clock stops
//! when the last epoch is complete. Tables keep nothing.

mod queries;
mod view;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Instant;

use alluvium_nexmark::harness::IN_FLIGHT;
use alluvium_nexmark::resources;
use alluvium_nexmark::source::{Input, Source};
use alluvium_nexmark::tables::Keeping;
use differential_dataflow::VecCollection;
use differential_dataflow::input::Input as _;
use timely::worker::Worker;

use self::queries::PROGRAMS;
use self::view::View;
use crate::Result;
use crate::answer::Answer;
use crate::model::{Auction, Bid, Epoch, Person};
use crate::task::{Figures, Goal, Task};

/// A collection whose times are the numbers of epochs.
type Collection<'scope, D> = VecCollection<'scope, u64, D, isize>;

/// The tables.
struct Tables<'scope> {
    person: Collection<'scope, Person>,
    auction: Collection<'scope, Auction>,
    bid: Collection<'scope, Bid>,
}

/// A program: from the tables to the view.
type Program = for<'scope> fn(Tables<'scope>) -> View<'scope>;

/// The answer, to which all workers add.
type Shared = Arc<Mutex<Answer>>;

fn program(query: &str) -> Option<Program> {
    PROGRAMS.iter().find(|(name, _)| *name == query).map(|(_, program)| *program)
}

/// Whether there is a program for the query, over tables that keep nothing, in memory.
pub fn takes(task: &Task) -> bool {
    let tables = task.mode.tables();
    let keeps_nothing = matches!(tables.keeping, Keeping::AppendOnly | Keeping::Unchecked);
    let is_without_limits = tables.lateness.is_none() && task.memory.is_none();
    program(task.query.name).is_some() && keeps_nothing && is_without_limits
}

/// Runs the task for its time or its memory.
pub fn run(task: &Task, goal: Goal) -> Result<Figures> {
    drive(task, goal, None)
}

/// Runs the task for its answer.
pub fn answer(task: &Task) -> Result<Answer> {
    let answer = Shared::default();
    drive(task, Goal::Answer, Some(answer.clone()))?;
    let answer = answer.lock().map_err(|_| "a worker panicked")?;
    Ok(*answer)
}

/// Runs the program over all epochs.
fn drive(task: &Task, goal: Goal, answer: Option<Shared>) -> Result<Figures> {
    let program = program(task.query.name).ok_or("there is no program for this query")?;
    let workers = task.workers.get();
    let epochs = task.extent.epochs().count();
    let is_prepared = goal.source(task) == Source::Memory;
    let capacity = if is_prepared { epochs } else { IN_FLIGHT };
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..workers).map(|_| sync_channel::<Epoch>(capacity)).unzip();
    let input = Input::prepare(&Source::Generator, task.extent, task.mode.has_revisions())?;
    let mut shares = Some((input, senders));
    if is_prepared && let Some((input, senders)) = shares.take() {
        send(&input, &senders)?;
    }
    let ready = Arc::new(Barrier::new(workers + 1));
    let receivers = Mutex::new(receivers.into_iter().map(Some).collect::<Vec<_>>());
    let work = {
        let ready = ready.clone();
        move |worker: &mut Worker| {
            let share = receivers.lock().ok().and_then(|mut all| all[worker.index()].take());
            let Some(share) = share else { return };
            work(worker, program, share, answer.clone(), &ready);
        }
    };
    let guards = timely::execute(timely::Config::process(workers), work)?;
    ready.wait();
    let timed = move || {
        let begun = Instant::now();
        let processor = resources::processor_time()?;
        let done = thread::scope(|scope| {
            let sender = shares.map(|(input, senders)| scope.spawn(move || send(&input, &senders)));
            ready.wait();
            let worked = guards.join().into_iter().collect::<std::result::Result<Vec<()>, _>>();
            let sent = sender.map_or(Ok(()), |sender| match sender.join() {
                Ok(sent) => sent,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            worked.map_err(crate::Error::from).and(sent)
        });
        let seconds = begun.elapsed().as_secs_f64();
        Ok((done, seconds, resources::processor_time()? - processor))
    };
    let ((done, seconds, processor), used) = resources::sampled(|| 0, timed)?;
    done?;
    Ok(Figures { seconds, processor, used_bytes: used.most })
}

/// Sends each worker its share of every epoch: rows in turn.
fn send(input: &Input, workers: &[SyncSender<Epoch>]) -> Result<()> {
    for events in input.epochs() {
        let Epoch { persons, auctions, bids } = Epoch::of(&events?)?;
        let mut persons = shares(persons, workers.len()).into_iter();
        let mut auctions = shares(auctions, workers.len()).into_iter();
        let mut bids = shares(bids, workers.len()).into_iter();
        for worker in workers {
            let mut next = || {
                Some(Epoch {
                    persons: persons.next()?,
                    auctions: auctions.next()?,
                    bids: bids.next()?,
                })
            };
            if let Some(share) = next() {
                worker.send(share)?;
            }
        }
    }
    Ok(())
}

fn shares<T>(rows: Vec<T>, workers: usize) -> Vec<Vec<T>> {
    let share = || Vec::with_capacity(rows.len().div_ceil(workers));
    let mut shares: Vec<Vec<T>> = (0..workers).map(|_| share()).collect();
    for (number, row) in rows.into_iter().enumerate() {
        shares[number % workers].push(row);
    }
    shares
}

/// The work of one worker: it waits for the clock to start once its dataflow is there.
fn work(
    worker: &mut Worker,
    program: Program,
    share: Receiver<Epoch>,
    answer: Option<Shared>,
    ready: &Barrier,
) {
    let (mut persons, mut auctions, mut bids, probe) = worker.dataflow::<u64, _, _>(|scope| {
        let (persons, person) = scope.new_collection();
        let (auctions, auction) = scope.new_collection();
        let (bids, bid) = scope.new_collection();
        let probe = program(Tables { person, auction, bid }).probe(answer);
        (persons, auctions, bids, probe)
    });
    ready.wait();
    ready.wait();
    let mut done = 0;
    for epoch in share {
        epoch.persons.into_iter().for_each(|row| persons.insert(row));
        epoch.auctions.into_iter().for_each(|row| auctions.insert(row));
        epoch.bids.into_iter().for_each(|(row, weight)| bids.update(row, weight as isize));
        done += 1;
        persons.advance_to(done);
        persons.flush();
        auctions.advance_to(done);
        auctions.flush();
        bids.advance_to(done);
        bids.flush();
        let complete = (done + 1).saturating_sub(IN_FLIGHT as u64);
        worker.step_while(|| probe.less_than(&complete));
    }
    worker.step_while(|| probe.less_than(&done));
}

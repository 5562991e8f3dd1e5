//! The threads of an engine's workers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, Thread};

use alluvium_sql::stack;
use alluvium_storage::Compaction;
use alluvium_trace::memory::{DiskFullGate, StateContext};
use crossbeam_channel::{Sender, unbounded};
use timely::CommunicationConfig;
use timely::communication::Allocator;
use timely::communication::allocator::AllocatorBuilder;

use super::command::Command;
use super::progress::Progress;
use super::thread;
use crate::error::{Error, Result};
use crate::history::History;
use crate::poison::{Poison, Waited};

/// The running workers. Dropping it shuts them down and joins their threads.
pub(crate) struct Pool {
    workers: Vec<Worker>,
    alarm: Arc<Alarm>,
    /// Its threads end with the workers, whatever snapshots outlive them.
    compaction: Option<Arc<dyn Compaction>>,
}

struct Worker {
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes workers that sleep, and those that wait for room on the disk when the engine is poisoned.
struct Alarm {
    threads: Vec<Thread>,
    disk_full: DiskFullGate,
    poison: Arc<Poison>,
}

impl Waited for Alarm {
    fn wake(&self) {
        if self.poison.is_spread() {
            self.disk_full.give_up();
        }
        self.threads.iter().for_each(Thread::unpark);
    }
}

impl Pool {
    /// Starts `workers` threads, which must be at least one, whose state has this context, and which keep changes as far
    /// back as `history` says.
    pub(crate) fn start(
        workers: usize,
        history: &Arc<History>,
        context: &StateContext,
        progress: &Arc<Progress>,
        poison: &Arc<Poison>,
    ) -> Result<Self> {
        let start = |message: String| Error::Start { message };
        let communication = match workers {
            1 => CommunicationConfig::Thread,
            workers => CommunicationConfig::Process(workers),
        };
        let (allocators, _) = communication.try_build().map_err(start)?;
        let alarm = |threads| {
            let (disk_full, poison) = (context.disk_full().clone(), poison.clone());
            Arc::new(Alarm { threads, disk_full, poison })
        };
        let mut pool = Self {
            workers: Vec::with_capacity(workers),
            alarm: alarm(Vec::new()),
            compaction: context.compaction().cloned(),
        };
        for (index, allocator) in allocators.into_iter().enumerate() {
            let (commands, received) = unbounded();
            let (progress, poison) = (progress.clone(), poison.clone());
            let history = history.clone();
            let context = context.for_worker(Arc::clone(&progress.metrics()[index]));
            let run = move || {
                let ran = catch_unwind(AssertUnwindSafe(|| build(allocator)));
                match ran {
                    Ok(allocator) => {
                        thread::run(index, allocator, received, progress, poison, context, history);
                    }
                    Err(panic) => drop(poison.spread_panic("a worker", &*panic)),
                }
            };
            let thread = Builder::new()
                .name(format!("alluvium-{index}"))
                .stack_size(stack::THREAD)
                .spawn(run)
                .map_err(|error| start(format!("no thread for a worker: {error}")))?;
            pool.workers.push(Worker { commands, thread: Some(thread) });
        }
        pool.alarm = alarm(pool.threads().cloned().collect());
        poison.register(&pool.alarm);
        Ok(pool)
    }

    /// How many workers there are.
    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Sends every worker its command. Callers broadcast under one lock, so that all workers get all
    /// commands in the same order. To a worker that has ended it is nothing.
    pub(crate) fn broadcast(&self, mut command: impl FnMut(usize) -> Command) {
        for (index, worker) in self.workers.iter().enumerate() {
            if worker.commands.send(command(index)).is_ok()
                && let Some(thread) = &worker.thread
            {
                thread.thread().unpark();
            }
        }
    }

    fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.workers.iter().filter_map(|worker| worker.thread.as_ref()).map(JoinHandle::thread)
    }
}

/// Connects this thread with those of the other workers; waits for them.
fn build(allocator: AllocatorBuilder) -> Allocator {
    match allocator {
        AllocatorBuilder::Process(process) => Allocator::Process(process.build()),
        // Without other workers there is nothing to connect.
        _ => Allocator::Thread(Default::default()),
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.broadcast(|_| Command::Shutdown);
        self.alarm.disk_full.give_up();
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // Workers catch their panics: there is nothing to learn from joining one.
                let _ = thread.join();
            }
        }
        if let Some(compaction) = &self.compaction {
            compaction.close();
        }
    }
}

//! Feeding histories to inputs on a random schedule.

use alluvium_dataflow::movement::input::Input;
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::{History, Run, delta};

/// An input, and the changes that are to be sent to it.
pub struct Feed<'a> {
    input: Input<Epoch>,
    history: &'a History,
    /// The first epoch not sent.
    next: Epoch,
    open: bool,
}

impl<'a> Feed<'a> {
    /// Starts at epoch 1.
    pub fn new(input: Input<Epoch>, history: &'a History) -> Self {
        Self { input, history, next: 1, open: true }
    }

    /// Sends this worker's share of all epochs through `last`. Which worker sends a row must not matter.
    pub fn send(&mut self, worker: &Worker, schema: &SchemaRef, last: Epoch) {
        let (peers, index) = (worker.peers(), worker.index());
        for epoch in self.next..=last {
            let rows = self.history.iter().enumerate();
            let share: Vec<_> = rows
                .filter(|(at, (_, time, _))| *time == epoch && at % peers == index)
                .map(|(_, (row, _, weight))| (row.clone(), *weight))
                .collect();
            let sent = delta(schema, &share, epoch);
            self.input.send(epoch, move || sent);
        }
        self.next = last + 1;
    }

    /// Moves the frontier past the rows that were sent.
    pub fn advance(&mut self) {
        self.input.advance_to(self.next);
    }
}

/// Feeds all histories and steps the worker until `probe` is done.
///
/// The first input is sent every epoch in turn. The others lag behind by some epochs and catch up in one jump; if the
/// run says so, they close half way.
pub fn feed(
    worker: &mut Worker,
    run: &Run,
    schema: &SchemaRef,
    mut feeds: Vec<Feed<'_>>,
    probe: &Handle<Epoch>,
) {
    let mut random = run.random(0x5eed);
    for epoch in 1..=run.epochs {
        let (first, others) = feeds.split_first_mut().unwrap();
        first.send(worker, schema, epoch);
        // Sometimes several epochs are sent before the frontier moves over all of them.
        if !random.once_in(3) {
            first.advance();
        }
        for feed in others {
            if feed.open && random.once_in(2) {
                feed.send(worker, schema, epoch);
                feed.advance();
                feed.open = !(run.close_early && epoch > run.epochs / 2);
            }
        }
        // Sometimes the dataflow runs now, sometimes epochs pile up.
        for _ in 0..random.below(8) {
            worker.step();
        }
        if random.once_in(5) {
            for _ in 0..100 {
                worker.step();
            }
        }
    }
    for feed in feeds.iter_mut().filter(|feed| feed.open) {
        feed.send(worker, schema, run.epochs);
    }
    drop(feeds);
    while !probe.done() {
        worker.step();
    }
}

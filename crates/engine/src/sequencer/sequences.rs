//! Sequences: numbers that are handed out, each once.
//!
//! A value that was taken is gone, also if the transaction that took it fails. Values are recorded ahead, some at a time, so that few
//! need a record. The record comes before that of a transaction that writes the values. An engine that ends records where it
//! was; one that crashes leaves out those that were recorded ahead.

use std::collections::BTreeMap;

use alluvium_sql::statement::SequenceOptions;
use alluvium_storage::Position;
use parking_lot::MutexGuard;

use super::Sequencer;
use crate::durable::record::{Record, SequenceValue};
use crate::error::{Error, Result, SqlState};

/// How many values are recorded ahead.
const AHEAD: u64 = 32;

/// The positions of sequences that have been used, by their names. Taken before the state.
pub(super) type LiveSequences = BTreeMap<String, LiveSequence>;

/// Where a sequence is.
#[derive(Clone, Copy)]
pub(super) struct LiveSequence {
    value: SequenceValue,
    /// How many more values are recorded.
    ahead: u64,
    /// Their record.
    record: Option<Position>,
}

/// Sequences whose values are reserved for the holder, until this is dropped.
pub(crate) struct HeldSequences<'a> {
    sequencer: &'a Sequencer,
    live: MutexGuard<'a, LiveSequences>,
}

/// Values that were taken.
pub(crate) struct Taken {
    pub(crate) values: Vec<i64>,
    /// The record that has to be durable before a client sees them.
    pub(crate) record: Option<Position>,
}

impl SequenceValue {
    /// The start of a sequence.
    fn start(options: &SequenceOptions) -> Self {
        Self { last: options.start, is_called: false }
    }

    /// The next value; `None` at the end of a sequence.
    fn next(self, options: &SequenceOptions) -> Option<i64> {
        if !self.is_called {
            return Some(self.last);
        }
        let next = self.last.checked_add(options.increment);
        let is_within = |value: &i64| (options.minimum..=options.maximum).contains(value);
        let again = if options.increment > 0 { options.minimum } else { options.maximum };
        next.filter(is_within).or_else(|| options.cycles.then_some(again))
    }

    /// So many values later, or at the end, and how many it was.
    fn advanced(mut self, options: &SequenceOptions, most: u64) -> (Self, u64) {
        for count in 0..most {
            match self.next(options) {
                Some(last) => self = Self { last, is_called: true },
                None => return (self, count),
            }
        }
        (self, most)
    }
}

impl Sequencer {
    /// Takes the next values of a sequence.
    ///
    /// # Errors
    /// If there are not so many. Then none is taken.
    pub(crate) fn next_values(
        &self,
        name: &str,
        options: &SequenceOptions,
        count: usize,
    ) -> Result<Taken> {
        self.poison.check()?;
        let mut all = self.sequences.lock();
        let mut live = self.live(&mut all, name, options);
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let last = live.value.next(options).ok_or_else(|| exhausted(name, options))?;
            live.value = SequenceValue { last, is_called: true };
            values.push(last);
        }
        let taken = count as u64;
        match live.ahead.checked_sub(taken) {
            Some(ahead) => live.ahead = ahead,
            None => {
                let (last, ahead) = live.value.advanced(options, AHEAD);
                (live.ahead, live.record) = (ahead, self.record_sequence(name, last)?);
            }
        }
        let record = live.record;
        all.insert(name.to_owned(), live);
        Ok(Taken { values, record })
    }

    /// Sets the last value of a sequence. Returns the record, as of [`Taken`].
    pub(crate) fn set_value(
        &self,
        name: &str,
        options: &SequenceOptions,
        value: SequenceValue,
    ) -> Result<Option<Position>> {
        let SequenceOptions { minimum, maximum, .. } = options;
        if !(minimum..=maximum).contains(&&value.last) {
            let message = format!(
                "{} is not between {minimum} and {maximum}, as values of \"{name}\" are",
                value.last
            );
            return Err(Error::sql(message).with_sqlstate(SqlState::OUT_OF_RANGE));
        }
        self.poison.check()?;
        let mut all = self.sequences.lock();
        let record = self.record_sequence(name, value)?;
        all.insert(name.to_owned(), LiveSequence { value, ahead: 0, record });
        Ok(record)
    }

    /// Resumes with a value that was recorded.
    pub(crate) fn restore_sequence(&self, name: &str, value: SequenceValue) {
        self.sequences.lock().remove(name);
        self.state.lock().recorded_sequences.set(name, Some(value));
    }

    /// The value of a sequence that is recorded.
    pub(crate) fn recorded_sequence(&self, name: &str) -> Option<SequenceValue> {
        self.state.lock().recorded_sequences.get(name)
    }

    /// Keeps sequences as they are, while the names of some change.
    pub(crate) fn hold_sequences(&self) -> HeldSequences<'_> {
        HeldSequences { sequencer: self, live: self.sequences.lock() }
    }

    /// Sequences are created: unless a checkpoint has them, they are at their start.
    pub(crate) fn begin_sequences(&self, names: impl IntoIterator<Item = String>) {
        let mut held = None;
        for name in names {
            let held = held.get_or_insert_with(|| self.hold_sequences());
            if self.state.lock().restored.is_none() {
                held.forget(&name);
            }
        }
    }

    /// Records where sequences are, as no more values are taken.
    pub(crate) fn end_sequences(&self) -> Result<()> {
        let ahead: Vec<_> = {
            let all = self.sequences.lock();
            let ahead = all.iter().filter(|(_, live)| live.ahead > 0);
            ahead.map(|(name, live)| (name.clone(), live.value)).collect()
        };
        if ahead.is_empty() {
            return Ok(());
        }
        for (name, value) in ahead {
            self.record_sequence(&name, value)?;
        }
        self.durable.sync_all()
    }

    fn live(&self, all: &mut LiveSequences, name: &str, options: &SequenceOptions) -> LiveSequence {
        all.get(name).copied().unwrap_or_else(|| {
            let recorded = self.state.lock().recorded_sequences.get(name);
            let value = recorded.unwrap_or_else(|| SequenceValue::start(options));
            LiveSequence { value, ahead: 0, record: None }
        })
    }

    fn record_sequence(&self, name: &str, value: SequenceValue) -> Result<Option<Position>> {
        let mut state = self.state.lock();
        let record = Record::Sequence { name: name.to_owned(), value };
        let position = self.durable.append(&record)?;
        state.recorded_sequences.set(name, Some(value));
        Ok(position)
    }
}

impl HeldSequences<'_> {
    /// A sequence has another name.
    pub(crate) fn rename(&mut self, before: &str, name: &str) {
        let live = self.live.remove(before);
        self.live.extend(live.map(|live| (name.to_owned(), live)));
        let recorded = &mut self.sequencer.state.lock().recorded_sequences;
        let value = recorded.get(before);
        recorded.set(before, None);
        recorded.set(name, value);
    }

    /// Forgets a dropped sequence.
    pub(crate) fn forget(&mut self, name: &str) {
        self.live.remove(name);
        self.sequencer.state.lock().recorded_sequences.set(name, None);
    }
}

fn exhausted(name: &str, options: &SequenceOptions) -> Error {
    let (end, bound) = match options.increment > 0 {
        true => ("maximum", options.maximum),
        false => ("minimum", options.minimum),
    };
    let message = format!("the sequence \"{name}\" has reached its {end}, {bound}");
    Error::sql(message).with_sqlstate(SqlState::EXHAUSTED)
}

//! Statements about the changes of relations: SUBSCRIBE, and FETCH from a cursor over it. LISTEN is for clients of a server.

use std::task::{Poll, Waker, ready};
use std::time::{Duration, Instant};

use alluvium_sql::statement::{Setting, Subscribe};
use alluvium_sql::texts;
use alluvium_trace::memory::Charge;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::scalar::ScalarValue;

use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::query::Rows;
use crate::session::{Outcome, Session};
use crate::subscription::{ChangedRows, Permission, Subscription};
use crate::wait::{self, Look};

/// How often a wait for changes looks for progress, which wakes nobody.
const LOOK: Duration = Duration::from_secs(1);

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// The changes that a cursor fetches.
pub(in crate::session) struct FetchedChanges {
    changes: ChangedRows,
    /// The rest of the last change, and the memory that it takes.
    begun: Option<RecordBatch>,
    charge: Charge,
    is_over: bool,
}

impl FetchedChanges {
    /// Those of a subscription. What is left of a change is counted by the charge.
    pub(in crate::session) fn new(subscription: Subscription, charge: Charge) -> Self {
        let changes = ChangedRows::new(subscription);
        Self { changes, begun: None, charge, is_over: false }
    }

    /// The changes as they come.
    pub(in crate::session) fn changes(&self) -> &ChangedRows {
        &self.changes
    }

    /// The next rows, at most so many, of one change; `None` once nothing will come any more. Does not wait: `waker` is woken once
    /// there is a change.
    pub(in crate::session) fn poll_next(
        &mut self,
        most: u64,
        waker: Option<&Waker>,
    ) -> Poll<Result<Option<RecordBatch>>> {
        let batch = match self.begun.take() {
            Some(begun) => {
                self.changes.check_permission()?;
                begun
            }
            None => loop {
                match ready!(self.changes.poll_next(waker))? {
                    Some(batch) if batch.num_rows() == 0 => {}
                    Some(batch) => break batch,
                    None => {
                        self.is_over = true;
                        return Poll::Ready(Ok(None));
                    }
                }
            },
        };
        let length = batch.num_rows();
        let taken = usize::try_from(most).map_or(length, |most| most.min(length));
        let is_left = taken < length;
        self.charge.set(if is_left { batch.get_array_memory_size() } else { 0 });
        self.begun = is_left.then(|| batch.slice(taken, length - taken));
        Poll::Ready(Ok(Some(batch.slice(0, taken))))
    }

    /// At most so many rows: those that come within the timeout, or without one those that are there once there is any.
    pub(in crate::session) fn fetch(
        &mut self,
        mut most: u64,
        timeout: Option<Duration>,
    ) -> Result<Rows> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut batches: Vec<RecordBatch> = Vec::new();
        while most > 0 && !self.is_over {
            let found = match self.poll_next(most, None) {
                Poll::Ready(found) => found?,
                Poll::Pending if timeout.is_none() && !batches.is_empty() => break,
                Poll::Pending if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    break;
                }
                Poll::Pending => match self.wait(most, deadline) {
                    Ok(found) => found,
                    Err(error) => return self.put_back(batches).and(Err(error)),
                },
            };
            most -= found.as_ref().map_or(0, |batch| batch.num_rows() as u64);
            batches.extend(found);
        }
        Ok(Rows::new(self.changes.schema().clone(), batches))
    }

    /// The next FETCH begins with these rows: the one that has taken them does not return them.
    fn put_back(&mut self, mut rows: Vec<RecordBatch>) -> Result<()> {
        rows.extend(self.begun.take());
        if !rows.is_empty() {
            let begun = concat_batches(self.changes.schema(), &rows)?;
            self.charge.set(begun.get_array_memory_size());
            self.begun = Some(begun);
        }
        Ok(())
    }

    /// Waits for the next rows; `None` at the deadline, or when progress is to be looked for.
    fn wait(&mut self, most: u64, deadline: Option<Instant>) -> Result<Option<RecordBatch>> {
        let look = self.changes.has_progress().then(|| Instant::now() + LOOK);
        let end = [deadline, look].into_iter().flatten().min();
        let mut until = || {
            wait::until(|waker| {
                Ok(match self.poll_next(most, Some(waker)) {
                    Poll::Ready(found) => Look::Found(found?),
                    Poll::Pending => Look::Waits(()),
                })
            })
        };
        match end {
            None => until(),
            Some(_) => interrupt::limited(end, until).or_else(|error| match error {
                // It is the deadline of this, and not of the call around it.
                Error::TimedOut if !interrupt::ends_call() => Ok(None),
                error => Err(error),
            }),
        }
    }
}

impl Session {
    pub(super) fn subscribe(&self, changes: &Subscribe) -> Result<Outcome> {
        self.subscription(changes).map(Outcome::Subscribed)
    }

    /// Subscribes as a statement says.
    pub(in crate::session) fn subscription(&self, changes: &Subscribe) -> Result<Subscription> {
        let options = match (changes.as_of, changes.has_snapshot) {
            (None, true) => self.subscribe_options,
            (None, false) => self.subscribe_options.without_snapshot(),
            (Some(epoch), true) => self.subscribe_options.as_of(epoch),
            (Some(epoch), false) => self.subscribe_options.after(epoch),
        };
        let subscribed = self.engine.subscribe_with(&changes.name, options);
        let mut subscription = subscribed.map_err(|error| error.at(changes.position))?;
        if changes.has_progress {
            subscription.set_has_progress();
        }
        if let Some(role) = self.held_role() {
            let live = self.instance().reader.sequencer.roles().clone();
            subscription.set_permission(Permission::new(role.clone(), live));
        }
        self.engine.start()?;
        Ok(subscription)
    }
}

/// The time that FETCH gives changes to come.
///
/// # Errors
/// If it is no interval, or a negative one, or has months.
pub(in crate::session) fn timeout(written: &Setting) -> Result<Duration> {
    let wrong = || {
        let message =
            format!("the timeout of FETCH is a time, as '1s', and not \"{}\"", written.value);
        Error::sql(message).with_sqlstate(SqlState::INVALID_VALUE).at(written.position)
    };
    let text = ScalarValue::Utf8(Some(written.value.clone()));
    let read = texts::cast_value(&text, &DataType::Interval(IntervalUnit::MonthDayNano));
    let Ok(ScalarValue::IntervalMonthDayNano(Some(read))) = read else { return Err(wrong()) };
    let nanoseconds = i128::from(read.days) * DAY + i128::from(read.nanoseconds);
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds) if read.months == 0 => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(wrong()),
    }
}

/// The error of a statement that a server answers itself.
pub(super) fn for_clients(statement: &str) -> Error {
    let message = format!(
        "{statement} is for clients of Postgres's protocol, who are told of changes between statements: SUBSCRIBE has them here"
    );
    Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::interrupt::Interrupt;

    /// How many rows a FETCH returns.
    fn fetched(session: &mut Session, sql: &str) -> Result<usize> {
        let outcomes = session.execute(sql)?;
        let Some(Outcome::Rows(rows)) = outcomes.into_iter().next() else {
            return Err(Error::sql("rows are expected here"));
        };
        Ok(rows.into_batches()?.iter().map(RecordBatch::num_rows).sum())
    }

    #[test]
    fn a_program_fetches_changes_and_an_interrupt_loses_none() {
        let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
        engine.execute("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1), (2)").expect("rows");
        let mut session = engine.session();
        session.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t").expect("a cursor");
        assert_eq!(fetched(&mut session, "FETCH 1 c"), Ok(1));
        let interrupt = Interrupt::default();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                interrupt.request();
            });
            let waits = || fetched(&mut session, "FETCH ALL c WITH (timeout = '1 hour')");
            assert_eq!(interrupt.watch(waits), Err(Error::Interrupted));
        });
        // What had come by then is there.
        assert_eq!(fetched(&mut session, "FETCH ALL c"), Ok(1));
        assert_eq!(fetched(&mut session, "FETCH ALL c WITH (timeout '10 ms')"), Ok(0));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                engine.execute("INSERT INTO t VALUES (3)").expect("a row");
            });
            assert_eq!(fetched(&mut session, "FETCH c"), Ok(1));
        });
        session.execute("COMMIT").expect("the end");
        assert!(fetched(&mut session, "FETCH c").is_err());
    }

    #[test]
    fn timeouts_are_intervals() {
        let position = alluvium_sql::error::Position { line: 1, column: 1 };
        let of = |value: &str| {
            timeout(&Setting { name: "timeout".to_owned(), value: value.to_owned(), position })
        };
        for (written, milliseconds) in [
            ("1s", 1_000),
            ("0s", 0),
            ("500ms", 500),
            ("2 minutes", 120_000),
            ("1 day", 86_400_000),
        ] {
            assert_eq!(of(written), Ok(Duration::from_millis(milliseconds)), "{written}");
        }
        for wrong in ["", "soon", "-1s", "1 month"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}

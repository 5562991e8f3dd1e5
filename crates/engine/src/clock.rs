//! Where the time of epochs comes from.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::error::{Error, Result};

/// A time as `TIMESTAMP` has it: microseconds since 1970 in UTC.
pub(crate) type Moment = i64;

/// Reads the time.
pub(crate) struct Clock {
    read: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Where it stands; `None` while it runs.
    stopped: Mutex<Option<Moment>>,
}

impl Clock {
    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { read: Box::new(read), stopped: Mutex::new(None) }
    }

    /// Stops it at a time, or lets it run.
    pub(crate) fn stop(&self, at: Option<Moment>) {
        *self.stopped.lock() = at;
    }

    pub(crate) fn now(&self) -> Result<Moment> {
        let stopped = *self.stopped.lock();
        stopped.map_or_else(|| moment((self.read)()), Ok)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

/// Fails if the time is not one of a `TIMESTAMP`, some 290,000 years from now.
pub(crate) fn moment(time: SystemTime) -> Result<Moment> {
    let microseconds = |length: Duration| Moment::try_from(length.as_micros()).ok();
    let moment = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => microseconds(after),
        Err(before) => microseconds(before.duration()).map(|length| -length),
    };
    moment.ok_or_else(|| Error::data("the time is outside of what TIMESTAMP can hold"))
}

/// A length of time in whole milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

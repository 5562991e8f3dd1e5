//! `alluvium.standby`: how far a standby is behind the engine that it follows.

use arrow::array::ArrayRef;

use super::numbers;
use crate::clock::milliseconds;
use crate::durable::followed::Lag;

/// A row if the engine is a standby.
pub(super) fn columns(lag: Option<Lag>) -> Vec<ArrayRef> {
    vec![
        numbers(lag.map(|lag| lag.epoch)),
        numbers(lag.map(|lag| lag.records)),
        numbers(lag.map(|lag| milliseconds(lag.behind))),
        numbers(lag.map(|lag| milliseconds(lag.silence))),
    ]
}

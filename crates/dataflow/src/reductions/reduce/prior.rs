//! The state of a reduction before an interval.

use alluvium_trace::{Cursors, Epoch};

use crate::fault::{self, Fault};
use crate::rows::weight::weight_of;

/// The input and the output before an interval. Keys must be requested in ascending order.
pub(crate) struct Prior<'a> {
    pub(super) input: &'a mut Cursors<Epoch>,
    pub(super) output: &'a mut Cursors<Epoch>,
}

impl Prior<'_> {
    /// The rows of the input under `key`.
    pub(crate) fn input(&mut self, key: &[u8]) -> Option<&mut Cursors<Epoch>> {
        if fault::armed(Fault::ForgetHistory) {
            return None;
        }
        at(self.input, key)
    }

    /// The rows of the output under `key`.
    pub(crate) fn output(&mut self, key: &[u8]) -> Option<&mut Cursors<Epoch>> {
        at(self.output, key)
    }

    /// The rows of the input and of the output under `key`.
    pub(crate) fn both(
        &mut self,
        key: &[u8],
    ) -> (Option<&mut Cursors<Epoch>>, Option<&mut Cursors<Epoch>>) {
        if fault::armed(Fault::ForgetHistory) {
            return (None, at(self.output, key));
        }
        (at(self.input, key), at(self.output, key))
    }

    /// Copies the single row of the output under `key` into `value`, which is left empty if there is none; returns whether
    /// there is one.
    pub(crate) fn only_output(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        value.clear();
        let Some(held) = self.output(key) else { return false };
        while let Some(held_value) = held.val() {
            if weight_of(held) > 0 {
                value.extend_from_slice(held_value);
                return true;
            }
            held.step_val();
        }
        false
    }
}

fn at<'a>(cursors: &'a mut Cursors<Epoch>, key: &[u8]) -> Option<&'a mut Cursors<Epoch>> {
    cursors.seek_key(key);
    let found = cursors.key() == Some(key);
    found.then_some(cursors)
}

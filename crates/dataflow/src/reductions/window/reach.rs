//! Which rows the results of a row depend on.

use super::frame::{Edge, Frame};
use super::function::Function;
use crate::fault::{self, Fault};

/// The rows around a row that the functions over a partitioning read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// How many rows before it.
    pub(super) before: u64,
    /// How many rows after it.
    pub(super) behind: u64,
    /// Ranges begin at these.
    pub(super) starts: Vec<Edge>,
    /// Ranges end at these.
    pub(super) ends: Vec<Edge>,
    /// Whether the number of all rows before it matters.
    pub(super) counts: bool,
    /// Whether other things of all rows before it matter, which results [carry](super::carry) from row to row.
    pub(super) runs: bool,
}

impl Reach {
    /// The reach of all these functions.
    pub(super) fn of(functions: &[Function]) -> Self {
        let mut reach = Self::default();
        for function in functions {
            reach.runs |= function.is_running();
            match function {
                Function::Shift { offset, .. } => reach.add(&Frame::Rows(Some(*offset), *offset)),
                Function::RowNumber => reach.counts = true,
                Function::Rank => reach.counts = true,
                _ => {}
            }
            if let Some(frame) = function.frame() {
                reach.add(&frame);
            }
        }
        reach
    }

    fn add(&mut self, frame: &Frame) {
        match frame {
            &Frame::Rows(start, end) => {
                let start = start.unwrap_or(end);
                self.before = self.before.max(start.min(0).unsigned_abs());
                self.behind = self.behind.max(end.max(0).unsigned_abs());
            }
            Frame::Range(start, end) => {
                // A range that begins with the partition is read from its end on.
                let start = start.as_ref().unwrap_or(end);
                for (edges, edge) in [(&mut self.starts, start), (&mut self.ends, end)] {
                    // A range may begin after the row, or end before it.
                    for edge in [edge, &Edge::Peers] {
                        if !edges.contains(edge) {
                            edges.push(edge.clone());
                        }
                    }
                }
            }
        }
    }

    /// Whether results say how many rows are before a row, or carry what else of them matters.
    pub(super) fn keeps_results(&self) -> bool {
        self.counts || self.runs
    }

    /// How many rows after a change see it.
    pub(super) fn seen_behind(&self) -> u64 {
        match fault::armed(Fault::ShortFrames) {
            true => self.before.saturating_sub(1),
            false => self.before,
        }
    }
}

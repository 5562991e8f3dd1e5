//! Times that pages can hold.

use differential_dataflow::lattice::Lattice;
use timely::order::Product;
use timely::progress::Timestamp;

/// The time of a plain dataflow: a set of whole transactions that become visible together.
pub type Epoch = u64;

/// The most lanes a time may have.
pub const MAXIMUM_LANES: usize = 4;

/// A time that pages can hold: a few `u64` lanes.
///
/// `load` must return the time that `store` stored. [`LANES`](PageTime::LANES) is at least one and at most
/// [`MAXIMUM_LANES`], and both methods are given slices of exactly that many lanes.
pub trait PageTime: Timestamp + Lattice + Copy + Sync {
    /// The number of lanes.
    const LANES: usize;

    /// Writes the time into `lanes`.
    fn store(&self, lanes: &mut [u64]);

    /// Reads a time from `lanes`.
    fn load(lanes: &[u64]) -> Self;
}

impl PageTime for Epoch {
    const LANES: usize = 1;

    #[inline]
    fn store(&self, lanes: &mut [u64]) {
        lanes[0] = *self;
    }

    #[inline]
    fn load(lanes: &[u64]) -> Self {
        lanes[0]
    }
}

/// The time of a recursive scope: an epoch and an iteration within it.
impl PageTime for Product<u64, u64> {
    const LANES: usize = 2;

    #[inline]
    fn store(&self, lanes: &mut [u64]) {
        lanes[0] = self.outer;
        lanes[1] = self.inner;
    }

    #[inline]
    fn load(lanes: &[u64]) -> Self {
        Product::new(lanes[0], lanes[1])
    }
}

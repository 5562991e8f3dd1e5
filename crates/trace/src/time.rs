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
///
/// These are unsigned integers of up to 64 bits, `()`, and products of such times, up to four deep: an epoch and the
/// rounds of up to three iterations within each other. A `PointStamp`, whose length varies, is not one.
pub trait PageTime: Timestamp + Lattice + Copy + Sync {
    /// The number of lanes.
    const LANES: usize;

    /// Writes the time into `lanes`.
    fn store(&self, lanes: &mut [u64]);

    /// Reads a time from `lanes`.
    fn load(lanes: &[u64]) -> Self;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl PageTime for $integer {
            const LANES: usize = 1;

            #[inline]
            fn store(&self, lanes: &mut [u64]) {
                lanes[0] = *self as u64;
            }

            #[inline]
            fn load(lanes: &[u64]) -> Self {
                lanes[0] as $integer
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize);

/// The time of a dataflow whose input never changes.
impl PageTime for () {
    const LANES: usize = 1;

    #[inline]
    fn store(&self, lanes: &mut [u64]) {
        lanes[0] = 0;
    }

    #[inline]
    fn load(_lanes: &[u64]) -> Self {}
}

/// The time of an iterative scope: a time of the scope around it, and a round.
impl<Outer: PageTime, Inner: PageTime> PageTime for Product<Outer, Inner> {
    const LANES: usize = {
        let lanes = Outer::LANES + Inner::LANES;
        assert!(lanes <= MAXIMUM_LANES, "iterations are nested too deeply for the times of pages");
        lanes
    };

    #[inline]
    fn store(&self, lanes: &mut [u64]) {
        let (outer, inner) = lanes.split_at_mut(Outer::LANES);
        self.outer.store(outer);
        self.inner.store(inner);
    }

    #[inline]
    fn load(lanes: &[u64]) -> Self {
        let (outer, inner) = lanes.split_at(Outer::LANES);
        Product::new(Outer::load(outer), Inner::load(inner))
    }
}

//! Aggregates of numbers by a total: SUM and AVG of floats and AVG of integers, which are exact, and statistics.
//!
//! One definition serves a query, a group that is recomputed, and a frame. A group adds to its total; workers merge theirs.
//! Over a frame whose start moves, an exact total takes back the rows that leave it. A total that rounds never subtracts:
//! one large number would take the digits of all others with it. It is merged from totals of parts ([`kept`]).
//!
//! - [`float`] and [`integer`] are totals of SUM and AVG, [`of_pair`] those of `REGR_AVGX` and `REGR_AVGY`, [`moments`] those of statistics, [`extreme`] those of MIN and MAX;
//! - [`one`], [`distinct`], [`kept`] and [`groups`] accumulate them.

mod distinct;
mod extreme;
mod float;
mod function;
mod groups;
mod integer;
mod kept;
mod moments;
mod of_pair;
mod one;

use std::fmt::Debug;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};

pub(super) use self::extreme::FloatExtreme;
use self::float::FloatTotal;
pub(super) use self::function::functions;
pub(super) use self::groups::Groups;
use self::one::One;

/// The state of an aggregate over some rows.
pub(super) trait Total: Clone + Debug + Default + Send + Sync + 'static {
    /// The arguments of a row.
    type Input: Copy + Debug + Send + Sync;

    /// The columns of a partial result.
    const STATE: &'static [(&'static str, DataType)];

    /// A number that rows with equal arguments share.
    fn key(input: Self::Input) -> u128;

    /// The arguments of such a row.
    fn of_key(key: u128) -> Self::Input;

    /// Calls `visit` for each row whose arguments are not NULL.
    fn each(columns: &[ArrayRef], visit: impl FnMut(usize, Self::Input)) -> Result<()>;

    /// Adds a row.
    fn add(&mut self, input: Self::Input);

    /// Adds the rows of another total.
    fn merge(&mut self, other: &Self);

    /// The columns of totals, as [`STATE`](Self::STATE).
    fn state(totals: &[Self]) -> Vec<ArrayRef>;

    /// Calls `visit` for each total of columns that [`state`](Self::state) has made.
    fn each_state(columns: &[ArrayRef], visit: impl FnMut(usize, Self)) -> Result<()>;

    /// Bytes that it owns elsewhere.
    fn owned(&self) -> usize {
        0
    }
}

/// A total from which rows can be taken back exactly.
pub(super) trait Exact: Total {
    /// Takes a row back.
    fn subtract(&mut self, input: Self::Input);
}

/// How a result is computed from a total.
#[derive(Clone, Debug)]
pub(super) struct Finish<T> {
    pub(super) number: fn(&T) -> Option<f64>,
    /// The type of the result, DOUBLE or a number of rows.
    pub(super) result: DataType,
}

impl<T> Finish<T> {
    fn scalar(&self, total: &T) -> Result<ScalarValue> {
        ScalarValue::Float64((self.number)(total)).cast_to(&self.result)
    }
}

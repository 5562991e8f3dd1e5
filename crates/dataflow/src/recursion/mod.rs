//! Recursion: rows that are computed from themselves, until nothing changes any more.
//!
//! ```text
//!            ┌───────────────────────── rounds ─────────────────────────┐
//!  base ─────┼─► enter ─► + ─► settle ─┬────────────────────────────────┼─► leave ─► rows
//!            │            ▲            └─► next round ─► variable ─┐    │
//!            │            └──────────── step ◄─────────────────────┘    │
//!  others ───┼─► entered arrangements ───► joins of the step            │
//!            └──────────────────────────────────────────────────────────┘
//! ```
//!
//! Round 0 has the rows of the base. Each later round has these and the output of the step on the rows of the round before. The
//! result is the round after which nothing changes. Several relations may recur over each other: each has a variable. Inside, the time of a change is an epoch and a round ([`Round`]): a change of
//! the inputs changes the rows of each round, and only the differences go around. So a deletion is exact also where rows
//! support each other in a cycle: a row that was first derived in round 3 is not there because of one of round 5.
//!
//! - [`mod@variable`]: the way from one round to the next, which ends at a limit;
//! - [`mod@reduce`]: per key, a function of its rows in each round, which drives the two that follow;
//! - [`mod@settle`]: the rows of each round, with as many copies as there may be, from the changes that go around;
//! - [`mod@aggregate`]: GROUP BY;
//! - [`entered`]: an arrangement of the dataflow around, which is read in all rounds and not copied;
//! - [`mod@join`]: joins inside of a recursion;
//! - [`boundary`]: rows go in and out.
//!
//! # Starting again
//!
//! The rounds of a recursion are not saved. A dataflow that [starts again](crate::state::states) has the rows of the
//! inputs, enters them again, and goes through all rounds. The output of this is known already and is dropped.

pub mod aggregate;
mod boundary;
mod entered;
pub mod join;
mod reduce;
pub mod settle;
pub mod variable;

use alluvium_trace::Epoch;
use timely::dataflow::Scope;
use timely::order::Product;

pub use self::aggregate::aggregate;
pub use self::boundary::{KeptInput, enter, leave, replay};
pub use self::join::{Side, join};
pub use self::settle::settle;
pub use self::variable::{Variable, variable};

/// The time of a change inside of a recursion: its epoch, and the round in which it happens.
pub type Round = Product<Epoch, u64>;

/// The scope of the rounds of a recursion.
pub type Rounds<'scope> = Scope<'scope, Round>;

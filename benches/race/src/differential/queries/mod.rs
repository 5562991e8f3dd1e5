//! The programs, one for each of some queries.

use super::Program;

mod q17;
mod q18;
mod q20;
mod q3;
mod q4;
mod q9;

/// All programs, by the names of their queries.
pub(super) const PROGRAMS: [(&str, Program); 6] = [
    ("q3", q3::program),
    ("q4", q4::program),
    ("q9", q9::program),
    ("q17", q17::program),
    ("q18", q18::program),
    ("q20", q20::program),
];

//! The programs, one for each query.

use super::Program;

mod q0;
mod q1;
mod q10;
mod q11;
mod q12;
mod q13;
mod q14;
mod q15;
mod q16;
mod q17;
mod q18;
mod q19;
mod q2;
mod q20;
mod q21;
mod q22;
mod q3;
mod q4;
mod q5;
mod q6;
mod q7;
mod q8;
mod q9;
mod statistics;

/// All programs, by the names of their queries.
pub const PROGRAMS: [(&str, Program); 23] = [
    ("q0", q0::program),
    ("q1", q1::program),
    ("q2", q2::program),
    ("q3", q3::program),
    ("q4", q4::program),
    ("q5", q5::program),
    ("q6", q6::program),
    ("q7", q7::program),
    ("q8", q8::program),
    ("q9", q9::program),
    ("q10", q10::program),
    ("q11", q11::program),
    ("q12", q12::program),
    ("q13", q13::program),
    ("q14", q14::program),
    ("q15", q15::program),
    ("q16", q16::program),
    ("q17", q17::program),
    ("q18", q18::program),
    ("q19", q19::program),
    ("q20", q20::program),
    ("q21", q21::program),
    ("q22", q22::program),
];

/// A second in microseconds.
const SECOND: i64 = 1_000_000;

/// A day in microseconds.
const DAY: i64 = 86_400 * SECOND;

/// The start of the window of 10 seconds around a time.
fn window(time: i64) -> i64 {
    time - time.rem_euclid(10 * SECOND)
}

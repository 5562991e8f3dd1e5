//! Numbers and booleans.
//!
//! [`number`] writes and reads integers, floating point and booleans, [`numeric`] writes decimals, and [`decimal`] reads them.

pub(super) mod decimal;
pub(super) mod number;
pub(super) mod numeric;

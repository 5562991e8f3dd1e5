//! Exit statuses.

/// An exit status. After a signal it is 128 and the signal's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8);

impl Status {
    pub(crate) const SUCCESS: Self = Self(0);
    /// An error in SQL, in data, or in reading or writing files.
    pub(crate) const FAILURE: Self = Self(1);
}

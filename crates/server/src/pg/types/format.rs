//! The formats of values.

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// As people read it.
    Text,
    /// As machines read it, in network byte order.
    Binary,
}

impl Format {
    /// The format of a code of the protocol.
    pub(crate) fn of_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Text),
            1 => Some(Self::Binary),
            _ => None,
        }
    }

    /// The code that the protocol has for it.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

//! The conditions of a race.

use std::time::Duration;

use alluvium_nexmark::tables::{Keeping, Tables};
use clap::ValueEnum;

/// How late events may come with [`Mode::Lateness`].
const LATENESS: Duration = Duration::from_secs(4);

/// The contents of the tables, the kinds of changes, and the amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Tables keep nothing; rows are only inserted.
    AppendOnly,
    /// Tables keep nothing and take changes; there are only inserts.
    Unchecked,
    /// The same; of the bids of each epoch one in twenty is deleted in the next one, and one in twenty gets another price.
    Revised,
    /// Tables without primary keys keep their rows.
    Kept,
    /// Tables keep their rows, persons and auctions by primary key.
    Keyed,
    /// As append-only, in epochs of 1,000 events.
    SmallEpochs,
    /// As append-only, with a quarter of the memory that Alluvium uses otherwise, but 16 MiB at least; state beyond it is in
    /// files.
    Budget,
    /// As append-only; no event comes more than four seconds after a later one, and state behind that is forgotten.
    Lateness,
}

impl Mode {
    /// The contents of the tables, and how late their rows may come.
    pub fn tables(self) -> Tables {
        let keeping = match self {
            Self::AppendOnly | Self::SmallEpochs | Self::Budget | Self::Lateness => {
                Keeping::AppendOnly
            }
            Self::Unchecked | Self::Revised => Keeping::Unchecked,
            Self::Kept => Keeping::Kept,
            Self::Keyed => Keeping::Keyed,
        };
        Tables { keeping, lateness: (self == Self::Lateness).then_some(LATENESS) }
    }

    /// Whether bids are deleted and updated.
    pub fn has_revisions(self) -> bool {
        self == Self::Revised
    }

    /// The events of an epoch if so many are asked for.
    pub fn epoch_rows(self, wanted: u64) -> u64 {
        if self == Self::SmallEpochs { wanted.min(1_000) } else { wanted }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

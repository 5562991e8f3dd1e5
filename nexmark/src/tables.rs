//! The tables that all queries read, by what they keep of their rows.

use std::str::FromStr;

use crate::error::Error;

/// The tables as `tables.sql` declares them.
const DECLARED: &str = include_str!("../queries/tables.sql");

/// The options of the streams' tables there.
const OPTIONS: &str = " WITH ('append_only' = 'true', 'materialized' = 'false')";

/// The column there that is unique among persons and among auctions.
const ID: &str = " id BIGINT NOT NULL,";

/// What the streams' tables keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// Nothing; rows are only inserted.
    #[default]
    AppendOnly,
    /// Nothing; they take changes as they come.
    Unchecked,
    /// All rows; they are only inserted.
    AppendOnlyKept,
    /// All rows.
    Kept,
    /// All rows, persons and auctions by primary key.
    Keyed,
}

impl Tables {
    /// Each of them.
    pub const ALL: [Self; 5] =
        [Self::AppendOnly, Self::Unchecked, Self::AppendOnlyKept, Self::Kept, Self::Keyed];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AppendOnly => "append-only",
            Self::Unchecked => "unchecked",
            Self::AppendOnlyKept => "append-only-kept",
            Self::Kept => "kept",
            Self::Keyed => "keyed",
        }
    }

    /// The statements that create the tables.
    pub fn sql(self) -> String {
        let options = match self {
            Self::AppendOnly => OPTIONS,
            Self::Unchecked => " WITH ('materialized' = 'false')",
            Self::AppendOnlyKept => " WITH ('append_only' = 'true')",
            Self::Kept | Self::Keyed => "",
        };
        let sql = DECLARED.replace(OPTIONS, options);
        if self == Self::Keyed { sql.replace(ID, " id BIGINT NOT NULL PRIMARY KEY,") } else { sql }
    }
}

impl FromStr for Tables {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let named = |tables: &Self| tables.name() == name;
        Self::ALL.into_iter().find(named).ok_or_else(|| Error::UnknownTables(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_tables_have_the_options() {
        assert_eq!(DECLARED.matches(OPTIONS).count(), 3);
        assert_eq!(Tables::Kept.sql().matches(" WITH ").count(), 0);
        // The side input has a key anyway.
        assert_eq!(Tables::Kept.sql().matches("PRIMARY KEY").count(), 1);
        assert_eq!(Tables::Keyed.sql().matches("PRIMARY KEY").count(), 3);
    }

    #[test]
    fn tables_are_known_by_name() {
        for tables in Tables::ALL {
            assert_eq!(tables.name().parse::<Tables>().ok(), Some(tables));
        }
        let error = "heap".parse::<Tables>().err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.starts_with("unknown tables \"heap\"")));
    }
}

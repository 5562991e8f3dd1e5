//! The tables that all queries read.

use std::str::FromStr;
use std::time::Duration;

use crate::error::Error;

/// The tables as `tables.sql` declares them.
const DECLARED: &str = include_str!("../queries/tables.sql");

/// The options of the streams' tables there.
const OPTIONS: &str = " WITH ('append_only' = 'true', 'materialized' = 'false')";

/// The column there that is unique among persons and among auctions.
const ID: &str = " id BIGINT NOT NULL,";

/// The columns there that may have a lateness.
const TIMES: [&str; 2] = ["date_time", "p_time"];

/// How the streams' tables are declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Which rows they keep.
    pub keeping: Keeping,
    /// How late rows may come, if that is declared. The times of the events have it, and so has the time at which a bid is
    /// inserted.
    pub lateness: Option<Duration>,
}

/// The rows that the streams' tables keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
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
    /// Nothing; rows are only inserted, persons and auctions with a primary key that is not enforced.
    Promised,
}

impl Tables {
    /// The statements that create the tables.
    pub fn sql(self) -> String {
        let options = match self.keeping {
            Keeping::AppendOnly | Keeping::Promised => OPTIONS,
            Keeping::Unchecked => " WITH ('materialized' = 'false')",
            Keeping::AppendOnlyKept => " WITH ('append_only' = 'true')",
            Keeping::Kept | Keeping::Keyed => "",
        };
        let mut sql = DECLARED.replace(OPTIONS, options);
        let key = match self.keeping {
            Keeping::Keyed => " PRIMARY KEY",
            Keeping::Promised => " PRIMARY KEY NOT ENFORCED",
            _ => "",
        };
        sql = sql.replace(ID, &format!(" id BIGINT NOT NULL{key},"));
        let Some(lateness) = self.lateness else { return sql };
        let lateness = format!("LATENESS INTERVAL '{} milliseconds'", lateness.as_millis());
        TIMES.iter().fold(sql, |sql, time| {
            let declared = format!("{time} TIMESTAMP NOT NULL");
            sql.replace(&declared, &format!("{declared} {lateness}"))
        })
    }
}

impl Keeping {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::AppendOnly,
        Self::Unchecked,
        Self::AppendOnlyKept,
        Self::Kept,
        Self::Keyed,
        Self::Promised,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AppendOnly => "append-only",
            Self::Unchecked => "unchecked",
            Self::AppendOnlyKept => "append-only-kept",
            Self::Kept => "kept",
            Self::Keyed => "keyed",
            Self::Promised => "promised",
        }
    }
}

impl FromStr for Keeping {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let named = |keeping: &Self| keeping.name() == name;
        Self::ALL.into_iter().find(named).ok_or_else(|| Error::UnknownTables(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(keeping: Keeping) -> String {
        Tables { keeping, lateness: None }.sql()
    }

    #[test]
    fn all_three_tables_have_the_options() {
        assert_eq!(DECLARED.matches(OPTIONS).count(), 3);
        assert_eq!(sql(Keeping::Kept).matches(" WITH ").count(), 0);
        // The side input has a key anyway.
        assert_eq!(sql(Keeping::Kept).matches("PRIMARY KEY").count(), 1);
        assert_eq!(sql(Keeping::Keyed).matches("PRIMARY KEY").count(), 3);
        assert_eq!(sql(Keeping::Promised).matches("PRIMARY KEY NOT ENFORCED").count(), 2);
    }

    #[test]
    fn all_times_of_events_have_the_lateness() {
        let tables = Tables { lateness: Some(Duration::from_secs(4)), ..Tables::default() };
        let lateness = "TIMESTAMP NOT NULL LATENESS INTERVAL '4000 milliseconds'";
        assert_eq!(tables.sql().matches(&format!("date_time {lateness}")).count(), 3);
        assert_eq!(tables.sql().matches(&format!("p_time {lateness}")).count(), 1);
        assert_eq!(sql(Keeping::AppendOnly), DECLARED);
    }

    #[test]
    fn tables_are_known_by_name() {
        for keeping in Keeping::ALL {
            assert_eq!(keeping.name().parse::<Keeping>().ok(), Some(keeping));
        }
        let error = "heap".parse::<Keeping>().err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.starts_with("unknown tables \"heap\"")));
    }
}

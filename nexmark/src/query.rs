//! The queries: SQL files over common tables.
//!
//! The file of a query defines a view of the same name, and the local views it uses. A comment at the top describes
//! the query, and differences from its usual form.

use crate::error::{Error, Result};

/// One of the queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its name, and that of its view.
    pub name: &'static str,
    /// The file.
    pub sql: &'static str,
}

macro_rules! queries {
    ($($name:literal)*) => {
        [$(Query { name: $name, sql: include_str!(concat!("../queries/", $name, ".sql")) }),*]
    };
}

/// All queries, in order.
pub const QUERIES: [Query; 23] = queries!(
    "q0" "q1" "q2" "q3" "q4" "q5" "q6" "q7" "q8" "q9" "q10" "q11"
    "q12" "q13" "q14" "q15" "q16" "q17" "q18" "q19" "q20" "q21" "q22"
);

impl Query {
    /// The queries of a list such as `q4,q7`, or `all` of them.
    pub fn list(names: &str) -> Result<Vec<Self>> {
        if names == "all" {
            return Ok(QUERIES.to_vec());
        }
        let named = |name: &str| {
            let query = QUERIES.iter().find(|query| query.name == name);
            query.copied().ok_or_else(|| Error::UnknownQuery(name.to_owned()))
        };
        names.split(',').map(str::trim).map(named).collect()
    }

    /// The columns of the view that the query leaves open where bids tie.
    pub fn open(&self) -> &'static [&'static str] {
        match self.name {
            "q18" => &["price", "channel", "url", "extra"],
            "q19" => &["bidder", "channel", "url", "date_time", "extra"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_known_by_name() {
        let names = |list: &str| {
            let list = Query::list(list)?;
            Ok::<_, Error>(list.iter().map(|query| query.name).collect::<Vec<_>>())
        };
        assert_eq!(names("q7, q4").unwrap(), ["q7", "q4"]);
        assert_eq!(names("all").unwrap().len(), 23);
        let error = names("q4,q23").unwrap_err();
        assert_eq!(error.to_string(), "unknown query \"q23\": expected q0 to q22, or \"all\"");
    }
}

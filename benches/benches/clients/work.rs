//! Kinds of work that clients do.

use std::fmt;

use alluvium::{Engine, Outcome, Prepared, Session};
use fastrand::Rng;

use crate::pace::Client;

/// The rows of the table that clients work on.
pub(crate) const ROWS: i64 = 100_000;

/// Its definition.
pub(crate) const DEFINITIONS: &str = "
    CREATE TABLE item (id BIGINT PRIMARY KEY, shop BIGINT, amount BIGINT);
    CREATE MATERIALIZED VIEW shop AS
        SELECT shop, COUNT(*) AS items, SUM(amount) AS amount FROM item GROUP BY shop;
    INSERT INTO item SELECT n, n % 1000, n FROM range(0, 100000) AS r (n)";

const READ: &str = "SELECT shop, amount FROM item WHERE id = ";
const WRITE: &str = "INSERT OR REPLACE INTO item VALUES ($1, $2, $3)";

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Reads of a row by its key, prepared.
    Prepared,
    /// The same with the key in the text.
    Literal,
    /// Commits of one row.
    Commit,
    /// Of ten pieces of work eight prepared reads, one with a literal, and a commit.
    Mixed,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Prepared, Self::Literal, Self::Commit, Self::Mixed];
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Prepared => "prepared reads",
            Self::Literal => "literal reads",
            Self::Commit => "commits of a row",
            Self::Mixed => "mixed",
        })
    }
}

struct Worker {
    kind: Kind,
    session: Session,
    read: Prepared,
    write: Prepared,
}

/// Clients with a session each.
pub(crate) fn clients(engine: &Engine, kind: Kind, count: usize) -> Vec<Box<dyn Client>> {
    let client = |_| {
        let mut session = engine.session();
        let read = session.prepare(&format!("{READ}$1")).expect("it is a query");
        let write = session.prepare(WRITE).expect("it is an INSERT");
        Box::new(Worker { kind, session, read, write }) as Box<dyn Client>
    };
    (0..count).map(client).collect()
}

impl Client for Worker {
    fn act(&mut self, random: &mut Rng) {
        let id = random.i64(0..ROWS);
        let kind = match self.kind {
            Kind::Mixed => match random.u8(0..10) {
                0 => Kind::Commit,
                1 => Kind::Literal,
                _ => Kind::Prepared,
            },
            kind => kind,
        };
        let outcome = match kind {
            Kind::Literal => {
                self.session.execute(&format!("{READ}{id}")).map(|mut outcomes| outcomes.pop())
            }
            Kind::Commit => {
                let values = [id.into(), (id % 1000).into(), random.i64(0..1000).into()];
                self.session.execute_prepared(&self.write, &values).map(Some)
            }
            _ => self.session.execute_prepared(&self.read, &[id.into()]).map(Some),
        };
        let outcome = outcome.expect("the engine is well");
        if let Some(Outcome::Rows(rows)) = outcome {
            let found: usize = rows.map(|rows| rows.expect("the engine is well").num_rows()).sum();
            assert_eq!(found, 1, "each key is there");
        }
    }
}

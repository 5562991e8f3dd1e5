//! Recursive views over random graphs, by WITH RECURSIVE and declared, judged by a fixpoint that is computed from scratch.
//!
//! Few places and many roads make cycles, second ways and ways of other lengths. Roads come and go one by one or many in one
//! transaction; several transactions are under way at once. The engines have one to three workers, memory or files, and some end
//! midway and are resumed by one with another number of workers.

use std::collections::{BTreeMap, BTreeSet};

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Int64Type};
use fastrand::Rng;

use crate::kept::Kept;

const DEFINITIONS: &str = "
    CREATE TABLE road (a BIGINT, b BIGINT);
    CREATE TABLE origin (p BIGINT);
    CREATE MATERIALIZED VIEW reached AS
        WITH RECURSIVE r(p) AS (SELECT p FROM origin UNION SELECT b FROM r JOIN road ON a = p) SELECT p FROM r;
    CREATE MATERIALIZED VIEW connected AS
        WITH RECURSIVE r(x, y) AS (SELECT a, b FROM road UNION SELECT x, b FROM r JOIN road ON a = y)
        SELECT x, y FROM r;
    CREATE MATERIALIZED VIEW ways AS
        WITH RECURSIVE r(p, n) AS (SELECT p, 0 FROM origin UNION ALL SELECT b, n + 1 FROM r JOIN road ON a = p WHERE n < 4)
        SELECT p, n, COUNT(*) AS c FROM r GROUP BY p, n;
    CREATE MATERIALIZED VIEW jumps AS
        WITH RECURSIVE r(p) AS (
            SELECT p FROM origin
            UNION
            SELECT y.b FROM r JOIN road AS x ON x.a = r.p JOIN road AS y ON y.a = x.b AND y.b <> r.p)
        SELECT p FROM r;

    DECLARE RECURSIVE VIEW distance (p BIGINT, d BIGINT);
    CREATE MATERIALIZED VIEW distance WITH ('recursion_limit' = '300') AS
        SELECT p, MIN(d) AS d
        FROM (SELECT p, CAST(0 AS BIGINT) AS d FROM origin
              UNION ALL
              SELECT b, d + (a * 3 + b) % 5 + 1 FROM distance JOIN road ON a = distance.p) AS ways
        GROUP BY p;

    DECLARE RECURSIVE VIEW label (p BIGINT, l BIGINT);
    CREATE LOCAL VIEW passed AS SELECT b AS p, l FROM label JOIN road ON a = label.p;
    CREATE MATERIALIZED VIEW label WITH ('recursion_limit' = '300') AS
        SELECT p, MAX(l) AS l FROM (SELECT p, p AS l FROM origin UNION ALL SELECT p, l FROM passed) AS labels GROUP BY p;

    DECLARE RECURSIVE VIEW backed (p BIGINT);
    CREATE MATERIALIZED VIEW backed WITH ('recursion_limit' = '300') AS
        SELECT p FROM origin
        UNION ALL
        SELECT b FROM (
            SELECT b, COUNT(*) AS c, SUM(a) AS s
            FROM (SELECT DISTINCT a, b FROM backed JOIN road ON a = backed.p) AS roads GROUP BY b) AS ends
        WHERE c >= 2 OR s = 3;

    DECLARE RECURSIVE VIEW even (p BIGINT);
    DECLARE RECURSIVE VIEW odd (p BIGINT);
    CREATE MATERIALIZED VIEW even AS SELECT p FROM origin UNION SELECT b FROM odd JOIN road ON a = odd.p;
    CREATE MATERIALIZED VIEW odd AS SELECT b AS p FROM even JOIN road ON a = even.p;
";

pub(crate) const VIEWS: [&str; 9] =
    ["reached", "connected", "ways", "jumps", "distance", "label", "backed", "even", "odd"];

type Row = Vec<i64>;

/// The tables.
#[derive(Default)]
struct Model {
    roads: Vec<(i64, i64)>,
    origins: Vec<i64>,
}

impl Model {
    /// The rows of `base` and what `step` makes of rows, once each.
    fn fixpoint(base: impl IntoIterator<Item = Row>, step: impl Fn(&Row) -> Vec<Row>) -> Vec<Row> {
        let mut found = BTreeSet::new();
        let mut rest: Vec<Row> = base.into_iter().collect();
        while let Some(row) = rest.pop() {
            if found.insert(row.clone()) {
                rest.extend(step(&row));
            }
        }
        found.into_iter().collect()
    }

    /// The rows of which `body` makes themselves, from none on.
    fn iterated(body: impl Fn(&BTreeSet<Row>) -> BTreeSet<Row>) -> Vec<Row> {
        let mut rows = BTreeSet::new();
        loop {
            let next = body(&rows);
            if next == rows {
                return rows.into_iter().collect();
            }
            rows = next;
        }
    }

    /// The greatest value of each place: of origins, and what `along` makes of that of a road's start.
    fn greatest(
        &self,
        of_origin: impl Fn(i64) -> i64,
        along: impl Fn(i64, i64, i64) -> i64,
    ) -> Vec<Row> {
        Self::iterated(|rows| {
            let mut values: BTreeMap<i64, i64> = BTreeMap::new();
            let mut put = |place: i64, value: i64| {
                let found = values.entry(place).or_insert(value);
                *found = value.max(*found);
            };
            self.origins.iter().for_each(|place| put(*place, of_origin(*place)));
            for row in rows {
                self.from(row[0]).for_each(|end| put(end, along(row[0], end, row[1])));
            }
            values.into_iter().map(|(place, value)| vec![place, value]).collect()
        })
    }

    /// The places that an even number of roads reaches, beside 0, and an odd one, beside 1.
    fn parities(&self) -> Vec<Row> {
        let origins = self.origins.iter().map(|place| vec![0, *place]);
        Self::fixpoint(origins, |row| self.from(row[1]).map(|b| vec![1 - row[0], b]).collect())
    }

    fn from(&self, place: i64) -> impl Iterator<Item = i64> {
        self.roads.iter().filter(move |road| road.0 == place).map(|road| road.1)
    }

    /// The rows that a view has.
    fn answer(&self, view: &str) -> Vec<Row> {
        let origins = self.origins.iter().map(|place| vec![*place]);
        match view {
            "reached" => {
                Self::fixpoint(origins, |row| self.from(row[0]).map(|b| vec![b]).collect())
            }
            "connected" => Self::fixpoint(self.roads.iter().map(|(a, b)| vec![*a, *b]), |row| {
                self.from(row[1]).map(|b| vec![row[0], b]).collect()
            }),
            "jumps" => Self::fixpoint(origins, |row| {
                let over = self.from(row[0]).flat_map(|over| self.from(over));
                over.filter(|b| *b != row[0]).map(|b| vec![b]).collect()
            }),
            "distance" => {
                let longer = |a, b, d| d - ((a * 3 + b) % 5 + 1);
                let nearest = self.greatest(|_| 0, longer).into_iter();
                nearest.map(|row| vec![row[0], -row[1]]).collect()
            }
            "label" => self.greatest(|place| place, |_, _, label| label),
            "backed" => Self::iterated(|rows| {
                let mut starts: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
                for row in rows {
                    self.from(row[0]).for_each(|b| {
                        starts.entry(b).or_default().insert(row[0]);
                    });
                }
                starts.retain(|_, starts| starts.len() >= 2 || starts.iter().sum::<i64>() == 3);
                self.origins.iter().copied().chain(starts.into_keys()).map(|p| vec![p]).collect()
            }),
            "even" | "odd" => {
                let parity = i64::from(view == "odd");
                let found = self.parities().into_iter().filter(|row| row[0] == parity);
                found.map(|row| vec![row[1]]).collect()
            }
            _ => {
                let mut counts: BTreeMap<(i64, i64), i64> = BTreeMap::new();
                let mut rest: Vec<(i64, i64)> = self.origins.iter().map(|p| (*p, 0)).collect();
                while let Some((place, n)) = rest.pop() {
                    *counts.entry((place, n)).or_default() += 1;
                    if n < 4 {
                        rest.extend(self.from(place).map(|b| (b, n + 1)));
                    }
                }
                counts.into_iter().map(|((place, n), count)| vec![place, n, count]).collect()
            }
        }
    }

    /// A random change, as a statement.
    fn change(&mut self, random: &mut Rng, places: i64) -> String {
        let place = |random: &mut Rng| random.i64(0..places);
        match random.u8(0..10) {
            0 => {
                let p = place(random);
                self.origins.push(p);
                format!("INSERT INTO origin VALUES ({p})")
            }
            1 => {
                let p = place(random);
                self.origins.retain(|other| *other != p);
                format!("DELETE FROM origin WHERE p = {p}")
            }
            2 => {
                let a = place(random);
                self.roads.retain(|road| road.0 != a);
                format!("DELETE FROM road WHERE a = {a}")
            }
            3..=5 if !self.roads.is_empty() => {
                let (a, b) = self.roads[random.usize(0..self.roads.len())];
                self.roads.retain(|road| *road != (a, b));
                format!("DELETE FROM road WHERE a = {a} AND b = {b}")
            }
            _ => {
                let (a, b) = (place(random), place(random));
                self.roads.push((a, b));
                format!("INSERT INTO road VALUES ({a}, {b})")
            }
        }
    }
}

/// Runs the random graph of this number.
///
/// # Errors
/// The first wrong view, or what the engine could not do.
pub fn judge(number: u64) -> Result<(), String> {
    let text = |error: alluvium::Error| error.to_string();
    let random = &mut Rng::with_seed(number);
    let kept = random.bool().then(Kept::default);
    let memory = [None, Some(1), Some(30_000)][random.usize(0..3)];
    let open = |workers: usize| -> Result<Engine, String> {
        let builder = Engine::builder().workers(workers).memory(memory);
        let builder = match &kept {
            Some(kept) => kept.resume(builder).map_err(text)?,
            None => builder,
        };
        builder.open().map_err(text)
    };
    let mut engine = open(random.usize(1..4))?;
    let (mut model, places) = (Model::default(), random.i64(2..9));
    let looks = 12;
    let end = random.usize(0..looks);
    engine.execute(DEFINITIONS).map_err(text)?;
    for look in 0..looks {
        for _ in 0..random.usize(1..5) {
            let count = if random.u8(0..4) == 0 { 8 } else { 1 };
            let changes: Vec<String> = (0..count).map(|_| model.change(random, places)).collect();
            engine.execute(&format!("BEGIN; {}; COMMIT", changes.join("; "))).map_err(text)?;
        }
        if kept.is_some() && look == end {
            if random.bool() {
                engine.checkpoint().map_err(text)?;
            }
            engine.execute(&model.change(random, places)).map_err(text)?;
            drop(engine);
            engine = open(random.usize(1..4))?;
        }
        for view in VIEWS {
            let (found, expected) = (rows(&engine, view)?, model.answer(view));
            if found != expected {
                return Err(format!(
                    "graph {number}, look {look}: {view} has {found:?} and not {expected:?} over {:?} from {:?}",
                    model.roads, model.origins
                ));
            }
        }
        let errors = engine.query("SELECT * FROM alluvium.errors").map_err(text)?;
        if errors.iter().any(|batch| batch.num_rows() > 0) {
            return Err(format!("graph {number}, look {look}: there are errors"));
        }
    }
    Ok(())
}

/// The rows of a view, sorted.
fn rows(engine: &Engine, view: &str) -> Result<Vec<Row>, String> {
    let batches =
        engine.query(&format!("SELECT * FROM {view}")).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Result<Vec<_>, _> =
            batch.columns().iter().map(|column| cast(column, &DataType::Int64)).collect();
        let columns = columns.map_err(|error| error.to_string())?;
        for row in 0..batch.num_rows() {
            let value = |column| AsArray::as_primitive::<Int64Type>(column).value(row);
            rows.push(columns.iter().map(value).collect());
        }
    }
    rows.sort();
    Ok(rows)
}

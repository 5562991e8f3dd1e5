//! The programs as views.

use std::sync::Arc;
use std::time::Instant;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium_benches::processors;

use super::graph::{Edge, Graph};
use super::{Answer, Program, Run, value};

/// The rows that are inserted at once.
const TOGETHER: usize = 100_000;

fn definition(program: Program) -> &'static str {
    match program {
        Program::Reached => {
            "CREATE MATERIALIZED VIEW answer AS
             WITH RECURSIVE r(vertex) AS (
                 SELECT CAST(0 AS BIGINT) UNION SELECT edge.finish FROM r JOIN edge ON edge.start = r.vertex)
             SELECT vertex, CAST(0 AS BIGINT) AS distance FROM r"
        }
        Program::Distances => {
            "DECLARE RECURSIVE VIEW answer (vertex BIGINT, distance BIGINT);
             CREATE MATERIALIZED VIEW answer AS
             SELECT vertex, MIN(distance) AS distance
             FROM (SELECT CAST(0 AS BIGINT) AS vertex, CAST(0 AS BIGINT) AS distance
                   UNION ALL
                   SELECT edge.finish, answer.distance + edge.length
                   FROM answer JOIN edge ON edge.start = answer.vertex) AS ways
             GROUP BY vertex"
        }
    }
}

pub(crate) fn run(program: Program, graph: Graph) -> Run {
    let engine = Engine::builder().workers(graph.workers).open_in_memory().expect("it opens");
    engine
        .execute("CREATE TABLE edge (start BIGINT, finish BIGINT, length BIGINT)")
        .and_then(|_| engine.execute(definition(program)))
        .expect("the statements are right");
    let begun = Instant::now();
    let mut transaction = engine.begin().expect("a transaction begins");
    let mut edges = graph.edges().peekable();
    while edges.peek().is_some() {
        let rows = rows(edges.by_ref().take(TOGETHER));
        transaction.insert("edge", rows).expect("the rows fit");
    }
    let epoch = transaction.commit().expect("a transaction commits");
    engine.wait(epoch).expect("epochs complete");
    let fill = begun.elapsed().as_secs_f64();
    let before = answer(&engine);
    let begun = processors();
    let changes = graph.changes().map(|(edge, weight)| {
        let begun = Instant::now();
        let rows = rows([edge].into_iter());
        let mut transaction = engine.begin().expect("a transaction begins");
        let changed = match weight {
            1 => transaction.insert("edge", rows),
            _ => transaction.delete("edge", rows),
        };
        changed.expect("the rows fit");
        let epoch = transaction.commit().expect("a transaction commits");
        engine.wait(epoch).expect("epochs complete");
        begun.elapsed().as_secs_f64() * 1e3
    });
    let changes = changes.collect();
    let processors = (processors() - begun) * 1e3 / graph.changes as f64;
    Run { fill, changes, processors, answers: [before, answer(&engine)] }
}

fn rows(edges: impl Iterator<Item = Edge>) -> RecordBatch {
    let edges: Vec<Edge> = edges.collect();
    let column = |pick: fn(&Edge) -> i64| {
        Arc::new(edges.iter().map(pick).collect::<Int64Array>()) as ArrayRef
    };
    let (start, finish) = (column(|edge| edge.0), column(|edge| edge.1));
    let columns = [("start", start), ("finish", finish), ("length", column(|edge| edge.2))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn answer(engine: &Engine) -> Answer {
    let rows = engine.query("SELECT vertex, distance FROM answer").expect("the view is there");
    let mut answer = (0, 0);
    for batch in rows {
        let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().values();
        for (vertex, distance) in column(0).iter().zip(column(1)) {
            answer = (answer.0 + 1, answer.1 + value(*vertex, *distance));
        }
    }
    answer
}

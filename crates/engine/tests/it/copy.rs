//! COPY through sources that programs register.

use std::path::Path;
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{
    Engine, Error, Outcome, Portion, Refusal, Result, Source, SourceReader, SourceRequest,
};

use crate::support::query;

/// Reads `N.count`: the numbers from 1 to N, a hundred at a time, without the multiples of ten.
struct Count;

struct Counting {
    request: SourceRequest,
    next: i64,
    last: i64,
}

impl Source for Count {
    fn name(&self) -> &str {
        "count"
    }

    fn handles(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "count")
    }

    fn check(&self, option: &str, _: &str) -> Result<()> {
        match option {
            "STEP" => Ok(()),
            other => Err(Error::source(format!("there is no option {other}"))),
        }
    }

    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>> {
        let stem = request
            .path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.parse().ok());
        let last =
            stem.ok_or_else(|| Error::source(format!("{}: not a number", request.path.display())))?;
        Ok(Box::new(Counting { request: request.clone(), next: 1, last }))
    }
}

impl SourceReader for Counting {
    fn next(&mut self) -> Result<Option<Portion>> {
        if self.next > self.last {
            return Ok(None);
        }
        let numbers = self.next..=self.last.min(self.next + 99);
        self.next = numbers.end() + 1;
        let refusal =
            |number: i64| Refusal::new(&self.request.path, number as u64, "a round number");
        let refused: Vec<_> =
            numbers.clone().filter(|number| number % 10 == 0).map(refusal).collect();
        let column: ArrayRef =
            Arc::new(Int64Array::from_iter_values(numbers.filter(|number| number % 10 != 0)));
        let rows = RecordBatch::try_new(self.request.schema.clone(), vec![column])?;
        let mut portion = Portion::new(rows);
        (portion.refused, portion.bytes) = (refused, 8);
        Ok(Some(portion))
    }
}

fn engine() -> Engine {
    let engine =
        Engine::builder().workers(2).source(Count).open_in_memory().expect("an engine starts");
    engine.execute("CREATE TABLE t (n BIGINT)").expect("a table is created");
    engine
}

#[test]
fn copy_is_one_transaction_and_tells_what_it_refused() {
    let engine = engine();
    let mut session = engine.session();
    session.set_base("/numbers");
    let outcome = session.execute("COPY t FROM '250.count' (STEP 1)").expect("it copies").pop();
    let Some(Outcome::Copied { rows: 225, refused: 25, messages, epoch: Some(1), .. }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(messages.len(), 10);
    assert_eq!(
        (messages[9].file.as_path(), messages[9].line),
        (Path::new("/numbers/250.count"), 100)
    );
    engine.wait(1).expect("the epoch completes");
    assert_eq!(query(&engine, "SELECT COUNT(*), SUM(n) FROM t"), ["225 28125"]);
}

#[test]
fn copy_can_be_rolled_back() {
    let engine = engine();
    let outcomes =
        engine.execute("BEGIN; COPY t FROM '5.count'; SELECT COUNT(*) FROM t").expect("it copies");
    assert!(
        matches!(outcomes[1], Outcome::Copied { rows: 5, epoch: None, .. }),
        "{:?}",
        outcomes[1]
    );
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn copy_from_what_cannot_be_read_is_an_error() {
    let engine = engine();
    let error = |sql: &str| engine.execute(sql).expect_err("it cannot be read");
    assert_eq!(
        error("COPY t FROM 'x.csv'").to_string(),
        "nothing here reads \"x.csv\"; registered sources: count"
    );
    assert_eq!(error("COPY t FROM 'x.count'").to_string(), "x.count: not a number");
    assert_eq!(error("COPY t FROM '5.count' (SPEED 3)").to_string(), "there is no option SPEED");
    assert!(error("COPY missing FROM '5.count'").position().is_some());
    assert_eq!(query(&engine, "SELECT COUNT(*) FROM t"), ["0"]);
}

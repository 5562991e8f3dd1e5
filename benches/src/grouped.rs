//! Tables of rows in groups of one size, and a view of each kind over them: what [`small`](../../benches/small.rs) and
//! [`filling`](../../benches/filling.rs) measure.

use std::sync::Arc;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

/// Names and queries over a table `t` with the columns `id`, `g`, `n`, and a table `d` with a row for each `g`.
pub const VIEWS: [(&str, &str); 9] = [
    ("filter", "SELECT id, n FROM t WHERE n % 2 = 0"),
    ("sums", "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY g"),
    ("MAX", "SELECT g, MAX(n) AS m FROM t GROUP BY g"),
    ("COUNT(DISTINCT)", "SELECT g, COUNT(DISTINCT n) AS c FROM t GROUP BY g"),
    (
        "three greatest",
        "SELECT * FROM (SELECT id, g, n, ROW_NUMBER() OVER (PARTITION BY g ORDER BY n DESC, id) AS r FROM t) AS x
         WHERE r <= 3",
    ),
    ("join", "SELECT t.id, t.n, d.label FROM t JOIN d ON d.g = t.g"),
    ("LAG", "SELECT id, LAG(n) OVER (PARTITION BY g ORDER BY id) AS before FROM t"),
    (
        "rolling SUM",
        "SELECT id, SUM(n) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS s
         FROM t",
    ),
    ("MEDIAN", "SELECT g, MEDIAN(n) AS m FROM t GROUP BY g"),
];

/// The statements that create `t`, another table `u` with the same columns, and `d`.
pub const TABLES: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT, n BIGINT, name TEXT);
     CREATE TABLE u (id BIGINT PRIMARY KEY, g BIGINT, n BIGINT, name TEXT);
     CREATE TABLE d (g BIGINT PRIMARY KEY, label TEXT);";

/// The rows of a group.
const GROUP: i64 = 100;
/// The rows of a transaction that loads.
const TOGETHER: i64 = 100_000;

/// Rows with these ids and these `n`, of a table with as many rows as `size` says.
pub fn rows(
    ids: impl Iterator<Item = i64> + Clone,
    size: i64,
    n: impl Fn(i64) -> i64,
) -> RecordBatch {
    let groups = groups(size);
    let column = |values: Int64Array| Arc::new(values) as ArrayRef;
    let name: ArrayRef =
        Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("the name of {id}"))));
    let columns = [
        ("id", column(ids.clone().collect())),
        ("g", column(ids.clone().map(|id| id % groups).collect())),
        ("n", column(ids.map(n).collect())),
        ("name", name),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// The rows of `t`, in batches. Ids are odd numbers, so that there are absent ones between any two.
pub fn contents(size: i64) -> impl Iterator<Item = RecordBatch> {
    (0..size).step_by(TOGETHER as usize).map(move |start| {
        let ids = (start..size.min(start + TOGETHER)).map(|row| 2 * row + 1);
        rows(ids, size, |id| id * 7919 % 1009)
    })
}

/// The rows of `d`.
pub fn labels(size: i64) -> RecordBatch {
    let labels: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..groups(size)).map(|g| format!("label {g}"))));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..groups(size)));
    RecordBatch::try_from_iter([("g", ids), ("label", labels)]).expect("columns of one length")
}

fn groups(size: i64) -> i64 {
    (size / GROUP).max(1)
}

/// Inserts or replaces rows in a transaction of their own. Returns its epoch.
pub fn insert(engine: &Engine, table: &str, rows: RecordBatch) -> u64 {
    let mut transaction = engine.begin().expect("a transaction begins");
    transaction.upsert(table, rows).expect("the rows fit");
    transaction.commit().expect("a transaction commits")
}

/// Inserts the contents of `t` and `d`, and waits until all views follow.
pub fn load(engine: &Engine, size: i64) {
    insert(engine, "d", labels(size));
    for rows in contents(size) {
        let epoch = insert(engine, "t", rows);
        engine.wait(epoch).expect("epochs complete");
    }
}

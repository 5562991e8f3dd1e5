//! Startup latency: the time until a process prints its first row, and until many views are built.
//!
//! The first benchmark needs the binary: run `cargo build --release --bin alluvium` before `cargo bench`.

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use alluvium::Engine;
use criterion::{Criterion, criterion_group, criterion_main};

const SMALL_PROGRAM: &str = "
    CREATE TABLE bid (auction BIGINT, price BIGINT);
    CREATE MATERIALIZED VIEW totals AS
        SELECT auction, COUNT(*) AS bids, SUM(price) AS total FROM bid GROUP BY auction;
    INSERT INTO bid VALUES (1, 10), (1, 20), (2, 5);
    SELECT * FROM totals ORDER BY auction;";

/// The binary beside this benchmark, which is in `target/release/deps`.
fn binary() -> PathBuf {
    let here = std::env::current_exe().expect("a running program has a path");
    let folder = here.parent().and_then(|deps| deps.parent()).expect("it lies two folders deep");
    folder.join(format!("alluvium{}", std::env::consts::EXE_SUFFIX))
}

fn first_row(criterion: &mut Criterion) {
    let binary = binary();
    if !binary.exists() {
        println!("skipped: build {} with `cargo build --release --bin alluvium`", binary.display());
        return;
    }
    criterion.bench_function("process start to first row", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut total = std::time::Duration::ZERO;
            for _ in 0..rounds {
                let start = std::time::Instant::now();
                let mut process = Command::new(&binary)
                    .args(["--format", "csv", "-c", SMALL_PROGRAM])
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("the binary starts");
                let output = process.stdout.take().expect("its output is piped");
                let mut lines = BufReader::new(output).lines();
                let header = lines.next().expect("a header").expect("text");
                let row = lines.next().expect("a row").expect("text");
                total += start.elapsed();
                assert_eq!((header.as_str(), row.as_str()), ("auction,bids,total", "1,2,30"));
                lines.for_each(drop);
                process.wait().expect("it ends");
            }
            total
        });
    });
}

/// Views over ten tables: filters, joins, sums, extremes.
fn many_views(views: usize) -> String {
    let mut program = String::new();
    for table in 0..10 {
        program += &format!("CREATE TABLE t{table} (id BIGINT, grp BIGINT, amount DOUBLE);\n");
        program += &format!("INSERT INTO t{table} VALUES (1, 1, 1.5), (2, 1, 2.5);\n");
    }
    for view in 0..views {
        let (one, other) = (view % 10, (view / 10 + 1 + view) % 10);
        let query = match view % 4 {
            0 => format!("SELECT id, amount * 2 AS twice FROM t{one} WHERE grp > 0"),
            1 => format!("SELECT grp, COUNT(*) AS n, SUM(amount) AS s FROM t{one} GROUP BY grp"),
            2 => format!("SELECT a.id, b.amount FROM t{one} a JOIN t{other} b ON a.id = b.id"),
            _ => {
                format!("SELECT grp, MIN(amount) AS lo, MAX(amount) AS hi FROM t{one} GROUP BY grp")
            }
        };
        program += &format!("CREATE MATERIALIZED VIEW v{view} AS {query};\n");
    }
    program
}

fn views_over_ten_tables(criterion: &mut Criterion) {
    for views in [200, 1000] {
        let program = many_views(views);
        let last = format!("SELECT COUNT(*) FROM v{}", views - 1);
        let mut group = criterion.benchmark_group(format!("{views} views over 10 tables"));
        group.sample_size(10);
        for workers in [1, 2] {
            group.bench_function(format!("{workers} workers"), |bencher| {
                bencher.iter(|| {
                    let builder = Engine::builder().workers(workers);
                    let engine = builder.open_in_memory().expect("the engine opens");
                    engine.execute(&program).expect("the program runs");
                    black_box(engine.query(&last).expect("the last view answers"));
                    engine
                });
            });
        }
        group.finish();
    }
}

/// An epoch of one row that changes one view, beside many views of other tables that it does not change.
fn epochs_beside_many_views(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one-row epoch of one view");
    for views in [10, 100, 1000] {
        let builder = Engine::builder().workers(2);
        let engine = builder.open_in_memory().expect("the engine opens");
        engine.execute(&many_views(views)).expect("the program runs");
        engine
            .execute(
                "CREATE TABLE busy (n BIGINT);
                 CREATE MATERIALIZED VIEW busiest AS SELECT MAX(n) AS n FROM busy",
            )
            .expect("one more table and view");
        group.bench_function(format!("beside {views} views"), |bencher| {
            bencher.iter(|| {
                engine.execute("INSERT INTO busy VALUES (1)").expect("a row");
                engine.wait(engine.progress().committed).expect("it is complete");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, first_row, views_over_ten_tables, epochs_beside_many_views);
criterion_main!(benches);

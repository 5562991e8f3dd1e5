//! The tutorial on a year of flights: 336,776 rows read from CSV, with all views materialized.
//!
//! Reads the folder named by `ALLUVIUM_FLIGHTS`; see `docs/benchmarks.md`.

use std::path::Path;

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FLIGHTS: u64 = 336_776;

fn program() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorial/flights.sql");
    let text = std::fs::read_to_string(path).expect("the tutorial is in the checkout");
    // As `alluvium run` does.
    text.replace("${DATA:-data}", "data")
}

fn whole_year(criterion: &mut Criterion) {
    let Some(year) = std::env::var_os("ALLUVIUM_FLIGHTS") else {
        println!("skipped: ALLUVIUM_FLIGHTS names no folder of flights");
        return;
    };
    let base = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(base.path().join("data")).expect("a folder in it");
    for file in std::fs::read_dir(year).expect("the folder of flights") {
        let file = file.expect("a file of flights");
        let name = base.path().join("data").join(file.file_name());
        std::fs::copy(file.path(), name).expect("its copy");
    }
    let program = program();
    let load_only: String = alluvium::parse(&program)
        .map(|statement| statement.expect("the tutorial parses"))
        .filter(|statement| {
            use alluvium::unstable::StatementKind::{Copy, CreateTable};
            matches!(alluvium::unstable::tree(statement).kind, CreateTable(_) | Copy { .. })
        })
        .map(|statement| format!("{};\n", statement.text()))
        .collect();

    let mut group = criterion.benchmark_group("a year of flights");
    group.sample_size(10).throughput(Throughput::Elements(FLIGHTS));
    for (what, program) in [("tables only", &load_only), ("the whole tutorial", &program)] {
        for workers in [1, 2] {
            group.bench_function(format!("{what}, {workers} workers"), |bencher| {
                bencher.iter(|| {
                    let engine = Engine::builder()
                        .workers(workers)
                        .source(alluvium_connect::Csv)
                        .open_in_memory()
                        .expect("the engine opens");
                    let mut session = engine.session();
                    session.set_base(base.path());
                    session.set_awaits_sources(true);
                    session.execute(program).expect("the program runs");
                    engine.start().and_then(|()| engine.wait_for_sources()).expect("all is read");
                    let rows = engine.query("SELECT COUNT(*) FROM flights").expect("it answers");
                    let count = rows[0].column(0).as_primitive::<Int64Type>().value(0);
                    assert!(count as u64 > FLIGHTS / 2, "{count}");
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, whole_year);
criterion_main!(benches);

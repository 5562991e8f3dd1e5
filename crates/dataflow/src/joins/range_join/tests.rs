//! The cost of a change: the rows that are read. Results are compared with a model in `tests/it/range_join.rs`.

use timely::worker::Worker;

use super::*;
use crate::joins::costs::{Joined, schema};

/// The values that are greater than those of the right side.
fn build(worker: &mut Worker) -> Joined {
    let side = schema(&["value"]);
    let low = Some(End { column: 0, is_included: false });
    let ends = Ends { low, high: None };
    let left = Left { schema: &side, keys: &[], value: 0 };
    let right = Right { schema: &side, keys: &[], ends, payload: &[] };
    let spec = Spec::compile(&left, &right, side.clone()).unwrap();
    Joined::build(worker, &side, |left, right, contexts| range_join(&spec, left, right, contexts))
}

#[test]
fn an_end_that_moves_reads_the_rows_that_it_passes_and_a_row_reads_the_ends() {
    for size in [100, 100_000] {
        timely::execute_directly(move |worker: &mut Worker| {
            let mut filtered = build(worker);
            let middle = size / 2;
            filtered.send(0, 1, vec![(0..size).collect()], 1);
            filtered.send(1, 1, vec![vec![middle]], 1);
            let (_, emitted) = filtered.end(worker, 1);
            assert_eq!(emitted as i64, size - 1 - middle);
            // The rows up to the new end go, and come again.
            for (epoch, from, to) in [(2, middle, middle + 3), (3, middle + 3, middle)] {
                filtered.send(1, epoch, vec![vec![from]], -1);
                filtered.send(1, epoch, vec![vec![to]], 1);
                let (read, emitted) = filtered.end(worker, epoch);
                assert_eq!(emitted, 3);
                assert!(read <= 6, "{read} of {size} rows");
            }
            filtered.send(0, 4, vec![vec![middle + 1]], 1);
            let (read, emitted) = filtered.end(worker, 4);
            assert_eq!(emitted, 1);
            assert!(read <= 4, "{read} of {size} rows");
        });
    }
}

#[test]
fn an_end_that_goes_and_comes_again_reads_no_row() {
    let (read, emitted) = timely::execute_directly(|worker: &mut Worker| {
        let mut filtered = build(worker);
        filtered.send(0, 1, vec![(0..1000).collect()], 1);
        filtered.send(1, 1, vec![vec![500]], 1);
        filtered.end(worker, 1);
        filtered.send(1, 2, vec![vec![500]], -1);
        filtered.send(1, 2, vec![vec![500]], 1);
        filtered.end(worker, 2)
    });
    assert!(read <= 2 && emitted == 0, "{read} {emitted}");
}

//! The cost of a change: the rows that are read. Results are compared with a model in `tests/it/asof.rs`.

use timely::worker::Worker;

use super::*;
use crate::joins::costs::{Joined, schema};

/// A left join by the nearest right row.
fn build(worker: &mut Worker, later: bool) -> Joined {
    let sides = schema(&["key", "time"]);
    let side = Side { schema: &sides, keys: &[0], time: 1 };
    let nearest = Nearest { later, or_equal: true };
    let output = schema(&["key", "time", "key2", "time2"]);
    let spec = Spec::compile(&side, &side, &[], nearest, true, output).unwrap();
    Joined::build(worker, &sides, |left, right, contexts| asof_join(&spec, left, right, contexts))
}

/// Sends rows of one key at these times.
fn send(joined: &mut Joined, side: usize, epoch: Epoch, times: Vec<i64>, weight: i64) {
    joined.send(side, epoch, vec![vec![1; times.len()], times], weight);
}

/// The rows read and emitted for changes of one row each beside `size` rows per side: a right row comes, another one goes, a
/// left row comes, and an old one goes.
fn costs(size: i64, later: bool) -> Vec<(usize, usize)> {
    timely::execute_directly(move |worker: &mut Worker| {
        let mut joined = build(worker, later);
        send(&mut joined, 0, 1, (0..size).map(|at| 4 * at).collect(), 1);
        send(&mut joined, 1, 1, (0..size).map(|at| 4 * at + 1).collect(), 1);
        joined.end(worker, 1);
        let middle = 4 * (size / 2);
        let changes = [(1, middle + 3, 1), (1, middle + 1, -1), (0, middle + 2, 1), (0, 0, -1)];
        let costs = changes.into_iter().zip(2..).map(|((side, at, weight), epoch)| {
            send(&mut joined, side, epoch, vec![at], weight);
            joined.end(worker, epoch)
        });
        costs.collect()
    })
}

#[test]
fn a_change_reads_the_rows_that_it_reaches_and_not_its_key() {
    for later in [false, true] {
        let (few, many) = (costs(100, later), costs(100_000, later));
        for (few, many) in few.iter().zip(&many) {
            assert_eq!(few, many, "later: {later}");
            assert!(many.0 <= 12 && many.1 <= 2, "{many:?}, later: {later}");
        }
    }
}

#[test]
fn another_copy_of_a_right_row_reads_no_left_row() {
    let cost = timely::execute_directly(|worker: &mut Worker| {
        let mut joined = build(worker, false);
        send(&mut joined, 0, 1, (10..1000).collect(), 1);
        send(&mut joined, 1, 1, vec![1, 5], 1);
        joined.end(worker, 1);
        send(&mut joined, 1, 2, vec![5], 1);
        joined.end(worker, 2)
    });
    assert!(cost.0 <= 8 && cost.1 == 0, "{cost:?}");
}

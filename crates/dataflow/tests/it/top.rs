//! Top-k per group with every kind of numbering, compared with a model.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::reductions::ranked::top::{self, top};
use alluvium_dataflow::reductions::ranked::{Numbering, Top};
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::harness::{Row, Rows, Run, assert_caught, compare_single, every_seed};

const COLUMNS: [&str; 3] = ["group", "value", "other"];

/// Descending with NULLs last, as the model orders them.
const DESCENDING: SortOptions = SortOptions { descending: true, nulls_first: false };

fn numbered(schema: &SchemaRef) -> SchemaRef {
    let number = Field::new("number", DataType::UInt64, false);
    let fields = schema.fields().iter().map(|field| field.as_ref().clone()).chain([number]);
    std::sync::Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// One run. It is random whether rows are numbered by row, by rank or by dense rank.
fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x51_49_13);
    let mut history = run.grouped_history(&mut random, 2);
    let append_only = random.once_in(3);
    if append_only {
        history.retain(|&(_, _, weight)| weight > 0);
    }
    let numbering =
        [Numbering::Row, Numbering::Rank, Numbering::DenseRank][random.below(3) as usize];
    let which = Top {
        numbering,
        skip: if random.once_in(2) { 0 } else { random.below(4) },
        take: (!random.once_in(6)).then(|| 1 + random.below(4)),
        numbered: random.once_in(2),
    };
    let grouped = random.once_in(2);
    let keys: &'static [usize] = if grouped { &[0] } else { &[] };
    // Row numbers need a total order, or the model could not know which of several equal rows comes first.
    let order = match numbering {
        Numbering::Row => vec![(1, DESCENDING), (2, DESCENDING), (0, DESCENDING)],
        _ => vec![(1, DESCENDING)],
    };
    let columns: Vec<usize> = order.iter().map(|&(column, _)| column).collect();
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let output = if which.numbered { numbered(schema) } else { schema.clone() };
            let spec = top::Spec::compile(schema, keys, &order, which, append_only, output);
            top(&spec.unwrap(), rows, &context::current())
        },
        |rows| model(rows, grouped, &columns, which),
    )
    .map_err(|difference| {
        format!("{which:?}, grouped {grouped}, append-only {append_only}, {difference}")
    })
}

fn model(rows: &Rows, grouped: bool, order: &[usize], which: Top) -> Rows {
    let mut groups: BTreeMap<Option<i64>, Vec<Row>> = BTreeMap::new();
    for (row, weight) in rows {
        let group = groups.entry(if grouped { row[0] } else { None }).or_default();
        group.extend((0..*weight).map(|_| row.clone()));
    }
    let key = |row: &Row| order.iter().map(|&column| Reverse(row[column])).collect::<Vec<_>>();
    let mut chosen = Rows::new();
    for mut group in groups.into_values() {
        group.sort_by_key(key);
        for (place, row) in group.iter().enumerate() {
            let before = group.iter().filter(|other| key(other) < key(row));
            let number = 1 + match which.numbering {
                Numbering::Row => place,
                Numbering::Rank => before.count(),
                Numbering::DenseRank => {
                    before.map(key).collect::<std::collections::BTreeSet<_>>().len()
                }
            } as u64;
            if number <= which.skip || number > which.last() {
                continue;
            }
            let mut row = row.clone();
            row.extend(which.numbered.then_some(Some(number as i64)));
            *chosen.entry(row).or_default() += 1;
        }
    }
    chosen
}

#[test]
fn the_first_rows_of_groups_equal_the_model_at_every_epoch() {
    every_seed(200, check);
}

#[test]
fn faults_in_choosing_the_first_rows_are_caught() {
    let faults = [
        Fault::FirstTileOnly,
        Fault::LastTimeOnly,
        Fault::KeepOldAnswer,
        Fault::ForgetHistory,
        Fault::KeepNumbers,
    ];
    assert_caught(60, &faults, check);
}

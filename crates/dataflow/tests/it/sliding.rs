//! Window functions that read the rows around each row, over random partitions, compared with a model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use alluvium_dataflow::fault::Fault;
use alluvium_dataflow::reductions::window::{
    self, Argument, Definition, WindowFunction, is_sliding, window,
};
use alluvium_trace::memory::context;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};
use datafusion_functions_aggregate::average::avg_udaf;
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_functions_aggregate::sum::sum_udaf;
use datafusion_functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion_functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion_functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion_functions_window::row_number::row_number_udwf;

use crate::harness::{Random, Row, Rows, Run, assert_caught, compare_single, every_seed, numbers};

const COLUMNS: [&str; 3] = ["group", "value", "other"];

/// Descending with NULLs last, as the model orders them.
const DESCENDING: SortOptions = SortOptions { descending: true, nulls_first: false };

/// A function and its frame; offsets before a row are negative.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Without a start the frame begins with the partition.
    Over {
        name: &'static str,
        is_range: bool,
        start: Option<i64>,
        end: i64,
    },
    Shift {
        offset: i64,
        default: Option<i64>,
    },
    RowNumber,
    Rank,
    DenseRank,
}

const NAMES: [&str; 8] =
    ["sum", "count", "avg", "min", "max", "first_value", "last_value", "nth_value"];

impl Call {
    fn draw(random: &mut Random) -> Self {
        let name = NAMES[random.below(8) as usize];
        let start = random.below(7) as i64 - 4;
        let end = start + random.below(6) as i64 - 1;
        match random.below(13) {
            0 | 1 => Self::Shift {
                offset: random.below(7) as i64 - 3,
                default: random.once_in(2).then_some(-9),
            },
            2 => Self::RowNumber,
            3 => Self::Rank,
            4 => Self::DenseRank,
            5 | 6 => Self::Over { name, is_range: true, start: Some(start), end: end.max(start) },
            7 | 8 => Self::Over { name, is_range: false, start: Some(start), end },
            9 | 10 => Self::Over { name, is_range: false, start: None, end: end.min(3) },
            // The last row of such a range may be any number of rows before.
            11 if name != "last_value" => Self::Over { name, is_range: true, start: None, end },
            _ => Self::Over { name, is_range: true, start: None, end: end.max(0) },
        }
    }

    fn function(self) -> WindowFunction {
        let aggregate = WindowFunctionDefinition::AggregateUDF;
        let number = |offset: i64| Argument::Constant(ScalarValue::Int64(Some(offset)));
        let mut frame = WindowFrame::new(None);
        let mut result = DataType::Int64;
        let mut arguments = vec![Argument::Column(2)];
        let function = match self {
            Self::Over { name, is_range, start, end } => {
                let units = if is_range { WindowFrameUnits::Range } else { WindowFrameUnits::Rows };
                let bound = |offset| bound(is_range, offset);
                let first = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
                frame = WindowFrame::new_bounds(units, start.map_or(first, bound), bound(end));
                match name {
                    "sum" => aggregate(sum_udaf()),
                    "count" => aggregate(count_udaf()),
                    "avg" => {
                        result = DataType::Float64;
                        aggregate(avg_udaf())
                    }
                    "min" => aggregate(min_udaf()),
                    "max" => aggregate(max_udaf()),
                    "first_value" => WindowFunctionDefinition::WindowUDF(first_value_udwf()),
                    "last_value" => WindowFunctionDefinition::WindowUDF(last_value_udwf()),
                    _ => {
                        arguments.push(number(2));
                        WindowFunctionDefinition::WindowUDF(nth_value_udwf())
                    }
                }
            }
            Self::Shift { offset, default } => {
                let is_lag = offset < 0;
                arguments.push(number(offset.abs()));
                arguments.extend(default.map(number));
                WindowFunctionDefinition::WindowUDF(if is_lag { lag_udwf() } else { lead_udwf() })
            }
            Self::RowNumber | Self::Rank | Self::DenseRank => {
                arguments.clear();
                result = DataType::UInt64;
                WindowFunctionDefinition::WindowUDF(match self {
                    Self::Rank => rank_udwf(),
                    Self::DenseRank => dense_rank_udwf(),
                    _ => row_number_udwf(),
                })
            }
        };
        WindowFunction {
            function,
            arguments,
            frame: Arc::new(frame),
            filter: None,
            distinct: false,
            ignore_nulls: false,
            result: Arc::new(Field::new("result", result, true)),
        }
    }

    /// The result for the row `place` of a sorted partition.
    fn model(self, rows: &[Row], place: usize) -> Option<i64> {
        match self {
            Self::RowNumber => Some(place as i64 + 1),
            Self::Rank => {
                let first = rows.iter().position(|row| row[1] == rows[place][1]).unwrap();
                Some(first as i64 + 1)
            }
            Self::DenseRank => {
                let groups: BTreeSet<_> = rows[..=place].iter().map(|row| row[1]).collect();
                Some(groups.len() as i64)
            }
            Self::Shift { offset, default } => {
                let other = usize::try_from(place as i64 + offset).ok();
                other.and_then(|other| rows.get(other)).map_or(default, |row| row[2])
            }
            Self::Over { name, is_range, start, end } => {
                let mut frame = match is_range {
                    true => range(rows, place, start.unwrap_or(end), end),
                    false => {
                        let clamp = |at: i64| at.clamp(0, rows.len() as i64) as usize;
                        let start = start.unwrap_or(-1000);
                        clamp(place as i64 + start)..clamp(place as i64 + end + 1)
                    }
                };
                if start.is_none() {
                    frame.start = 0;
                }
                let rows = rows.get(frame).unwrap_or_default();
                let values: Vec<i64> = rows.iter().filter_map(|row| row[2]).collect();
                let sum = || values.iter().sum::<i64>();
                match name {
                    "first_value" => rows.first()?[2],
                    "last_value" => rows.last()?[2],
                    "nth_value" => rows.get(1)?[2],
                    "count" => Some(values.len() as i64),
                    _ if values.is_empty() => None,
                    "sum" => Some(sum()),
                    "avg" => Some((sum() as f64 / values.len() as f64) as i64),
                    "min" => values.into_iter().min(),
                    _ => values.into_iter().max(),
                }
            }
        }
    }
}

fn bound(is_range: bool, offset: i64) -> WindowFrameBound {
    let by = match is_range {
        true => ScalarValue::Int64(Some(offset.abs())),
        false => ScalarValue::UInt64(Some(offset.unsigned_abs())),
    };
    match offset {
        0 => WindowFrameBound::CurrentRow,
        ..0 => WindowFrameBound::Preceding(by),
        _ => WindowFrameBound::Following(by),
    }
}

/// The rows whose value is so far from that of the row `place`, in descending order.
fn range(rows: &[Row], place: usize, start: i64, end: i64) -> Range<usize> {
    let Some(value) = rows[place][1] else {
        return rows.iter().position(|row| row[1].is_none()).unwrap()..rows.len();
    };
    let is_before = |row: &Row, limit: i64| row[1].is_some_and(|other| -other < limit);
    let first = rows.iter().position(|row| !is_before(row, start - value)).unwrap_or(rows.len());
    let last = rows.iter().position(|row| !is_before(row, end - value + 1)).unwrap_or(rows.len());
    first..last
}

/// Partitions, sorted.
fn model(rows: &Rows, partitioned: bool, calls: &[Call]) -> Rows {
    let mut partitions: BTreeMap<Option<i64>, Vec<Row>> = BTreeMap::new();
    for (row, weight) in rows {
        let partition = partitions.entry(if partitioned { row[0] } else { None }).or_default();
        partition.extend((0..*weight).map(|_| row.clone()));
    }
    let last = |value: Option<i64>| (value.is_none(), value);
    let mut results = Rows::new();
    for mut partition in partitions.into_values() {
        partition.sort_by_key(|row| (last(row[1].map(|value| -value)), last(row[2]), last(row[0])));
        for (place, row) in partition.iter().enumerate() {
            let calls = calls.iter().map(|call| call.model(&partition, place));
            *results.entry(row.iter().copied().chain(calls).collect()).or_default() += 1;
        }
    }
    results
}

fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let run = Run::draw(seed, fault);
    let mut random = run.random(0x51_1d_e5);
    let mut history = run.grouped_history(&mut random, 2);
    if random.once_in(3) {
        // Rows with many copies.
        history.iter_mut().for_each(|(_, _, weight)| *weight *= 5);
    }
    let partitioned = random.once_in(2);
    let keys: &'static [usize] = if partitioned { &[0] } else { &[] };
    let calls: Vec<Call> = (0..1 + random.below(3)).map(|_| Call::draw(&mut random)).collect();
    let shown = format!("{calls:?}, partitioned {partitioned}");
    let functions: Vec<WindowFunction> = calls.iter().map(|call| call.function()).collect();
    compare_single(
        &run,
        &COLUMNS,
        &history,
        move |rows, schema| {
            let order = [(1, DESCENDING)];
            assert!(is_sliding(&functions, schema, &order));
            let fields = schema.fields().iter().cloned();
            let results = functions.iter().map(|function| function.result.clone());
            let output = Arc::new(Schema::new(fields.chain(results).collect::<Vec<_>>()));
            let spec = window::Spec::compile(&Definition {
                input: schema,
                keys,
                order: &order,
                ties: &[2, 0],
                functions: &functions,
                output: &output,
            });
            let window = window(&spec.unwrap(), rows, &context::current());
            window.rows
        },
        |rows| model(rows, partitioned, &calls),
    )
    .map_err(|difference| format!("{shown}, {difference}"))
}

#[test]
fn functions_over_the_rows_around_each_row_equal_the_model_at_every_epoch() {
    every_seed(400, check);
}

#[test]
fn faults_in_reading_the_rows_around_each_row_are_caught() {
    let faults = [
        Fault::FirstTileOnly,
        Fault::LastTimeOnly,
        Fault::KeepOldAnswer,
        Fault::ForgetHistory,
        Fault::ForgetOldResults,
        Fault::IgnoreCopies,
        Fault::ShortFrames,
        Fault::KeepTotals,
    ];
    assert_caught(80, &faults, check);
}

#[test]
fn whole_partitions_are_read_only_for_functions_that_see_them() {
    let schema = numbers(&COLUMNS);
    let order = [(1, DESCENDING)];
    let call = Call::Over { name: "sum", is_range: true, start: Some(-3), end: 0 };
    let slides = |change: &dyn Fn(&mut WindowFunction)| {
        let mut function = call.function();
        change(&mut function);
        is_sliding(&[function], &schema, &order)
    };
    let unbounded = ScalarValue::UInt64(None);
    let frame = |start: WindowFrameBound, end: WindowFrameBound| {
        Arc::new(WindowFrame::new_bounds(WindowFrameUnits::Rows, start, end))
    };
    let (here, first, last) = (
        WindowFrameBound::CurrentRow,
        WindowFrameBound::Preceding(unbounded.clone()),
        WindowFrameBound::Following(unbounded),
    );
    assert!(slides(&|_| {}));
    assert!(slides(&|function| function.filter = Some(0)));
    assert!(!slides(&|function| function.distinct = true));
    assert!(slides(&|function| function.frame = frame(first.clone(), here.clone())));
    assert!(!slides(&|function| function.frame = frame(first.clone(), last.clone())));
    assert!(!slides(&|function| function.frame = frame(here.clone(), last.clone())));
    assert!(!slides(&|function| function.ignore_nulls = true));
}

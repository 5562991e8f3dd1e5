//! Totals that come, go and are read.

use arrow::array::{
    Array, AsArray, Decimal128Array, Decimal256Array, DurationSecondArray, Float32Array,
    Float64Array, Int8Array, Int64Array, StringArray, UInt64Array,
};
use arrow::datatypes::{Decimal128Type, Int64Type, IntervalUnit, TimeUnit};
use proptest::prelude::*;

use super::*;

fn aggregate(function: Function, result: DataType) -> Aggregate {
    Aggregate { function, input: Some(0), rank: None, distinct: false, filter: None, result }
}

/// The result of one aggregate over all rows of `column`, or why there is none.
fn total(function: Function, column: ArrayRef, result: DataType) -> Result<ArrayRef, String> {
    let accumulators =
        Accumulators::new(&[aggregate(function, result)], &[column.data_type().clone()]).unwrap();
    let mut state = accumulators.fresh();
    let rows = column.len();
    let columns = [column];
    (0..rows).for_each(|row| accumulators.add(&mut state, &accumulators.inputs(&columns), row, 1));
    finish(&accumulators, &state).map(|mut columns| columns.remove(0))
}

fn finish(accumulators: &Accumulators, state: &State) -> Result<Vec<ArrayRef>, String> {
    let (columns, failures) = accumulators.finish([&bytes(accumulators, state)[..]]);
    match failures.into_iter().next() {
        None => Ok(columns),
        Some((row, number, message)) => {
            assert!(row == 0 && columns[number].is_null(0));
            Err(message)
        }
    }
}

fn bytes(accumulators: &Accumulators, state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    accumulators.encode(state, &mut bytes);
    bytes
}

fn decimal(values: Vec<i128>, precision: u8, scale: i8) -> ArrayRef {
    let column = Decimal128Array::from(values);
    Arc::new(column.with_precision_and_scale(precision, scale).unwrap())
}

#[test]
fn counts_sums_and_means_of_every_type_skip_nulls() {
    use Function::{Avg, Count, Sum};
    let integers: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), None, Some(100)]));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.5), None, Some(1.0)]));
    let durations: ArrayRef = Arc::new(DurationSecondArray::from(vec![Some(5), None, Some(-2)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a")]));
    let seconds = DataType::Duration(TimeUnit::Second);
    for (function, column, result, expected) in [
        (Count, &texts, DataType::Int64, Arc::new(Int64Array::from(vec![2])) as ArrayRef),
        (Sum, &integers, DataType::Int64, Arc::new(Int64Array::from(vec![200]))),
        (Avg, &integers, DataType::Float64, Arc::new(Float64Array::from(vec![100.0]))),
        (Sum, &floats, DataType::Float64, Arc::new(Float64Array::from(vec![1.5]))),
        (Avg, &floats, DataType::Float64, Arc::new(Float64Array::from(vec![0.75]))),
        (Sum, &durations, seconds.clone(), Arc::new(DurationSecondArray::from(vec![3]))),
        (Avg, &durations, seconds.clone(), Arc::new(DurationSecondArray::from(vec![1]))),
    ] {
        assert_eq!(&total(function, column.clone(), result).unwrap(), &expected);
    }
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None, None]));
    for function in [Sum, Avg] {
        let result = if function == Sum { DataType::Int64 } else { DataType::Float64 };
        assert!(total(function, none.clone(), result).unwrap().is_null(0));
    }
}

#[test]
fn an_integer_total_outside_its_type_fails_and_may_come_back() {
    let sum = aggregate(Function::Sum, DataType::Int64);
    let accumulators = Accumulators::new(&[sum], &[DataType::Int64]).unwrap();
    let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from(vec![i64::MAX, 1]))];
    let mut state = accumulators.fresh();
    accumulators.add(&mut state, &accumulators.inputs(&columns), 0, 1);
    accumulators.add(&mut state, &accumulators.inputs(&columns), 1, 1);
    let message = finish(&accumulators, &state).unwrap_err();
    assert_eq!(message, "the sum 9223372036854775808 is outside BIGINT");
    accumulators.add(&mut state, &accumulators.inputs(&columns), 1, -1);
    let results = finish(&accumulators, &state).unwrap();
    assert_eq!(results[0].as_primitive::<Int64Type>().value(0), i64::MAX);

    let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 1]));
    let message = total(Function::Sum, unsigned, DataType::UInt64).unwrap_err();
    assert_eq!(message, "the sum 18446744073709551616 is outside BIGINT UNSIGNED");
}

#[test]
fn decimal_totals_are_exact_until_they_leave_their_precision() {
    let nines = 10_i128.pow(38) - 1;
    let result = DataType::Decimal128(38, 2);
    let fits = decimal(vec![nines, nines, -nines], 38, 2);
    let sum = total(Function::Sum, fits, result.clone()).unwrap();
    assert_eq!(sum.as_primitive::<Decimal128Type>().value(0), nines);
    let message = total(Function::Sum, decimal(vec![nines, 1], 38, 2), result.clone()).unwrap_err();
    let hundred = format!("1{}.00", "0".repeat(36));
    assert_eq!(message, format!("the sum {hundred} is outside DECIMAL(38, 2)"));
    assert_eq!(sum.data_type(), &result);

    let nines = i256::from_i128(10).wrapping_pow(76).wrapping_sub(i256::ONE);
    let wide = Decimal256Array::from(vec![nines, nines, nines.wrapping_neg()]);
    let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(76, 0).unwrap());
    let result = DataType::Decimal256(76, 0);
    let sum = total(Function::Sum, wide.clone(), result.clone()).unwrap();
    assert_eq!(sum.as_primitive::<Decimal256Type>().value(0), nines);
    let message = total(Function::Sum, wide.slice(0, 2), result.clone()).unwrap_err();
    assert!(message.ends_with("is outside DECIMAL(76, 0)"), "{message}");

    // Beyond 256 bits on the way, and back.
    let accumulators =
        Accumulators::new(&[aggregate(Function::Sum, result.clone())], &[result]).unwrap();
    let mut state = accumulators.fresh();
    let columns = [wide];
    accumulators.add(&mut state, &accumulators.inputs(&columns), 2, i64::MAX / 2);
    assert_eq!(finish(&accumulators, &state).unwrap_err(), "the sum is outside DECIMAL(76, 0)");
    accumulators.add(&mut state, &accumulators.inputs(&columns), 0, i64::MAX / 2);
    accumulators.add(&mut state, &accumulators.inputs(&columns), 2, 1);
    let sum = finish(&accumulators, &state).unwrap().remove(0);
    assert_eq!(sum.as_primitive::<Decimal256Type>().value(0), nines.wrapping_neg());
}

#[test]
fn a_mean_of_decimals_has_four_more_digits_and_is_cut_off_there() {
    let result = DataType::Decimal128(14, 6);
    for (values, expected) in [(vec![100, 100, 0], 666_666), (vec![-200, 0, 0], -666_666)] {
        let mean = total(Function::Avg, decimal(values, 10, 2), result.clone()).unwrap();
        assert_eq!(mean.as_primitive::<Decimal128Type>().value(0), expected);
        assert_eq!(mean.data_type(), &result);
    }
}

#[test]
fn what_does_not_add_up_is_refused_by_name() {
    let interval = DataType::Interval(IntervalUnit::DayTime);
    for (aggregate, input) in [
        (aggregate(Function::Sum, interval.clone()), interval),
        (aggregate(Function::Sum, DataType::Int64), DataType::Utf8),
        (aggregate(Function::Sum, DataType::Decimal128(38, 1)), DataType::Decimal128(10, 2)),
        (aggregate(Function::Min, DataType::Utf8), DataType::Int64),
    ] {
        let error = Accumulators::new(&[aggregate], std::slice::from_ref(&input)).unwrap_err();
        assert!(error.to_string().contains(&input.to_string()), "{error}");
    }
}

#[test]
fn the_bytes_of_a_state_stay_what_they_are() {
    let count = Aggregate {
        function: Function::Count,
        input: None,
        rank: None,
        distinct: false,
        filter: None,
        result: DataType::Int64,
    };
    let sum = aggregate(Function::Sum, DataType::Int64);
    let mean = aggregate(Function::Avg, DataType::Float64);
    let accumulators =
        Accumulators::new(&[count, sum, mean], &[DataType::Int64, DataType::Float64]).unwrap();
    let columns: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(vec![Some(-128), None])),
        Arc::new(Float64Array::from(vec![Some(1.0), Some(2.0)])),
    ];
    let mut state = accumulators.fresh();
    assert_eq!(bytes(&accumulators, &state), [0, 0, 0, 0, 0, 0, 0, 0, 0]);
    accumulators.add(&mut state, &accumulators.inputs(&columns), 0, 1);
    accumulators.add(&mut state, &accumulators.inputs(&columns), 1, 127);
    let expected = [2, 128, 0, 1, 1, 1, 128, 2, 128, 0, 0, 134, 0, 2, 0, 0xfc, 3];
    assert_eq!(bytes(&accumulators, &state), expected);
}

#[test]
fn integers_take_the_fewest_bytes_and_come_back() {
    for (integer, length) in
        [(0, 0), (1, 1), (-1, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (i128::MIN, 16)]
    {
        let mut bytes = Vec::new();
        push_integer(&i128::to_le_bytes(integer), &mut bytes);
        assert_eq!(bytes.len(), 1 + length, "{integer}");
        let mut rest = &bytes[..];
        assert_eq!(take_integer(&mut rest).map(i128::from_le_bytes), Some(integer));
        assert!(rest.is_empty());
    }
}

fn every_aggregate() -> Accumulators {
    let wide = DataType::Decimal128(38, 2);
    let mean = DataType::Decimal128(38, 6);
    let aggregates = [
        Aggregate {
            function: Function::Count,
            input: None,
            rank: None,
            distinct: false,
            filter: None,
            result: DataType::Int64,
        },
        aggregate(Function::Sum, DataType::Int64),
        aggregate(Function::Avg, DataType::Float64),
        aggregate(Function::Sum, wide),
        aggregate(Function::Avg, mean),
        aggregate(Function::Count, DataType::Int64),
    ];
    let decimal = DataType::Decimal128(30, 2);
    let inputs = [DataType::Int64, DataType::Float64, decimal.clone(), decimal, DataType::Float64];
    Accumulators::new(&aggregates, &inputs).unwrap()
}

type Row = (Option<i64>, Option<f64>, Option<i128>, i64);

fn columns(rows: &[Row]) -> [ArrayRef; 5] {
    let floats: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.1)));
    let decimals = Decimal128Array::from_iter(rows.iter().map(|row| row.2));
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(30, 2).unwrap());
    [
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))),
        floats.clone(),
        decimals.clone(),
        decimals,
        floats,
    ]
}

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    let floats = prop_oneof![any::<f64>(), Just(f64::NAN), (-9..9_i8).prop_map(f64::from)];
    let row = (
        proptest::option::of(any::<i64>()),
        proptest::option::of(floats),
        proptest::option::of(-(10_i128.pow(30))..10_i128.pow(30)),
        -3..4_i64,
    );
    prop::collection::vec(row, 0..20)
}

proptest! {
    #[test]
    fn equal_rows_leave_equal_bytes_however_they_came(kept in some_rows(), passing in some_rows()) {
        let accumulators = every_aggregate();
        let (kept_columns, passing_columns) = (columns(&kept), columns(&passing));
        let mut plain = accumulators.fresh();
        for (row, (.., weight)) in kept.iter().enumerate() {
            accumulators.add(&mut plain, &accumulators.inputs(&kept_columns), row, *weight);
        }
        let mut other = accumulators.fresh();
        for (row, (.., weight)) in passing.iter().enumerate() {
            accumulators.add(&mut other, &accumulators.inputs(&passing_columns), row, *weight);
        }
        for (row, (.., weight)) in kept.iter().enumerate().rev() {
            accumulators.add(&mut other, &accumulators.inputs(&kept_columns), row, *weight);
            let encoded = bytes(&accumulators, &other);
            accumulators.decode(&encoded, &mut other);
        }
        for (row, (.., weight)) in passing.iter().enumerate() {
            accumulators.add(&mut other, &accumulators.inputs(&passing_columns), row, -*weight);
        }
        prop_assert_eq!(&plain, &other);
        prop_assert_eq!(bytes(&accumulators, &plain), bytes(&accumulators, &other));
    }

    #[test]
    fn results_are_those_of_adding_up_one_by_one(rows in some_rows()) {
        let accumulators = every_aggregate();
        let columns = columns(&rows);
        let mut state = accumulators.fresh();
        for row in 0..rows.len() {
            accumulators.add(&mut state, &accumulators.inputs(&columns), row, 1);
        }
        let encoded = bytes(&accumulators, &state);
        let (results, failures) = accumulators.finish([&encoded[..]]);
        prop_assert_eq!(results[0].as_primitive::<Int64Type>().value(0), rows.len() as i64);
        let integers: Vec<i128> = rows.iter().filter_map(|row| row.0).map(i128::from).collect();
        let sum = integers.iter().sum::<i128>();
        let failed = failures.iter().any(|failure| failure.1 == 1);
        prop_assert_eq!(failed, i64::try_from(sum).is_err());
        prop_assert_eq!(results[1].is_null(0), failed || integers.is_empty());
        if results[1].is_valid(0) {
            prop_assert_eq!(i128::from(results[1].as_primitive::<Int64Type>().value(0)), sum);
        }
        let decimals: Vec<i128> = rows.iter().filter_map(|row| row.2).collect();
        if let Some(count) = i128::try_from(decimals.len()).ok().filter(|&count| count > 0) {
            let sum = decimals.iter().sum::<i128>();
            prop_assert_eq!(results[3].as_primitive::<Decimal128Type>().value(0), sum);
            let mean = results[4].as_primitive::<Decimal128Type>().value(0);
            prop_assert_eq!(mean, sum * 10_000 / count);
        }
    }
}

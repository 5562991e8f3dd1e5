//! Accumulators: the state of COUNT, SUM and AVG for a group, and of MIN and MAX for an append-only group.
//!
//! Totals are exact, and additions can be undone in any order: the same rows leave the same bytes, whatever their history.
//! Whether a total fits the type of the result is checked when the result is computed.
//!
//! A state is the number of rows, then per aggregate the number of inputs that are not NULL (not for `COUNT(*)`) and, for
//! SUM and AVG, their sum, or for MIN and MAX the length of the input's key bytes and these bytes, none without an input.
//! An integer is a byte with the number of bytes that follow, then the fewest bytes of its two's complement that represent
//! it, least byte first. Sums of floats are described at [`FloatSum::encode_into`].

mod inputs;
mod integer;
mod number;
mod results;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, DecimalType, i256};

pub use self::inputs::Inputs;
use self::inputs::{Input, Values};
use self::integer::{push_integer, take_integer};
use self::number::{Number, duration};
use self::results::Results;
use super::decimal_sum::DecimalSum;
use super::float_sum::FloatSum;
use super::{Aggregate, Function};
use crate::rows::codec::CodecError;

/// The accumulated aggregates of a GROUP BY: encodes, changes and reads their states.
#[derive(Clone, Debug)]
pub struct Accumulators {
    kinds: Arc<[Kind]>,
}

/// The kind of one aggregate: its input, its state, and its result.
#[derive(Clone, Debug)]
struct Kind {
    function: Function,
    /// The number of the input column, and how it is read; `None` for `COUNT(*)`.
    input: Option<(usize, Number)>,
    result: DataType,
}

/// The totals of one group, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    rows: i64,
    totals: Vec<Total>,
}

/// The total of one aggregate.
#[derive(Clone, Debug, PartialEq)]
struct Total {
    /// The number of inputs that are not NULL.
    count: i64,
    sum: Sum,
}

#[derive(Clone, Debug, PartialEq)]
enum Sum {
    None,
    Integer(i128),
    Float(Box<FloatSum>),
    Decimal(DecimalSum),
    /// The key bytes of the smallest or largest input.
    Extreme(Vec<u8>),
}

impl State {
    /// The number of rows in the group; a group without rows does not exist.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Resets it to the state of a group without rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        for total in &mut self.totals {
            total.count = 0;
            match &mut total.sum {
                Sum::None => {}
                Sum::Integer(sum) => *sum = 0,
                Sum::Float(sum) => **sum = FloatSum::default(),
                Sum::Decimal(sum) => *sum = DecimalSum::default(),
                Sum::Extreme(bytes) => bytes.clear(),
            }
        }
    }
}

impl Accumulators {
    /// The accumulators of `aggregates`, of which MIN and MAX are for append-only groups. `inputs` are the types of the input
    /// columns of those that have one, in order.
    ///
    /// Fails with [`CodecError::Aggregate`] for inputs that cannot be accumulated, such as intervals.
    pub fn new(aggregates: &[Aggregate], inputs: &[DataType]) -> Result<Self, CodecError> {
        let mut inputs = inputs.iter().enumerate();
        let kinds = aggregates
            .iter()
            .map(|aggregate| {
                let input = aggregate.input.and_then(|_| inputs.next());
                let kind = Kind::new(aggregate, input);
                kind.ok_or_else(|| CodecError::Aggregate {
                    function: format!("{:?}", aggregate.function),
                    input: input.map_or(DataType::Null, |(_, data_type)| data_type.clone()),
                    result: aggregate.result.clone(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { kinds })
    }

    /// Whether rows can be added with negative weights.
    pub fn can_subtract(&self) -> bool {
        !self.kinds.iter().any(|kind| matches!(kind.input, Some((_, Number::Ordered(_)))))
    }

    /// The state of a group without rows.
    pub fn fresh(&self) -> State {
        State { rows: 0, totals: self.kinds.iter().map(Kind::fresh).collect() }
    }

    /// Decodes `bytes` into `state`, which is a state of these accumulators.
    ///
    /// Panics unless the bytes were encoded by accumulators of the same aggregates.
    pub fn decode(&self, bytes: &[u8], state: &mut State) {
        let mut rest = bytes;
        self.decode_from(&mut rest, state)
            .filter(|()| rest.is_empty())
            .expect("a state was encoded by accumulators of the same aggregates");
    }

    fn decode_from(&self, bytes: &mut &[u8], state: &mut State) -> Option<()> {
        state.rows = i64::from_le_bytes(take_integer(bytes)?);
        for (kind, total) in self.kinds.iter().zip(&mut state.totals) {
            if kind.input.is_none() {
                continue;
            }
            total.count = i64::from_le_bytes(take_integer(bytes)?);
            match &mut total.sum {
                Sum::None => {}
                Sum::Integer(sum) => *sum = i128::from_le_bytes(take_integer(bytes)?),
                Sum::Float(sum) => sum.decode_from(bytes)?,
                Sum::Decimal(sum) => *sum = DecimalSum::from_le_bytes(take_integer(bytes)?),
                Sum::Extreme(extreme) => {
                    let length = u32::from_le_bytes(take_integer(bytes)?) as usize;
                    extreme.clear();
                    extreme.extend_from_slice(bytes.split_off(..length)?);
                }
            }
        }
        Some(())
    }

    /// Appends `state` to `out`; equal states are equal bytes.
    pub fn encode(&self, state: &State, out: &mut Vec<u8>) {
        self.encode_with(state, |_, count| count, out);
    }

    /// Appends a state of the same results to `out`. States that differ only in what no result shows are equal bytes, as those of a MIN
    /// over more rows.
    pub fn encode_shown(&self, state: &State, out: &mut Vec<u8>) {
        let counts_rows = self.kinds.iter().any(|kind| kind.input.is_none());
        let shown = |kind: Option<&Kind>, count: i64| match kind.map(|kind| kind.function) {
            Some(Function::Count | Function::Avg) => count,
            None if counts_rows => count,
            _ => count.min(1),
        };
        self.encode_with(state, shown, out);
    }

    /// Appends `state` with other numbers of rows, and of inputs of each aggregate that has one.
    fn encode_with(
        &self,
        state: &State,
        count: impl Fn(Option<&Kind>, i64) -> i64,
        out: &mut Vec<u8>,
    ) {
        push_integer(&count(None, state.rows).to_le_bytes(), out);
        for (kind, total) in self.kinds.iter().zip(&state.totals) {
            if kind.input.is_none() {
                continue;
            }
            push_integer(&count(Some(kind), total.count).to_le_bytes(), out);
            match &total.sum {
                Sum::None => {}
                Sum::Integer(sum) => push_integer(&sum.to_le_bytes(), out),
                Sum::Float(sum) => sum.encode_into(out),
                Sum::Decimal(sum) => push_integer(&sum.to_le_bytes(), out),
                Sum::Extreme(extreme) => {
                    let length =
                        u32::try_from(extreme.len()).ok().filter(|&it| it <= i32::MAX as u32);
                    let length = length.expect("a value is shorter than 2 GiB");
                    push_integer(&length.to_le_bytes(), out);
                    out.extend_from_slice(extreme);
                }
            }
        }
    }

    /// Prepares the input columns of the aggregates that have one, in order.
    pub fn inputs(&self, columns: &[ArrayRef]) -> Inputs {
        let inputs = self.kinds.iter().filter_map(|kind| kind.input.as_ref());
        Inputs(inputs.map(|(column, number)| Input::new(number, &columns[*column])).collect())
    }

    /// Adds row `row` of `inputs` with a weight. A negative weight subtracts it, which MIN and MAX do not support. Panics if a
    /// group has 2^63 rows.
    pub fn add(&self, state: &mut State, inputs: &Inputs, row: usize, weight: i64) {
        const FEW: &str = "a group has fewer than 2^63 rows";
        state.rows = state.rows.checked_add(weight).expect(FEW);
        let mut inputs = inputs.0.iter();
        for (kind, total) in self.kinds.iter().zip(&mut state.totals) {
            if kind.input.is_none() {
                continue;
            }
            let input = inputs.next().expect("an input for each aggregate that has one");
            if input.is_null(row) {
                continue;
            }
            total.count = total.count.checked_add(weight).expect(FEW);
            match (&mut total.sum, &input.values) {
                (Sum::Integer(sum), Values::Signed(values)) => {
                    let product = i128::from(values[row]) * i128::from(weight);
                    *sum = sum.checked_add(product).expect(FEW);
                }
                (Sum::Integer(sum), Values::Unsigned(values)) => {
                    let product = i128::from(values[row]) * i128::from(weight);
                    *sum = sum.checked_add(product).expect(FEW);
                }
                (Sum::Float(sum), Values::Float(values)) => sum.add(values[row], weight),
                (Sum::Decimal(sum), Values::Decimal128(values)) => sum.add_128(values[row], weight),
                (Sum::Decimal(sum), Values::Decimal256(values)) => sum.add_256(values[row], weight),
                (Sum::Extreme(extreme), Values::Ordered(values)) => {
                    debug_assert!(weight > 0, "extremes are accumulated of append-only groups");
                    let value = values.get(row);
                    let better = match kind.function {
                        Function::Max => value > &extreme[..],
                        _ => extreme.is_empty() || value < &extreme[..],
                    };
                    if better {
                        extreme.clear();
                        extreme.extend_from_slice(value);
                    }
                }
                _ => {}
            }
        }
    }

    /// The results of `states`: a column per aggregate, and the failures.
    ///
    /// A failure is the number of the state, the number of the aggregate, and a message; its result is NULL. Panics as
    /// [`Accumulators::decode`] does.
    pub fn finish<'a>(
        &self,
        states: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<ArrayRef>, Vec<(usize, usize, String)>) {
        let mut collected = self.collect();
        let mut failures = Vec::new();
        let mut state = self.fresh();
        for (row, bytes) in states.into_iter().enumerate() {
            self.decode(bytes, &mut state);
            collected.push(&state, |number, message| failures.push((row, number, message)));
        }
        (collected.finish(), failures)
    }

    /// Collects the results of states.
    pub fn collect(&self) -> Collected<'_> {
        Collected { kinds: &self.kinds, columns: self.kinds.iter().map(Kind::results).collect() }
    }
}

/// The results of states: a column per aggregate.
pub struct Collected<'a> {
    kinds: &'a [Kind],
    columns: Vec<Results>,
}

impl Collected<'_> {
    /// Adds the results of a state. Calls `failed` with the number of each aggregate that fails, whose result is NULL, and a
    /// message.
    pub fn push(&mut self, state: &State, mut failed: impl FnMut(usize, String)) {
        for (number, (kind, column)) in self.kinds.iter().zip(&mut self.columns).enumerate() {
            if let Err(message) = kind.finish(state, number, column) {
                failed(number, message);
                column.push_null();
            }
        }
    }

    /// The columns.
    pub fn finish(self) -> Vec<ArrayRef> {
        let columns = self.kinds.iter().zip(self.columns);
        columns.map(|(kind, column)| column.into_array(&kind.result)).collect()
    }
}

impl Kind {
    /// `None` if the aggregate does not have this result type for this input.
    fn new(aggregate: &Aggregate, input: Option<(usize, &DataType)>) -> Option<Self> {
        let Aggregate { function, result, .. } = aggregate;
        let of = input.map_or(DataType::Null, |(_, data_type)| data_type.clone());
        let input = match (function, input) {
            (Function::Count, None) => None,
            (Function::Count, Some((column, _))) => Some((column, Number::Any)),
            (Function::Sum | Function::Avg, Some((column, data_type))) => {
                Some((column, Number::summed(data_type)?))
            }
            (Function::Min | Function::Max, Some((column, data_type))) => {
                Some((column, Number::ordered(data_type).ok()?))
            }
            _ => return None,
        };
        let fits = match (function, input.as_ref().map(|(_, number)| number)) {
            (Function::Count, _) => *result == DataType::Int64,
            (Function::Min | Function::Max, _) => *result == of,
            (_, Some(Number::Signed)) if duration(&of).is_some() => *result == of,
            (_, Some(Number::Float)) => *result == DataType::Float64,
            (Function::Sum, Some(Number::Decimal128(from))) => {
                matches!(result, DataType::Decimal128(_, to) if to == from)
            }
            (Function::Sum, Some(Number::Decimal256(from))) => {
                matches!(result, DataType::Decimal256(_, to) if to == from)
            }
            (_, Some(Number::Decimal128(from))) => {
                matches!(result, DataType::Decimal128(_, to) if to >= from)
            }
            (_, Some(Number::Decimal256(from))) => {
                matches!(result, DataType::Decimal256(_, to) if to >= from)
            }
            (Function::Sum, _) => matches!(result, DataType::Int64 | DataType::UInt64),
            (_, _) => *result == DataType::Float64,
        };
        fits.then(|| Self { function: *function, input, result: result.clone() })
    }

    fn fresh(&self) -> Total {
        let sum = match &self.input {
            None | Some((_, Number::Any)) => Sum::None,
            Some((_, Number::Signed | Number::Unsigned)) => Sum::Integer(0),
            Some((_, Number::Float)) => Sum::Float(Box::default()),
            Some((_, Number::Decimal128(_) | Number::Decimal256(_))) => {
                Sum::Decimal(DecimalSum::default())
            }
            Some((_, Number::Ordered(_))) => Sum::Extreme(Vec::new()),
        };
        Total { count: 0, sum }
    }

    fn results(&self) -> Results {
        match (&self.input, &self.result) {
            (Some((_, Number::Ordered(codec))), _) => Results::ordered(codec.clone()),
            (_, DataType::Float64) => Results::Floats(Vec::new()),
            (_, DataType::Decimal128(..) | DataType::Decimal256(..)) => {
                Results::Decimals(Vec::new())
            }
            _ => Results::Integers(Vec::new()),
        }
    }

    /// Appends the result of aggregate `number` to `column`, or returns why there is none.
    fn finish(&self, state: &State, number: usize, column: &mut Results) -> Result<(), String> {
        let total = &state.totals[number];
        let is_mean = self.function == Function::Avg;
        match (column, &total.sum) {
            (Results::Integers(column), Sum::None) => {
                column
                    .push(Some(if self.input.is_none() { state.rows } else { total.count }.into()));
            }
            (column, _) if total.count == 0 => column.push_null(),
            (Results::Integers(column), Sum::Integer(sum)) => {
                let result = if is_mean { sum / i128::from(total.count) } else { *sum };
                let fits = match self.result {
                    DataType::UInt64 => u64::try_from(result).is_ok(),
                    _ => i64::try_from(result).is_ok(),
                };
                if !fits {
                    return Err(format!("the sum {result} is outside {}", name(&self.result)));
                }
                column.push(Some(result));
            }
            (Results::Floats(column), Sum::Integer(sum)) => {
                column.push(Some(*sum as f64 / total.count as f64));
            }
            (Results::Floats(column), Sum::Float(sum)) => {
                column.push(Some(if is_mean { sum.mean(total.count) } else { sum.value() }));
            }
            (Results::Decimals(column), Sum::Decimal(sum)) => {
                column.push(Some(self.decimal(sum, total.count)?));
            }
            (Results::Ordered { keys, .. }, Sum::Extreme(extreme)) => keys.push(extreme),
            _ => unreachable!("new() has paired sums and results"),
        }
        Ok(())
    }

    /// The sum, or the mean truncated to the scale of the result.
    fn decimal(&self, sum: &DecimalSum, count: i64) -> Result<i256, String> {
        let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) =
            self.result
        else {
            unreachable!("decimals have decimal results");
        };
        let from = match &self.input {
            Some((_, Number::Decimal128(from) | Number::Decimal256(from))) => *from,
            _ => scale,
        };
        let what = if self.function == Function::Avg { "mean" } else { "sum" };
        let outside = || format!("the {what} is outside {}", name(&self.result));
        let mut result = sum.total().ok_or_else(outside)?;
        if self.function == Function::Avg {
            result = i256::from_i128(10)
                .checked_pow((scale - from) as u32)
                .and_then(|factor| result.checked_mul(factor))
                .and_then(|scaled| scaled.checked_div(i256::from_i128(count.into())))
                .ok_or_else(outside)?;
        }
        if Decimal256Type::is_valid_decimal_precision(result, precision) {
            Ok(result)
        } else {
            let digits = Decimal256Type::format_decimal(result, DECIMAL256_MAX_PRECISION, scale);
            Err(format!("the {what} {digits} is outside {}", name(&self.result)))
        }
    }
}

/// The name of a type in SQL.
fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;

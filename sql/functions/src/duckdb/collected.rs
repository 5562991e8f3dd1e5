//! Aggregates of all values of a group, which are collected and sorted.
//!
//! NULLs do not count. Of values that are equally frequent, `mode` is the least one, so that it depends on the rows alone.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, MapArray, RecordBatch, StructArray, UInt64Array,
    new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, concat, is_not_null, partition, sort};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use datafusion_common::utils::SingleRowListArrayBuilder;
use datafusion_common::{Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Signature, Volatility,
};

/// Computes a result of sorted values without NULL.
type Evaluate = fn(&ArrayRef, Place) -> Result<ScalarValue>;

/// Which of the values is the result.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The share of the values up to it; zero of functions that have no such argument.
    fraction: f64,
    /// Whether they are counted from the last one on.
    descending: bool,
}

pub(super) fn functions() -> [Arc<AggregateUDF>; 10] {
    let same = |kind: &DataType| kind.clone();
    let double = |_: &DataType| DataType::Float64;
    let quantiles = ["percentile_disc", "quantile_disc", "quantile"];
    [
        Collected::function(&["mode"], false, same, mode),
        Collected::function(&quantiles, true, same, quantile),
        Collected::function(&["histogram"], false, map_of_counts, histogram),
        Collected::function(&["product"], false, double, |of, _| numbers(of, product)),
        Collected::function(&["entropy"], false, double, |of, _| Ok(entropy(of)?.into())),
        Collected::function(&["skewness"], false, double, |of, _| numbers(of, skewness)),
        Collected::function(&["kurtosis"], false, double, |of, _| numbers(of, kurtosis)),
        Collected::function(&["kurtosis_pop"], false, double, |of, _| {
            numbers(of, kurtosis_of_population)
        }),
        Collected::function(&["sem"], false, double, |of, _| numbers(of, error_of_mean)),
        Collected::function(&["mad"], false, double, |of, _| numbers(of, deviation)),
    ]
}

#[derive(Debug)]
struct Collected {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether its second argument is a fraction, of which the first place is in the order of WITHIN GROUP.
    is_quantile: bool,
    returns: fn(&DataType) -> DataType,
    evaluate: Evaluate,
    signature: Signature,
}

impl PartialEq for Collected {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Collected {}

impl Hash for Collected {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Collected {
    fn function(
        names: &[&'static str],
        is_quantile: bool,
        returns: fn(&DataType) -> DataType,
        evaluate: Evaluate,
    ) -> Arc<AggregateUDF> {
        let (name, aliases) =
            names.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        Arc::new(AggregateUDF::from(Collected {
            name,
            aliases: aliases.iter().map(ToString::to_string).collect(),
            is_quantile,
            returns,
            evaluate,
            signature: Signature::user_defined(Volatility::Immutable),
        }))
    }

    /// The place of a quantile, whose fraction is from 0 to 1.
    fn place(&self, arguments: &AccumulatorArgs<'_>) -> Result<Place> {
        if !self.is_quantile {
            return Ok(Place { fraction: 0.0, descending: false });
        }
        let nothing = RecordBatch::new_empty(Arc::new(arguments.schema.clone()));
        let value = match arguments.exprs.get(1) {
            Some(expression) => expression.evaluate(&nothing)?,
            None => return plan_err!("{} takes a fraction", self.name),
        };
        let fraction = match value {
            ColumnarValue::Scalar(value) => value.cast_to(&DataType::Float64)?,
            ColumnarValue::Array(_) => ScalarValue::Null,
        };
        let descending = arguments.order_bys.first().is_some_and(|order| order.options.descending);
        match fraction {
            ScalarValue::Float64(Some(fraction)) if (0.0..=1.0).contains(&fraction) => {
                Ok(Place { fraction, descending })
            }
            _ => plan_err!("the fraction of {} is a constant from 0 to 1", self.name),
        }
    }
}

impl AggregateUDFImpl for Collected {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match (arguments, self.is_quantile) {
            ([value, fraction], true) if fraction.is_numeric() => {
                Ok(vec![value.clone(), DataType::Float64])
            }
            ([value], false) => Ok(vec![value.clone()]),
            (_, true) => plan_err!("{} takes a value and a fraction", self.name),
            (_, false) => plan_err!("{} takes one argument", self.name),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok((self.returns)(&arguments[0]))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(arguments.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new_list(format!("{}[values]", arguments.name), values, true))])
    }

    fn supports_within_group_clause(&self) -> bool {
        self.is_quantile
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(value) = arguments.expr_fields.first() else {
            return plan_err!("{} takes an argument", self.name);
        };
        Ok(Box::new(Values {
            place: self.place(&arguments)?,
            evaluate: self.evaluate,
            is_distinct: arguments.is_distinct,
            kind: value.data_type().clone(),
            result: arguments.return_type().clone(),
            columns: Vec::new(),
        }))
    }
}

/// The values of a group.
#[derive(Debug)]
struct Values {
    place: Place,
    evaluate: Evaluate,
    is_distinct: bool,
    kind: DataType,
    result: DataType,
    columns: Vec<ArrayRef>,
}

impl Values {
    fn all(&self) -> Result<ArrayRef> {
        let columns: Vec<&dyn Array> = self.columns.iter().map(|column| column.as_ref()).collect();
        match columns.is_empty() {
            true => Ok(new_empty_array(&self.kind)),
            false => Ok(concat(&columns)?),
        }
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = &columns[0];
        let values = match values.null_count() > 0 || values.data_type().is_null() {
            true => arrow::compute::filter(values, &is_not_null(values)?)?,
            false => Arc::clone(values),
        };
        if !values.is_empty() {
            self.columns.push(values);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let ascending = SortOptions { descending: false, nulls_first: false };
        let mut values = match self.columns.is_empty() {
            true => return ScalarValue::try_from(&self.result),
            false => sort(&self.all()?, Some(ascending))?,
        };
        if self.is_distinct {
            let firsts: UInt64Array = runs(&values)?.map(|(first, _)| Some(first as u64)).collect();
            values = arrow::compute::take(&values, &firsts, None)?;
        }
        (self.evaluate)(&values, self.place)
    }

    fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_array_memory_size()).sum();
        size_of_val(self) + columns
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.all()?).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[state])?;
        }
        Ok(())
    }
}

/// The first place and the length of each run of equal values, which are sorted.
fn runs(values: &ArrayRef) -> Result<impl Iterator<Item = (usize, usize)>> {
    let runs = partition(std::slice::from_ref(values))?.ranges();
    Ok(runs.into_iter().map(|run| (run.start, run.len())))
}

fn mode(values: &ArrayRef, _: Place) -> Result<ScalarValue> {
    let longest = runs(values)?.reduce(|best, run| if run.1 > best.1 { run } else { best });
    ScalarValue::try_from_array(values, longest.map_or(0, |(first, _)| first))
}

fn quantile(values: &ArrayRef, Place { fraction, descending }: Place) -> Result<ScalarValue> {
    let count = values.len() as f64;
    let place = (count - (count - fraction * count).floor()).max(1.0) as usize - 1;
    let (place, last) = (place.min(values.len() - 1), values.len() - 1);
    ScalarValue::try_from_array(values, if descending { last - place } else { place })
}

fn map_of_counts(kind: &DataType) -> DataType {
    DataType::Map(Arc::new(Field::new_struct("entries", entry(kind), false)), false)
}

fn entry(kind: &DataType) -> Fields {
    let key = Field::new("key", kind.clone(), false);
    Fields::from(vec![key, Field::new("value", DataType::UInt64, true)])
}

fn histogram(values: &ArrayRef, _: Place) -> Result<ScalarValue> {
    let (firsts, counts): (Vec<u64>, Vec<u64>) =
        runs(values)?.map(|(first, length)| (first as u64, length as u64)).unzip();
    let keys = arrow::compute::take(values, &UInt64Array::from(firsts), None)?;
    let lengths = OffsetBuffer::from_lengths([keys.len()]);
    let columns: Vec<ArrayRef> = vec![keys, Arc::new(UInt64Array::from(counts))];
    let fields = entry(values.data_type());
    let field = Arc::new(Field::new_struct("entries", fields.clone(), false));
    let entries = StructArray::try_new(fields, columns, None)?;
    Ok(ScalarValue::Map(Arc::new(MapArray::try_new(field, lengths, entries, None, false)?)))
}

/// A number of some numbers, as DOUBLE.
fn numbers(values: &ArrayRef, of: fn(&[f64]) -> Option<f64>) -> Result<ScalarValue> {
    if !values.data_type().is_numeric() {
        return exec_err!("numbers are expected, not {}", values.data_type());
    }
    let doubles = cast(values, &DataType::Float64)?;
    let doubles: &Float64Array = doubles.as_primitive::<Float64Type>();
    Ok(ScalarValue::Float64(of(doubles.values())))
}

fn product(values: &[f64]) -> Option<f64> {
    Some(values.iter().product())
}

fn entropy(values: &ArrayRef) -> Result<f64> {
    let all = values.len() as f64;
    Ok(runs(values)?
        .map(|(_, length)| {
            let share = length as f64 / all;
            -share * share.log2()
        })
        .sum::<f64>()
        .abs())
}

/// The mean, and the sum of a power of the distances from it.
fn moments<const POWERS: usize>(values: &[f64], powers: [i32; POWERS]) -> [f64; POWERS] {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    powers.map(|power| values.iter().map(|value| (value - mean).powi(power)).sum())
}

/// The skewness of a sample; NULL for fewer than three values, and for equal ones.
fn skewness(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let [second, third] = moments(values, [2, 3]);
    let deviation = (second / count).powf(1.5);
    if count <= 2.0 || deviation == 0.0 {
        return None;
    }
    Some((count * (count - 1.0)).sqrt() / (count - 2.0) * third / count / deviation)
}

/// The excess kurtosis of a sample; NULL for fewer than four values, and for equal ones.
fn kurtosis(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let [second, fourth] = moments(values, [2, 4]);
    let variance = second / count;
    if count <= 3.0 || variance == 0.0 {
        return None;
    }
    let population = fourth / count / (variance * variance) - 3.0;
    Some((count - 1.0) / ((count - 2.0) * (count - 3.0)) * ((count + 1.0) * population + 6.0))
}

/// The excess kurtosis; NULL for fewer than two values, and for equal ones.
fn kurtosis_of_population(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let [second, fourth] = moments(values, [2, 4]);
    let variance = second / count;
    (count > 1.0 && variance != 0.0).then(|| fourth / count / (variance * variance) - 3.0)
}

/// The standard error of the mean.
fn error_of_mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let [second] = moments(values, [2]);
    Some((second / count).sqrt() / count.sqrt())
}

fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted.get(half).copied(),
        _ => Some((sorted.get(half.checked_sub(1)?)? + sorted.get(half)?) / 2.0),
    }
}

/// The median distance from the median.
fn deviation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    median(&distances)
}

//! The functions that are computed by totals.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::types::{NativeType, logical_float64, logical_int64, logical_uint64};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Documentation, GroupsAccumulator,
    ReversedUDAF, Signature, TypeSignature, TypeSignatureClass, Volatility,
};
use datafusion_functions_aggregate::average::avg_udaf;
use datafusion_functions_aggregate::{correlation, covariance, regr, stddev, variance};

use super::distinct::{Distinct, STATE};
use super::integer::IntegerTotal;
use super::kept::Kept;
use super::moments::{Moments, statistic};
use super::of_pair::OfPair;
use super::{Finish, FloatTotal, Groups, One, Total};
use crate::sum;

/// SUM, AVG and the statistics.
pub fn functions() -> impl Iterator<Item = Arc<AggregateUDF>> {
    let of = |(others, signature)| Arc::new(AggregateUDF::from(OfNumbers { others, signature }));
    let statistics = [
        variance::var_samp_udaf(),
        variance::var_pop_udaf(),
        stddev::stddev_udaf(),
        stddev::stddev_pop_udaf(),
        covariance::covar_samp_udaf(),
        covariance::covar_pop_udaf(),
        correlation::corr_udaf(),
        regr::regr_slope_udaf(),
        regr::regr_intercept_udaf(),
        regr::regr_count_udaf(),
        regr::regr_r2_udaf(),
        regr::regr_avgx_udaf(),
        regr::regr_avgy_udaf(),
        regr::regr_sxx_udaf(),
        regr::regr_syy_udaf(),
        regr::regr_sxy_udaf(),
        sum::function(),
    ];
    let statistics = statistics.into_iter().map(|others| {
        let signature = others.signature().clone();
        (others, signature)
    });
    statistics.chain([(avg_udaf(), of_mean())]).map(of)
}

/// The arguments of AVG: integers of 64 bits as they are, which a cast to DOUBLE would round.
fn of_mean() -> Signature {
    let exact = |kind| TypeSignature::Coercible(vec![Coercion::new_exact(kind)]);
    let double = Coercion::new_implicit(
        TypeSignatureClass::Native(logical_float64()),
        vec![TypeSignatureClass::Integer, TypeSignatureClass::Float],
        NativeType::Float64,
    );
    Signature::one_of(
        vec![
            exact(TypeSignatureClass::Decimal),
            exact(TypeSignatureClass::Duration),
            exact(TypeSignatureClass::Native(logical_int64())),
            exact(TypeSignatureClass::Native(logical_uint64())),
            TypeSignature::Coercible(vec![double]),
        ],
        Volatility::Immutable,
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfNumbers {
    /// DataFusion's, for other types.
    others: Arc<AggregateUDF>,
    signature: Signature,
}

/// How a call is computed.
enum Way {
    Float(Finish<FloatTotal>),
    Integer(Finish<IntegerTotal>),
    /// The mean of the first of two columns, and of the second.
    First(Finish<OfPair<0>>),
    Second(Finish<OfPair<1>>),
    Statistic(Finish<Moments>),
}

impl OfNumbers {
    /// `None` if DataFusion computes it.
    fn way(&self, input: &DataType, result: &DataType) -> Option<Way> {
        let result = result.clone();
        Some(match (self.name(), input) {
            ("sum", DataType::Float64) => Way::Float(Finish { number: FloatTotal::sum, result }),
            ("avg", DataType::Float64) => Way::Float(Finish { number: FloatTotal::mean, result }),
            ("avg", DataType::Int64 | DataType::UInt64) => {
                Way::Integer(Finish { number: IntegerTotal::mean, result })
            }
            ("regr_avgy", DataType::Float64) => Way::First(Finish { number: OfPair::mean, result }),
            ("regr_avgx", DataType::Float64) => {
                Way::Second(Finish { number: OfPair::mean, result })
            }
            (name, DataType::Float64) => {
                Way::Statistic(Finish { number: statistic(name)?, result })
            }
            _ => return None,
        })
    }

    fn way_of(&self, arguments: &AccumulatorArgs<'_>) -> Option<Way> {
        self.way(arguments.expr_fields.first()?.data_type(), arguments.return_type())
    }
}

impl AggregateUDFImpl for OfNumbers {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.others.return_field(arguments)
    }

    fn is_nullable(&self) -> bool {
        self.others.is_nullable()
    }

    fn default_value(&self, kind: &DataType) -> Result<ScalarValue> {
        self.others.default_value(kind)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let input = arguments.input_fields.first().map(|field| field.data_type().clone());
        let way = input.and_then(|input| self.way(&input, arguments.return_type()));
        let columns = match way {
            None => return self.others.state_fields(arguments),
            Some(_) if arguments.is_distinct => STATE,
            Some(Way::Float(_) | Way::First(_) | Way::Second(_)) => FloatTotal::STATE,
            Some(Way::Integer(_)) => IntegerTotal::STATE,
            Some(Way::Statistic(_)) => Moments::STATE,
        };
        let field = |(column, kind): &(&str, DataType)| {
            Arc::new(Field::new(format!("{}[{column}]", arguments.name), kind.clone(), true))
        };
        Ok(columns.iter().map(field).collect())
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_distinct = arguments.is_distinct;
        Ok(match self.way_of(&arguments) {
            None => self.others.accumulator(arguments)?,
            Some(Way::Float(finish)) if is_distinct => Box::new(Distinct::new(finish)),
            Some(Way::Integer(finish)) if is_distinct => Box::new(Distinct::new(finish)),
            Some(Way::First(finish)) if is_distinct => Box::new(Distinct::new(finish)),
            Some(Way::Second(finish)) if is_distinct => Box::new(Distinct::new(finish)),
            Some(Way::Statistic(finish)) if is_distinct => Box::new(Distinct::new(finish)),
            Some(Way::Float(finish)) => Box::new(One::new(finish)),
            Some(Way::Integer(finish)) => Box::new(One::new(finish)),
            Some(Way::First(finish)) => Box::new(One::new(finish)),
            Some(Way::Second(finish)) => Box::new(One::new(finish)),
            Some(Way::Statistic(finish)) => Box::new(One::new(finish)),
        })
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return self.accumulator(arguments);
        }
        Ok(match self.way_of(&arguments) {
            None => self.others.create_sliding_accumulator(arguments)?,
            Some(Way::Float(finish)) => Box::new(One::moving(finish)),
            Some(Way::Integer(finish)) => Box::new(One::moving(finish)),
            Some(Way::First(finish)) => Box::new(One::moving(finish)),
            Some(Way::Second(finish)) => Box::new(One::moving(finish)),
            Some(Way::Statistic(finish)) => Box::new(Kept::new(finish)),
        })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match self.way_of(&arguments) {
            None => self.others.groups_accumulator_supported(arguments),
            Some(_) => !arguments.is_distinct,
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match self.way_of(&arguments) {
            None => self.others.create_groups_accumulator(arguments)?,
            Some(Way::Float(finish)) => Box::new(Groups::new(finish)),
            Some(Way::Integer(finish)) => Box::new(Groups::new(finish)),
            Some(Way::First(finish)) => Box::new(Groups::new(finish)),
            Some(Way::Second(finish)) => Box::new(Groups::new(finish)),
            Some(Way::Statistic(finish)) => Box::new(Groups::new(finish)),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.others.documentation()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

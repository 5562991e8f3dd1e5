//! VALUES of many literals, as columns, and other rows that are in memory.
//!
//! DataFusion walks the expressions of a plan some fifty times before it runs it, which takes half a minute for a
//! million literals. As a scan of columns they cost what they weigh, and casts convert whole columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder, TableSource, Values, lit};

use crate::rules::numbers::nearest_double;

/// The fewest rows that are worth a scan.
const FEWEST: usize = 64;

/// Rows that a scan in a logical plan reads.
#[derive(Debug)]
pub struct LiteralRows {
    rows: RecordBatch,
}

impl LiteralRows {
    pub(crate) fn new(rows: RecordBatch) -> LiteralRows {
        LiteralRows { rows }
    }

    /// The rows.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }
}

impl TableSource for LiteralRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// The plan with a scan in place of each VALUES that has many rows, in which each column has literals of one type, or
/// casts of such literals to one type.
pub(crate) fn scanned(plan: LogicalPlan) -> Result<LogicalPlan> {
    let scanned = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Values(values) if values.values.len() >= FEWEST => match scan(&values)? {
            Some(scan) => Ok(Transformed::yes(scan)),
            None => Ok(Transformed::no(LogicalPlan::Values(values))),
        },
        node => Ok(Transformed::no(node)),
    })?;
    Ok(scanned.data)
}

fn scan(values: &Values) -> Result<Option<LogicalPlan>> {
    let Values { schema, values } = values;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (number, (qualifier, field)) in schema.iter().enumerate() {
        let cells = values.iter().filter_map(|row| row.get(number));
        let column = match qualifier {
            None => Column::of(cells, field.data_type())?,
            Some(_) => None,
        };
        let Some(column) = column else { return Ok(None) };
        columns.push((field.name(), column));
    }
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, Column { literals, .. })| {
            Field::new(*name, literals.data_type().clone(), literals.null_count() > 0)
        })
        .collect();
    let literals = columns.iter().map(|(_, column)| Arc::clone(&column.literals)).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), literals)?;
    let scan = LogicalPlanBuilder::scan("values", Arc::new(LiteralRows { rows }), None)?;
    let scanned = scan.schema().columns();
    let converted = columns.iter().zip(scanned).map(|((name, column), scanned)| {
        let cast =
            |expression, to: &DataType| Expr::Cast(Cast::new(Box::new(expression), to.clone()));
        column.casts.iter().fold(Expr::Column(scanned), cast).alias(name.as_str())
    });
    let converted: Vec<Expr> = converted.collect();
    Ok(Some(scan.project(converted)?.build()?))
}

/// A column of VALUES.
struct Column {
    literals: ArrayRef,
    /// The types that the literals are cast to, one after the other.
    casts: Vec<DataType>,
}

impl Column {
    /// `None` if the cells have no common form, or give another type than this one.
    fn of<'a>(
        cells: impl Iterator<Item = &'a Expr> + Clone,
        data_type: &DataType,
    ) -> Result<Option<Column>> {
        let target = cells.clone().find(|cell| literal(cell).is_some_and(|value| !value.is_null()));
        let mut targets: Vec<DataType> = target.into_iter().flat_map(casts).cloned().collect();
        targets.reverse();
        let mut literals = Vec::new();
        let mut common = None;
        let mut is_mixed = false;
        for cell in cells {
            let Some(value) = literal(cell) else { return Ok(None) };
            if value.is_null() {
                literals.push(None);
                continue;
            }
            if !casts(cell).eq(targets.iter().rev()) {
                return Ok(None);
            }
            let value = prepared(value, targets.first());
            let this = value.data_type();
            let both = match common {
                None => Some(this),
                Some(common) => {
                    is_mixed |= common != this;
                    both(common, &this)
                }
            };
            if both.is_none() {
                return Ok(None);
            }
            common = both;
            literals.push(Some(value));
        }
        let common = common.unwrap_or_else(|| data_type.clone());
        // A number as text, or as a float, may show how many digits its literal has.
        let is_exact = |target: &DataType| target.is_integer() || target.is_decimal();
        let is_same = !is_mixed || targets.first().is_some_and(is_exact);
        if !is_same || targets.last().unwrap_or(&common) != data_type {
            return Ok(None);
        }
        let null = ScalarValue::try_from(&common)?;
        let of_one_type = literals.into_iter().map(|literal| match literal {
            None => Ok(null.clone()),
            Some(value) if value.data_type() == common => Ok(value),
            Some(value) => value.cast_to(&common),
        });
        let of_one_type: Vec<ScalarValue> = of_one_type.collect::<Result<_>>()?;
        let literals = ScalarValue::iter_to_array(of_one_type)?;
        Ok(Some(Column { literals, casts: targets }))
    }
}

/// A literal as its cast to `target` takes it, where a cast of a literal differs from a cast of a column: a number is
/// the nearest DOUBLE.
fn prepared(value: &ScalarValue, target: Option<&DataType>) -> ScalarValue {
    let literal = Expr::Literal(value.clone(), None);
    let prepared = target.and_then(|target| match (target, value) {
        (DataType::Float64, ScalarValue::Int64(Some(number))) => Some(lit(*number as f64)),
        (DataType::Float64, _) => nearest_double(&literal).map(lit),
        _ => None,
    });
    match prepared.unwrap_or(literal) {
        Expr::Literal(value, _) => value,
        _ => value.clone(),
    }
}

/// The literal that a cell is, or is cast from.
fn literal(cell: &Expr) -> Option<&ScalarValue> {
    match cell {
        Expr::Literal(value, metadata) if metadata.is_none() => Some(value),
        Expr::Cast(cast) => literal(&cast.expr),
        _ => None,
    }
}

/// The types that a cell is cast to, the last one first.
fn casts(cell: &Expr) -> impl Iterator<Item = &DataType> {
    let cells = std::iter::successors(Some(cell), |cell| match cell {
        Expr::Cast(cast) => Some(cast.expr.as_ref()),
        _ => None,
    });
    cells.filter_map(|cell| match cell {
        Expr::Cast(cast) => Some(cast.field.data_type()),
        _ => None,
    })
}

/// The type that holds every number of two types exactly; `None` if there is none among DECIMALs.
fn both(one: DataType, other: &DataType) -> Option<DataType> {
    if one == *other {
        return Some(one);
    }
    let ((before, behind), (other_before, other_behind)) = (digits(&one)?, digits(other)?);
    let (before, behind) = (before.max(other_before), behind.max(other_behind));
    let all = before + behind;
    (all <= i16::from(DECIMAL128_MAX_PRECISION))
        .then_some(DataType::Decimal128(all as u8, behind as i8))
}

/// How many digits numbers of a type have before and after the point.
fn digits(data_type: &DataType) -> Option<(i16, i16)> {
    match data_type {
        DataType::Int64 => Some((19, 0)),
        DataType::UInt64 => Some((20, 0)),
        DataType::Decimal128(precision, scale) if *scale >= 0 => {
            Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale)))
        }
        _ => None,
    }
}

//! Lower bounds of the changes that are still to come, and the state that can be forgotten by them.
//!
//! A table or view with lateness has *waterlines*: from an epoch on, no change has a smaller value in a column. From these follow
//! lower bounds of the columns of plan nodes:
//!
//! - through expressions that never fall where their column rises, `DATE_TRUNC('hour', ts)`: [`monotone`];
//! - through conditions, `b.ts <= a.expires`: a bound of `b.ts` is one of `a.expires` as well: [`conditions`].
//!
//! A bound holds for *changes*: a row that is inserted or deleted has NULL in the column or at least the bound. So state that
//! only changes with smaller values would read, or touch, is not needed any more. Each node decides that for its own state,
//! in [`PlanNode::bound`](super::node::PlanNode::bound). Where no bound is known, the reason is.
mod conditions;
mod groups;
mod monotone;
mod pairs;
mod reason;
mod windows;

use std::sync::Arc;

use alluvium_dataflow::time::waterlines::TimeColumn;
use alluvium_sql_planner::{CLOCK, type_name};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;

pub(crate) use self::conditions::{conjuncts, has_same_numbers, infer, shift, undone};
pub(crate) use self::groups::{by_keys, final_by, of_groups};
pub(crate) use self::monotone::lower_bound;
pub(crate) use self::pairs::PairBounds;
pub use self::reason::Reason;
pub(crate) use self::reason::{Parts, Subject};
pub(crate) use self::windows::of_windows;
use super::expression::{self, Expression};
use super::fingerprint::Canonical;
use crate::fault::{self, Fault};

/// The lower bound of a column: NULL apart, changes from an epoch on have at least the least of some terms there.
///
/// Without terms there are no changes.
#[derive(Clone, Debug, PartialEq)]
pub struct LowerBound {
    terms: Vec<Term>,
}

/// An expression over a waterline.
#[derive(Clone, Debug)]
pub struct Term {
    /// The column that has the waterline.
    pub column: TimeColumn,
    /// Who knows the waterline.
    pub source: Source,
    /// Its name.
    name: String,
    /// Its type.
    data_type: DataType,
    /// Over rows whose only column is the waterline.
    value: Expression,
}

/// Who knows a waterline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Everybody: it is that of a table.
    Table,
    /// The dataflow itself, which drops late changes of a view.
    Own,
    /// The dataflow of this materialized view.
    View(String),
}

/// The lower bounds of the columns of a plan.
pub type LowerBounds = Vec<Result<LowerBound, Reason>>;

/// Which rows of a state are needed.
#[derive(Clone, Debug, PartialEq)]
pub enum Retention {
    /// Rows that have NULL in the column or at least the bound, and the last ones below it.
    From {
        /// A column of the rows.
        column: usize,
        /// The lower bound of the changes to it.
        bound: LowerBound,
        /// How many of the rows below the bound are needed under each key: the last ones by the column, by which rows are then
        /// sorted. No row is ever deleted if there are any.
        last: usize,
    },
    /// All.
    All(Reason),
}

impl Default for Retention {
    fn default() -> Self {
        Self::All(Reason::new("nothing is known of its rows"))
    }
}

impl Retention {
    /// Keeps rows that have NULL in the column or at least the bound.
    pub(crate) fn from(column: usize, bound: LowerBound) -> Self {
        Self::From { column, bound, last: 0 }
    }

    /// The first of these columns that has a bound by which state can be pruned, or why none has: `timeless` if none of them is
    /// a time.
    pub(crate) fn by_first(
        bounds: &LowerBounds,
        columns: impl IntoIterator<Item = usize>,
        schema: &Schema,
        timeless: impl FnOnce() -> Reason,
    ) -> Self {
        let mut reason = None;
        for column in columns {
            match &bounds[column] {
                Ok(bound) if !bound.terms.is_empty() && can_prune(schema, column) => {
                    return Self::from(column, bound.clone());
                }
                Err(lost) if is_time(schema, column) => reason = reason.or(Some(lost.clone())),
                _ => {}
            }
        }
        Self::All(reason.unwrap_or_else(timeless))
    }

    /// Keeps rows that have at least the bound of a column, by which state can be pruned, or all rows, with the reason.
    pub(crate) fn by(bounds: &LowerBounds, column: usize, schema: &Schema) -> Self {
        match &bounds[column] {
            _ if !can_prune(schema, column) => {
                let found = type_name(schema.field(column).data_type());
                Self::All(Reason::new(format!("it is {found}, and not a time or a whole number")))
            }
            Ok(bound) if bound.terms.is_empty() => {
                Self::All(Reason::new("it never changes, so no waterline says when"))
            }
            Ok(bound) => Self::from(column, bound.clone()),
            Err(reason) => Self::All(reason.clone()),
        }
    }

    /// The same of rows that have only the columns from `first` on.
    pub(crate) fn behind(self, first: usize) -> Self {
        match self {
            Self::From { column, bound, last } => {
                Self::From { column: column - first, bound, last }
            }
            all => all,
        }
    }

    /// The same with so many of the last rows below the bound, of rows that are sorted by the column.
    pub(crate) fn with_last(self, rows: usize) -> Self {
        match self {
            Self::From { column, bound, .. } => Self::From { column, bound, last: rows },
            all => all,
        }
    }

    /// The column by which the state is pruned, if it is.
    pub(crate) fn column(&self) -> Option<usize> {
        match self {
            Self::From { column, .. } => Some(*column),
            Self::All(_) => None,
        }
    }

    /// The order of columns in which rows of so many are sorted, so that state is pruned at the least cost: the column by which
    /// it is pruned first. `None` if that changes nothing.
    pub(crate) fn sorted_first(&self, width: usize) -> Option<Vec<usize>> {
        let first = self.column().filter(|column| *column > 0)?;
        let mut order: Vec<usize> = (0..width).collect();
        order[..=first].rotate_right(1);
        Some(order)
    }

    /// Adds the retention to a canonical encoding.
    pub(crate) fn encode(&self, canonical: &mut Canonical) {
        // Where all is kept, states are what they were before there was lateness.
        let Self::From { column, bound, last } = self else { return };
        canonical.text("from");
        if *last > 0 {
            canonical.text("last");
            canonical.number(*last);
        }
        canonical.number(*column);
        canonical.number(bound.terms.len());
        for term in &bound.terms {
            match &term.source {
                Source::Table => {}
                Source::Own => canonical.text("own"),
                Source::View(view) => {
                    canonical.text("view");
                    canonical.relation(view);
                }
            }
            canonical.relation(&term.column.table);
            canonical.number(term.column.column);
            canonical.expression(&term.value, &term.schema());
        }
    }
}

/// Why a side of a join has no bound of its own for the changes of the other.
fn other_side() -> Reason {
    Reason::new("a later row of the other side can match a row of any time").with_remedy(
        "bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'",
    )
}

/// Why rows are kept that have no time.
pub(crate) fn no_time_in_rows() -> Reason {
    Reason::new("the rows have no time, so any of them can come again")
        .with_remedy("select a time that has LATENESS as well")
}

/// Why a side of a join is kept whose rows have no time.
pub(crate) fn no_time_on_side() -> Reason {
    Reason::new("its rows have no time, so a later row of the other side can match any of them")
        .with_remedy("select a time that has LATENESS, and bound it by the other side's in ON")
}

/// Whether state can be pruned by a column.
fn can_prune(schema: &Schema, column: usize) -> bool {
    is_prunable(schema.field(column).data_type())
}

/// Whether state can be pruned by a column of a type.
pub(crate) fn is_prunable(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(..)
    )
}

/// Whether a column is a time.
fn is_time(schema: &Schema, column: usize) -> bool {
    matches!(schema.field(column).data_type(), DataType::Date32 | DataType::Timestamp(..))
}

/// The least of two bounds.
pub(crate) fn least(
    one: &Result<LowerBound, Reason>,
    other: &Result<LowerBound, Reason>,
) -> Result<LowerBound, Reason> {
    match (one, other) {
        (Ok(one), _) if fault::armed(Fault::BoundOfFirst) => Ok(one.clone()),
        (Ok(one), Ok(other)) => {
            let mut terms = one.terms.clone();
            terms.extend(other.terms.iter().filter(|term| !one.terms.contains(term)).cloned());
            Ok(LowerBound { terms })
        }
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

impl LowerBound {
    /// The bound of a column that never changes.
    pub(crate) fn constant() -> Self {
        Self { terms: Vec::new() }
    }

    /// The waterline of a column of a table.
    pub(crate) fn waterline(table: &str, column: usize, field: &Field) -> Self {
        Self::of_column(Source::Table, table, column, field)
    }

    /// The waterline of a column of a view, in the dataflow that drops changes below it.
    pub(crate) fn own_waterline(view: &str, column: usize, field: &Field) -> Self {
        Self::of_column(Source::Own, view, column, field)
    }

    fn of_column(source: Source, relation: &str, column: usize, field: &Field) -> Self {
        let data_type = field.data_type().clone();
        let column = TimeColumn { table: relation.to_owned(), column };
        let value = expression::column(&waterline_schema(&data_type), 0);
        let name = field.name().clone();
        Self { terms: vec![Term { column, source, name, data_type, value }] }
    }

    /// The same, for those who read the materialized view `view` whose dataflow has this bound.
    pub(crate) fn read_from(&self, view: &str) -> Self {
        let mut terms = self.terms.clone();
        let own = terms.iter_mut().filter(|term| term.source == Source::Own);
        own.for_each(|term| term.source = Source::View(view.to_owned()));
        Self { terms }
    }

    /// The bound of a function of the column, which never falls where the column rises; `function` gives it over the
    /// bound's value. `None` if it cannot be evaluated.
    pub(crate) fn map(&self, function: impl Fn(Expression) -> Option<Expression>) -> Option<Self> {
        let term = |term: &Term| {
            let value = function(Arc::clone(&term.value))?;
            value.data_type(&term.schema()).ok()?;
            Some(Term { value, ..term.clone() })
        };
        Some(Self { terms: self.terms.iter().map(term).collect::<Option<_>>()? })
    }

    /// The bound of the elements of lists whose bound this is, and whose first elements are their least.
    pub(crate) fn first_element(&self) -> Option<Self> {
        let term = |term: &Term| {
            let value = expression::first_element(Arc::clone(&term.value), &term.schema())?;
            Some(Term { value, ..term.clone() })
        };
        Some(Self { terms: self.terms.iter().map(term).collect::<Option<_>>()? })
    }

    /// Whether all of its values are of a type.
    fn has_type(&self, data_type: &DataType) -> bool {
        let is_of_type =
            |term: &Term| term.value.data_type(&term.schema()).ok().as_ref() == Some(data_type);
        self.terms.iter().all(is_of_type)
    }

    /// The terms of which it is the least.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// A value as SQL writes it.
    pub(crate) fn format(&self, value: i64) -> String {
        let data_type =
            self.terms.first().and_then(|term| term.value.data_type(&term.schema()).ok());
        let shown = data_type.and_then(|data_type| {
            let column = typed(value, &data_type)?;
            array_value_to_string(&column, 0).ok()
        });
        shown.unwrap_or_else(|| value.to_string())
    }

    /// Describes it for people.
    pub fn describe(&self) -> String {
        let terms: Vec<String> = self.terms.iter().map(Term::describe).collect();
        match &terms[..] {
            [only] => only.clone(),
            _ => format!("the least of {}", terms.join(" and ")),
        }
    }
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
            && self.source == other.source
            && self.value.as_ref() == other.value.as_ref()
    }
}

impl Term {
    fn schema(&self) -> SchemaRef {
        waterline_schema(&self.data_type)
    }

    fn describe(&self) -> String {
        match self.column.table == CLOCK {
            true => "NOW() at the time of the last change".to_owned(),
            false => format!("the waterline of {}.{}", self.column.table, self.name),
        }
    }

    /// Its value where the waterline is at `waterline`, as Arrow has it in memory; `None` if it is out of range.
    pub fn value(&self, waterline: i64) -> Option<i64> {
        let column = typed(waterline, &self.data_type)?;
        let row = RecordBatch::try_new(self.schema(), vec![column]).ok()?;
        let value = self.value.evaluate(&row).ok()?.into_array(1).ok()?;
        let value = match value.data_type() {
            DataType::Date32 => cast(&cast(&value, &DataType::Int32).ok()?, &DataType::Int64),
            _ => cast(&value, &DataType::Int64),
        };
        let value = value.ok()?;
        value.is_valid(0).then(|| value.as_primitive::<Int64Type>().value(0))
    }
}

impl Term {
    /// The least waterline at which its value is `value` or more; `None` if there is none.
    pub fn waterline(&self, value: i64) -> Option<i64> {
        // Below its range it has no value.
        let is_there = |waterline: i64| self.value(waterline).is_some_and(|found| found >= value);
        // Most terms are the waterline itself, or not far from it.
        let (mut end, mut before, mut step) = (value, value, 1_i64);
        if is_there(value) {
            loop {
                before = end.checked_sub(step)?;
                if !is_there(before) {
                    break;
                }
                (end, step) = (before, step.checked_mul(2)?);
            }
        } else {
            loop {
                end = before.checked_add(step)?;
                if self.value(end)? >= value {
                    break;
                }
                (before, step) = (end, step.checked_mul(2)?);
            }
        }
        while end - before > 1 {
            let middle = before + (end - before) / 2;
            match is_there(middle) {
                true => end = middle,
                false => before = middle,
            }
        }
        Some(end)
    }
}

/// One value of a type, given as Arrow has it in memory; `None` if it is out of range.
fn typed(value: i64, data_type: &DataType) -> Option<ArrayRef> {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![value]));
    let column = match data_type {
        // There is no cast from a long number to a date.
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).ok()?, &DataType::Date32),
        data_type => cast(&numbers, data_type),
    };
    column.ok().filter(|column| column.is_valid(0))
}

fn waterline_schema(data_type: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("waterline", data_type.clone(), true)]))
}

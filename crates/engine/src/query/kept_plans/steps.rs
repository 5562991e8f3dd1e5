//! The steps of a kept plan, which need no query engine.
//!
//! A [kept plan](super) consists of filters and projections over one relation, which it reads by key, or over VALUES. Their
//! expressions are compiled once, with parameters as columns after those of the rows. A run pins the relation, seeks the keys, and
//! evaluates the expressions, batch by batch.

use std::sync::Arc;

use alluvium_sql::functions::now::Now;
use alluvium_sql::functions::sequence::is_sequence;
use alluvium_sql::planner::fit;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{concat, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::scalar::ScalarValue;

use super::key::{equality, key_values};
use crate::catalog::Entries;
use crate::clock::Moment;
use crate::error::Error;
use crate::query::interruptible;
use crate::query::table::{RelationTable, relation};

/// The relation that the columns of parameters are of. No statement names it.
const PARAMETERS: &str = "\u{0}parameters";

/// A kept plan as a sequence of steps, from its source to its result.
#[derive(Debug)]
pub(super) struct Steps {
    source: Source,
    steps: Vec<Step>,
    /// Whether filters ask for more than the values of a key.
    has_conditions: bool,
    parameters: Vec<Parameter>,
    /// The columns of the result.
    schema: SchemaRef,
}

/// Where rows come from.
#[derive(Debug)]
enum Source {
    /// Columns of the rows of a relation whose keys filters leave; with the values of the whole primary key, if these are known.
    Keys {
        relation: String,
        columns: Option<Vec<usize>>,
        filters: Vec<Expr>,
        key: Option<Vec<Expr>>,
    },
    /// These rows.
    Values { rows: Vec<Vec<Arc<dyn PhysicalExpr>>>, schema: SchemaRef, wide: SchemaRef },
    /// One row without columns.
    Row,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Expressions over the rows of the step before.
#[derive(Debug)]
struct Step {
    kind: StepKind,
    /// The columns of the input and of the parameters, if an expression takes one.
    wide: Option<SchemaRef>,
}

#[derive(Debug)]
enum StepKind {
    Filter(Arc<dyn PhysicalExpr>),
    Project { expressions: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef },
}

/// A value that a run puts in.
#[derive(Clone, Debug, PartialEq)]
enum Parameter {
    /// Of the statement.
    Given(Placeholder),
    /// The time, as a value of this type.
    Now(DataType),
}

impl Parameter {
    /// The parameter that an expression is, if it is one.
    fn of(expression: &Expr) -> Option<Self> {
        match expression {
            Expr::Placeholder(placeholder) => Some(Self::Given(placeholder.clone())),
            Expr::ScalarFunction(call) => {
                let now = call.func.inner().downcast_ref::<Now>()?;
                Some(Self::Now(now.result().clone()))
            }
            _ => None,
        }
    }

    /// Its type; `None` if it has none.
    fn data_type(&self) -> Option<&DataType> {
        match self {
            Self::Given(placeholder) => placeholder.field.as_ref().map(|field| field.data_type()),
            Self::Now(data_type) => Some(data_type),
        }
    }

    fn value(&self, given: &[ScalarValue], time: Moment) -> crate::Result<ScalarValue> {
        match self {
            Self::Given(placeholder) => Ok(fit(placeholder, given)?),
            Self::Now(data_type) => {
                let time = ScalarValue::TimestampMicrosecond(Some(time), Some("+00:00".into()));
                Ok(time.cast_to(data_type)?)
            }
        }
    }
}

impl Steps {
    /// The steps of an optimised plan; `None` if it has others, or calls functions that are bound on each run.
    pub(super) fn of(
        plan: &LogicalPlan,
        entries: &Entries,
        compile: Compile<'_>,
    ) -> Result<Option<Self>> {
        let Some(parameters) = parameters(plan)? else { return Ok(None) };
        let mut steps = Vec::new();
        let compiler = Compiler { compile, entries, parameters: &parameters };
        let source = compiler.source(plan, &mut steps)?;
        let schema = Arc::clone(plan.schema().inner());
        let Some(source) = source else { return Ok(None) };
        let has_conditions = match &source {
            Source::Keys { key: Some(key), .. } => has_conditions(plan, key)?,
            _ => true,
        };
        Ok(Some(Self { source, steps, has_conditions, parameters, schema }))
    }

    /// Whether they find a row by the whole key of a table, or read none.
    pub(super) fn is_of_one_key(&self) -> bool {
        match self.source {
            Source::Keys { ref key, .. } => key.is_some(),
            Source::Values { .. } | Source::Row => true,
        }
    }

    /// The columns of the key, with one row, of the row that they find for these values, if nothing else decides whether they do.
    pub(super) fn key(&self, values: &[ScalarValue]) -> crate::Result<Option<Vec<ArrayRef>>> {
        let Source::Keys { key: Some(key), .. } = &self.source else { return Ok(None) };
        if self.has_conditions {
            return Ok(None);
        }
        let Some(values) = key_values(key, values)? else { return Ok(None) };
        let columns: Result<Vec<ArrayRef>> = values.iter().map(ScalarValue::to_array).collect();
        Ok(Some(columns?))
    }

    /// The relation that they read, if they read one.
    pub(super) fn relations(&self) -> &[String] {
        match &self.source {
            Source::Keys { relation, .. } => std::slice::from_ref(relation),
            Source::Values { .. } | Source::Row => &[],
        }
    }

    /// The columns of the result.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Runs them for these values, over the relation that they read, at a time.
    pub(super) fn run(
        self: &Arc<Self>,
        table: Option<&RelationTable>,
        time: Moment,
        values: &[ScalarValue],
    ) -> crate::Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let values = self.parameters.iter().map(|parameter| parameter.value(values, time));
        let mut given = Given::new(values.collect::<crate::Result<_>>()?);
        let source: Batches = match &self.source {
            Source::Keys { relation, columns, filters, .. } => {
                let table = table.ok_or_else(|| Error::replaced(relation))?;
                let filters = filters.iter().map(|filter| self.bound(filter, &given));
                let filters = filters.collect::<Result<Vec<_>>>()?;
                table.scan_of(columns.as_ref(), &filters, None)?.rows()
            }
            Source::Values { rows, schema, wide } => {
                Box::new(std::iter::once(values_of(rows, (schema, wide), &mut given)))
            }
            Source::Row => Box::new(std::iter::once(one_row())),
        };
        let mut run = Run { steps: self.clone(), given, source };
        Ok(std::iter::from_fn(move || run.next().transpose()))
    }

    /// A filter with values in place of parameters.
    fn bound(&self, filter: &Expr, given: &Given) -> Result<Expr> {
        let value = |place: usize| Expr::Literal(given.values[place].clone(), None);
        replaced(filter, &self.parameters, value)
    }
}

/// The expression with others in place of parameters, by the places of these.
fn replaced(
    expression: &Expr,
    parameters: &[Parameter],
    by: impl Fn(usize) -> Expr,
) -> Result<Expr> {
    let replaced = expression.clone().transform_up(|part| {
        let place = Parameter::of(&part)
            .and_then(|parameter| parameters.iter().position(|it| *it == parameter));
        Ok(match place {
            Some(place) => Transformed::yes(by(place)),
            None => Transformed::no(part),
        })
    });
    Ok(replaced?.data)
}

/// The parameters of a plan, each once; `None` if one has no type, or if functions have to be bound.
fn parameters(plan: &LogicalPlan) -> Result<Option<Vec<Parameter>>> {
    let (mut parameters, mut is_known) = (Vec::new(), true);
    plan.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Some(parameter) = Parameter::of(part)
                    && !parameters.contains(&parameter)
                {
                    is_known &= parameter.data_type().is_some();
                    parameters.push(parameter);
                }
                is_known &= !is_sequence(part);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(is_known.then_some(parameters))
}

/// Whether a filter of a plan asks for more than that columns have these values.
fn has_conditions(plan: &LogicalPlan, values: &[Expr]) -> Result<bool> {
    let mut has = false;
    plan.apply(|node| {
        let filters = match node {
            LogicalPlan::TableScan(scan) => scan.filters.iter().collect(),
            LogicalPlan::Filter(filter) => vec![&filter.predicate],
            _ => Vec::new(),
        };
        let mut parts = filters.into_iter().flat_map(split_conjunction);
        has |= parts.any(|part| equality(part).is_none_or(|(_, value)| !values.contains(value)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has)
}

/// Compiles an expression over some columns.
pub(super) type Compile<'a> = &'a dyn Fn(&Expr, &DFSchema) -> Result<Arc<dyn PhysicalExpr>>;

/// Compiles the expressions of a plan.
struct Compiler<'a> {
    compile: Compile<'a>,
    entries: &'a Entries,
    parameters: &'a [Parameter],
}

impl Compiler<'_> {
    /// Adds the steps of a plan, and returns their source; `None` if it has others.
    fn source(&self, plan: &LogicalPlan, steps: &mut Vec<Step>) -> Result<Option<Source>> {
        match plan {
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                Ok(relation(scan).map(|relation| Source::Keys {
                    relation: relation.to_owned(),
                    columns: scan.projection.clone(),
                    filters: scan.filters.clone(),
                    key: self.key(relation, &scan.filters),
                }))
            }
            LogicalPlan::Values(values) => {
                let wide = self.wide(&DFSchema::empty())?;
                let row = |row: &Vec<Expr>| {
                    row.iter().map(|value| self.expression(value, &wide)).collect::<Result<_>>()
                };
                let rows = values.values.iter().map(row).collect::<Result<_>>()?;
                let (schema, wide) = (Arc::clone(values.schema.inner()), Arc::clone(wide.inner()));
                Ok(Some(Source::Values { rows, schema, wide }))
            }
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema })
                if schema.fields().is_empty() =>
            {
                Ok(Some(Source::Row))
            }
            LogicalPlan::SubqueryAlias(alias) => self.source(&alias.input, steps),
            LogicalPlan::Filter(filter) => {
                let source = self.source(&filter.input, steps)?;
                let wide = self.wide(filter.input.schema())?;
                let kind = StepKind::Filter(self.expression(&filter.predicate, &wide)?);
                steps.push(Step { kind, wide: takes_parameters([&filter.predicate], &wide) });
                Ok(source)
            }
            LogicalPlan::Projection(projection) => {
                let source = self.source(&projection.input, steps)?;
                let wide = self.wide(projection.input.schema())?;
                let expressions = projection.expr.iter().map(|it| self.expression(it, &wide));
                let expressions = expressions.collect::<Result<_>>()?;
                let schema = Arc::clone(projection.schema.inner());
                let kind = StepKind::Project { expressions, schema };
                steps.push(Step { kind, wide: takes_parameters(&projection.expr, &wide) });
                Ok(source)
            }
            _ => Ok(None),
        }
    }

    /// The values that filters compare the columns of the primary key of a table with for equality, if they do so with all.
    fn key(&self, relation: &str, filters: &[Expr]) -> Option<Vec<Expr>> {
        let entry = self.entries.get(relation)?;
        let key = &entry.as_table().ok()?.primary_key;
        let value = |&column: &usize| {
            let name = entry.schema.field(column).name();
            let mut parts = filters.iter().flat_map(split_conjunction).filter_map(equality);
            parts.find(|(compared, _)| compared.name == *name).map(|(_, value)| value.clone())
        };
        if key.is_empty() {
            return None;
        }
        key.iter().map(value).collect()
    }

    /// The columns of an input and then those of the parameters.
    fn wide(&self, input: &DFSchema) -> Result<DFSchema> {
        let columns = input.iter().map(|(relation, field)| (relation.cloned(), field.clone()));
        let parameters = self.parameters.iter().enumerate().map(|(place, parameter)| {
            let data_type = parameter.data_type().cloned().unwrap_or(DataType::Null);
            let field = Field::new(place.to_string(), data_type, true);
            (Some(TableReference::bare(PARAMETERS)), Arc::new(field))
        });
        DFSchema::new_with_metadata(columns.chain(parameters).collect(), Default::default())
    }

    /// The expression over these columns.
    fn expression(&self, expression: &Expr, wide: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let column = |place: usize| {
            let relation = TableReference::bare(PARAMETERS);
            Expr::Column(Column::new(Some(relation), place.to_string()))
        };
        (self.compile)(&replaced(expression, self.parameters, column)?, wide)
    }
}

/// The columns that expressions are over, if one of them takes a parameter.
fn takes_parameters<'a>(
    expressions: impl IntoIterator<Item = &'a Expr>,
    wide: &DFSchema,
) -> Option<SchemaRef> {
    let is_parameter = |part: &Expr| Ok(Parameter::of(part).is_some());
    let mut expressions = expressions.into_iter();
    // Looking at them cannot fail.
    let takes = expressions.any(|expression| expression.exists(is_parameter).unwrap_or(true));
    takes.then(|| Arc::clone(wide.inner()))
}

/// The values of the parameters of a run.
struct Given {
    values: Vec<ScalarValue>,
    /// As columns of as many rows as the last batch had.
    columns: Vec<ArrayRef>,
    rows: Option<usize>,
}

impl Given {
    fn new(values: Vec<ScalarValue>) -> Self {
        Self { values, columns: Vec::new(), rows: None }
    }

    /// Rows with the values as further columns.
    fn beside(&mut self, rows: &RecordBatch, wide: &SchemaRef) -> Result<RecordBatch> {
        let count = rows.num_rows();
        if self.rows != Some(count) {
            let columns = self.values.iter().map(|value| value.to_array_of_size(count));
            self.columns = columns.collect::<Result<_>>()?;
            self.rows = Some(count);
        }
        let columns = rows.columns().iter().chain(&self.columns).cloned().collect();
        batch(wide, columns, count)
    }
}

impl Step {
    fn apply(&self, rows: RecordBatch, given: &mut Given) -> Result<RecordBatch> {
        let wide = match &self.wide {
            Some(wide) => &given.beside(&rows, wide)?,
            None => &rows,
        };
        let count = rows.num_rows();
        match &self.kind {
            StepKind::Filter(condition) => {
                let holds = condition.evaluate(wide)?.into_array(count)?;
                Ok(filter_record_batch(&rows, as_boolean_array(&holds)?)?)
            }
            StepKind::Project { expressions, schema } => {
                batch(schema, evaluated(expressions, wide)?, count)
            }
        }
    }
}

/// A run of steps.
struct Run {
    steps: Arc<Steps>,
    given: Given,
    source: Batches,
}

impl Run {
    /// The next rows; `None` after the last ones.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        for rows in self.source.by_ref() {
            interruptible::check()?;
            let mut rows = rows?;
            for step in &self.steps.steps {
                // What is computed of no rows cannot fail.
                if rows.num_rows() > 0 {
                    rows = step.apply(rows, &mut self.given)?;
                }
            }
            if rows.num_rows() > 0 {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }
}

/// A row without columns.
fn one_row() -> Result<RecordBatch> {
    batch(&Schema::empty().into(), Vec::new(), 1)
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn evaluated(expressions: &[Arc<dyn PhysicalExpr>], rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let value = |it: &Arc<dyn PhysicalExpr>| it.evaluate(rows)?.into_array(rows.num_rows());
    expressions.iter().map(value).collect()
}

/// The rows of VALUES.
fn values_of(
    rows: &[Vec<Arc<dyn PhysicalExpr>>],
    (schema, wide): (&SchemaRef, &SchemaRef),
    given: &mut Given,
) -> Result<RecordBatch> {
    let one = given.beside(&one_row()?, wide)?;
    let mut values = rows.iter().map(|row| evaluated(row, &one)).collect::<Result<Vec<_>>>()?;
    let columns = match &mut values[..] {
        [only] => std::mem::take(only),
        rows => (0..schema.fields().len())
            .map(|column| {
                let values: Vec<&dyn Array> = rows.iter().map(|row| &*row[column]).collect();
                Ok(concat(&values)?)
            })
            .collect::<Result<_>>()?,
    };
    batch(schema, columns, rows.len())
}

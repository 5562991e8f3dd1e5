//! From an optimized logical plan to an incremental plan.
//!
//! Each node's output has exactly the columns of the logical node it stands for. A map below a node
//! computes the expressions that it needs ([`projection`]); columns that turn out to be unused are pruned at the end.
mod aggregate;
mod asof;
pub(super) mod band;
mod join;
mod limit;
mod projection;
mod recursion;
mod unnest;
mod window;

use std::cell::RefCell;
use std::sync::Arc;

use alluvium_sql_planner::catalog::{DeclaredRecursion, Relation};
use alluvium_sql_planner::checks::refusal::Landmarks;
use alluvium_sql_planner::relations::asof::as_asof_join;
use alluvium_sql_planner::relations::relation::source_of;
use alluvium_sql_planner::relations::series::SeriesSource;
use alluvium_sql_planner::statements::recursion::work_table;
use alluvium_sql_planner::statements::set_operation::{SetOperationNode, as_set_operation};
use alluvium_sql_planner::{LiteralRows, checked, one_row};
use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::options::OPTIONS;
use alluvium_sql_syntax::statement::{Lateness, is_column_type, nearest};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::logical_plan as logical;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_physical_expr::create_physical_expr;
use datafusion_physical_expr::expressions::CastExpr;

use self::recursion::Recurring;
use super::IncrementalPlan;
use super::expression::Expression;
use super::prune::prune_nothing;
use super::range_filter::into_range_joins;

/// The incremental plan of a view's optimized plan.
pub(crate) fn build(plan: &LogicalPlan, landmarks: &Landmarks) -> Result<IncrementalPlan> {
    build_by(landmarks, |builder| with_column_types(renamed(builder.build(plan)?, plan.schema())?))
}

/// The incremental plan of a view that recurs. Views that are not complete and not part of the recursion are taken for empty.
pub(crate) fn build_recursion(
    recursion: &DeclaredRecursion,
    view: &str,
    landmarks: &Landmarks,
) -> Result<IncrementalPlan> {
    build_by(landmarks, |builder| builder.declared(recursion, view))
}

fn build_by(
    landmarks: &Landmarks,
    build: impl FnOnce(&Builder<'_>) -> Result<IncrementalPlan>,
) -> Result<IncrementalPlan> {
    let mut properties = ExecutionProps::new();
    properties.config_options = Some(Arc::clone(&OPTIONS));
    let (context, recurring) = (PhysicalPlanningContext::default(), RefCell::default());
    let builder = Builder { landmarks, properties, context, recurring };
    let mut pruned = prune_nothing(build(&builder)?)?;
    pruned.bound(&[]);
    if into_range_joins(&mut pruned)? {
        pruned.bound(&[]);
    }
    if let Some((column, reason)) = pruned.never_final() {
        let message = format!("no row of a view in it is ever final by \"{column}\": {reason}");
        return Err(Error::new(message, None));
    }
    check_columns(&pruned.schema)?;
    Ok(pruned)
}

/// The plan of the rows of a view that are final by a column.
pub(crate) fn build_final(plan: IncrementalPlan, column: usize) -> Result<IncrementalPlan> {
    let mut plan = IncrementalPlan::final_rows(plan, column)?;
    plan.bound(&[]);
    Ok(plan)
}

/// The plan of the rows of a view that come in time.
pub(crate) fn build_in_time(
    plan: IncrementalPlan,
    view: &str,
    lateness: &[Lateness],
) -> IncrementalPlan {
    let mut plan = IncrementalPlan::in_time(plan, view.to_owned(), lateness);
    plan.bound(&[]);
    plan
}

/// Makes incremental plans of logical ones.
pub(super) struct Builder<'a> {
    pub(super) landmarks: &'a Landmarks,
    properties: ExecutionProps,
    context: PhysicalPlanningContext,
    /// The recursions that are being built, the innermost last.
    recurring: RefCell<Vec<Recurring>>,
}

impl Builder<'_> {
    pub(super) fn build(&self, plan: &LogicalPlan) -> Result<IncrementalPlan> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.build(&alias.input)?;
                renamed(input, &alias.schema)
            }
            // A view's rows have no order; an order only decides which rows are the first.
            LogicalPlan::Sort(sort) => match sort.fetch {
                None => self.build(&sort.input),
                Some(fetch) => self.first(plan, fetch),
            },
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Repartition(repartition) => self.build(&repartition.input),
            LogicalPlan::Projection(projection) => {
                let input = self.build(&projection.input)?;
                self.projection(projection, input)
            }
            LogicalPlan::Filter(filter) => {
                let input = self.build(&filter.input)?;
                let predicate = self.expression(&filter.predicate, filter.input.schema())?;
                Ok(IncrementalPlan::filter(input, predicate)?)
            }
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(logical::Distinct::All(input)) => {
                let input = self.build(input)?;
                check_columns(&input.schema)?;
                Ok(IncrementalPlan::distinct(input))
            }
            LogicalPlan::Union(union) => {
                let inputs: Result<Vec<_>> =
                    union.inputs.iter().map(|input| self.build(input)).collect();
                Ok(IncrementalPlan::union(inputs?, union.schema.as_arrow())?)
            }
            LogicalPlan::Extension(extension) => {
                match (as_set_operation(extension), as_asof_join(extension)) {
                    (Some(node), _) => self.set_operation(node),
                    (None, Some(node)) => self.asof_join(node),
                    (None, None) => self.refuse(extension.node.name()),
                }
            }
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => {
                Ok(IncrementalPlan::constant(one_row()))
            }
            LogicalPlan::EmptyRelation(empty) => {
                let rows = RecordBatch::new_empty(Arc::clone(empty.schema.inner()));
                Ok(IncrementalPlan::constant(rows))
            }
            LogicalPlan::Subquery(_) => self.refuse("a subquery in an expression"),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::RecursiveQuery(query) => self.recursion(query),
            other => {
                let text = other.display().to_string();
                self.refuse(text.split([':', ' ']).next().unwrap_or_default())
            }
        }
    }

    /// A projection of the rows of `input`.
    pub(super) fn projection(
        &self,
        projection: &logical::Projection,
        input: IncrementalPlan,
    ) -> Result<IncrementalPlan> {
        let below = projection.input.schema();
        let project = self.named(&projection.expr, &projection.schema, below)?;
        Ok(IncrementalPlan::map(input, None, project)?)
    }

    /// Expressions over the columns `below`, with the names of the columns of `schema`.
    pub(super) fn named(
        &self,
        expressions: &[Expr],
        schema: &DFSchema,
        below: &DFSchema,
    ) -> Result<Vec<(Expression, String)>> {
        let names = schema.fields().iter().map(|field| field.name().clone());
        let named = expressions.iter().zip(names);
        named.map(|(expr, name)| Ok((self.expression(expr, below)?, name))).collect()
    }

    pub(super) fn refuse<T>(&self, name: &str) -> Result<T> {
        Err(Error::not_supported(format!("{name} in a view"), self.landmarks.start))
    }

    pub(super) fn expression(&self, expression: &Expr, schema: &DFSchema) -> Result<Expression> {
        let physical = create_physical_expr(expression, schema, &self.properties, &self.context)?;
        Ok(checked(physical, schema.as_arrow())?)
    }

    /// The rows of a view that is declared.
    fn recurring_rows(
        &self,
        name: &str,
        schema: &SchemaRef,
        recursion: &Option<Arc<DeclaredRecursion>>,
        is_local: bool,
    ) -> Result<IncrementalPlan> {
        Ok(match (self.recurring(name)?, recursion) {
            (Some(rows), _) => rows,
            (None, None) => IncrementalPlan::constant(RecordBatch::new_empty(schema.clone())),
            (None, Some(recursion)) => match (self.declared(recursion, name)?, is_local) {
                (rows, true) => rows,
                (rows, false) => IncrementalPlan::view(name.to_owned(), rows),
            },
        })
    }

    fn scan(&self, scan: &logical::TableScan) -> Result<IncrementalPlan> {
        let all = || (0..scan.source.schema().fields().len()).collect();
        let columns: Vec<usize> = scan.projection.clone().unwrap_or_else(all);
        if let Some(source) = scan.source.downcast_ref::<SeriesSource>() {
            let series = IncrementalPlan::series(source.series(), scan.source.schema());
            return Ok(IncrementalPlan::columns(series, &columns)?);
        }
        if let Some(source) = scan.source.downcast_ref::<LiteralRows>() {
            let rows = IncrementalPlan::constant(source.rows().clone());
            return Ok(IncrementalPlan::columns(rows, &columns)?);
        }
        if let Some(table) = work_table(scan.source.as_ref()) {
            return Ok(IncrementalPlan::columns(self.recurrence(table)?, &columns)?);
        }
        let Some(source) = source_of(scan.source.as_ref()) else {
            return self.refuse("this relation");
        };
        match source.relation() {
            Relation::Table {
                schema, kept: false, promised_key, append_only, waterlines, ..
            } => {
                let (name, waterlines) = (source.name().to_string(), waterlines.clone());
                let rows =
                    IncrementalPlan::stream(name, schema, columns, *append_only, waterlines)?;
                Ok(rows.with_promised_key(promised_key))
            }
            relation @ (Relation::Table { .. } | Relation::MaterializedView { .. }) => {
                let rows = IncrementalPlan::stored_rows(source.name(), relation, columns)?;
                rows.map_or_else(|| self.refuse("this relation"), Ok)
            }
            Relation::View { plan, local, emit_final, lateness, .. } => {
                let (name, mut view) = (source.name(), self.build(plan)?);
                if let Some(column) = emit_final {
                    view = IncrementalPlan::final_rows(view, *column)?;
                }
                if !lateness.is_empty() {
                    view = IncrementalPlan::in_time(view, name.to_owned(), lateness);
                }
                if !local {
                    view = IncrementalPlan::view(name.to_owned(), view);
                }
                Ok(IncrementalPlan::columns(view, &columns)?)
            }
            Relation::Declared { schema, recursion, local } => {
                let rows = self.recurring_rows(source.name(), schema, recursion, *local)?;
                Ok(IncrementalPlan::columns(rows, &columns)?)
            }
            Relation::Clock => {
                Ok(IncrementalPlan::one_row_scan(source.name().to_string(), scan.source.schema()))
            }
            Relation::System { .. } => self.refuse("a system relation"),
        }
    }

    fn set_operation(&self, node: &SetOperationNode) -> Result<IncrementalPlan> {
        let (left, right) = (self.build(&node.left)?, self.build(&node.right)?);
        let names = node.left.schema().as_arrow();
        let plan = IncrementalPlan::set_operation(left, right, node.operation, names)?;
        check_columns(&plan.schema)?;
        Ok(plan)
    }

    fn values(&self, values: &logical::Values) -> Result<IncrementalPlan> {
        let nothing = DFSchema::empty();
        let row = one_row();
        let width = values.schema.fields().len();
        let mut cells: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(values.values.len()); width];
        for expressions in &values.values {
            for (column, expression) in cells.iter_mut().zip(expressions) {
                let value = self.expression(expression, &nothing)?.evaluate(&row)?;
                column.push(value.into_array(1)?);
            }
        }
        let columns: std::result::Result<Vec<ArrayRef>, DataFusionError> = cells
            .iter()
            .map(|cells| Ok(concat(&cells.iter().map(AsRef::as_ref).collect::<Vec<_>>())?))
            .collect();
        let columns = columns?;
        let fields = values.schema.fields().iter().zip(&columns);
        let fields: Vec<Field> = fields
            .map(|(field, column)| {
                Field::new(field.name(), column.data_type().clone(), column.null_count() > 0)
            })
            .collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(DataFusionError::from)?;
        Ok(IncrementalPlan::constant(rows))
    }
}

/// The same rows under the names of another schema.
pub(super) fn renamed(input: IncrementalPlan, schema: &DFSchema) -> Result<IncrementalPlan> {
    let columns = input.identity().into_iter().zip(schema.fields());
    let project = columns.map(|((column, _), field)| (column, field.name().clone())).collect();
    Ok(IncrementalPlan::map(input, None, project)?)
}

/// The same rows with the types of tables.
fn with_column_types(input: IncrementalPlan) -> Result<IncrementalPlan> {
    let project = input.identity().into_iter().zip(input.schema.fields()).map(|(column, field)| {
        let (column, name) = column;
        match nearest(field.data_type()) {
            Some(nearest) if !is_column_type(field.data_type()) && !field.data_type().is_null() => {
                (Arc::new(CastExpr::new(column, nearest, None)) as Expression, name)
            }
            _ => (column, name),
        }
    });
    let project = project.collect();
    Ok(IncrementalPlan::map(input, None, project)?)
}

/// Refuses columns of types that cannot be stored.
pub(super) fn check_columns(schema: &Schema) -> Result<()> {
    // Some aggregates return this type of text, which is cast before it is stored.
    let can_be_kept = |data_type: &DataType| {
        is_column_type(data_type) || matches!(data_type, DataType::LargeUtf8)
    };
    match schema.fields().iter().find(|field| !can_be_kept(field.data_type())) {
        None => Ok(()),
        Some(field) if field.data_type().is_null() => Err(Error::new(
            format!("column \"{}\" is always NULL and has no type: CAST it", field.name()),
            None,
        )),
        Some(field) => Err(Error::not_supported(
            format!("column \"{}\" of type {} in a view", field.name(), field.data_type()),
            None,
        )),
    }
}

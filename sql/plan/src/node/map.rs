//! Maps: a filter, then a projection.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::{Arc, OnceLock};

use alluvium_dataflow::map::{MapStep, can_fail, maps};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::Round;
use alluvium_dataflow::rows::layout;
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result;
use datafusion_physical_expr::expressions::IsNotNullExpr;
use datafusion_physical_expr::{PhysicalExpr, split_conjunction};

use super::{InRounds, Node, PlanNode};
use crate::expression::{self, Expression};
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{
    CompileResult, Compiler, Operator, OperatorId, Rendering, RoundCompiler, RoundId,
    RoundOperator, RoundRendering,
};
use crate::properties::Dependency;
use crate::prune::{place, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, bounds, clock_filter, ranking_filter};

/// The column that a condition says is not NULL, if it says that.
fn present_column(condition: &Expression) -> Option<usize> {
    expression::as_column(condition.downcast_ref::<IsNotNullExpr>()?.arg())
}

/// A filter, then a projection.
#[derive(Clone, Debug)]
pub struct Map {
    /// Where the rows come from.
    pub input: Box<IncrementalPlan>,
    /// Over the input's columns; keeps the rows for which it is true.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    /// Over the input's columns; one per output column.
    pub project: Vec<Arc<dyn PhysicalExpr>>,
}

impl IncrementalPlan {
    /// The rows for which `filter` is true, as the named expressions; fused with a map below where that
    /// evaluates nothing twice.
    pub(crate) fn map(
        input: IncrementalPlan,
        filter: Option<Expression>,
        project: Vec<(Expression, String)>,
    ) -> Result<IncrementalPlan> {
        if filter.is_none() && is_identity(&project, &input.schema) {
            return Ok(input);
        }
        let (input, filter, project) = fuse(input, filter, project)?;
        if let Some((input, filter, project)) =
            clock_filter::into_temporal_filters(&input, &filter, &project)?
        {
            return IncrementalPlan::map(input, filter, project);
        }
        let (input, filter) = ranking_filter::into_top(input, filter, &project)?;
        let fields: Result<Vec<Field>> = project
            .iter()
            .map(|(expression, name)| {
                let nullable = expression::is_nullable(expression, &input.schema)?;
                Ok(Field::new(name, expression.data_type(&input.schema)?, nullable))
            })
            .collect();
        let passed: Vec<Option<usize>> =
            project.iter().map(|(expression, _)| expression::as_column(expression)).collect();
        let unique = input.properties.unique.iter().filter_map(|key| {
            key.iter()
                .map(|column| passed.iter().position(|passed| *passed == Some(*column)))
                .collect()
        });
        let expressions = project.iter().map(|(expression, _)| expression);
        let computed: Vec<Option<Vec<usize>>> =
            expressions.map(|expression| followed(expression, &input.schema)).collect();
        let place = |column| passed.iter().position(|passed| *passed == Some(column));
        let below = &input.properties;
        let dependencies = below.computed_dependencies(input.width(), place, &computed);
        let properties = Properties::new(unique.collect(), below.append_only).with(dependencies);
        let schema = Arc::new(Schema::new(fields?));
        let node = Node::Map(Map {
            input: Box::new(input),
            filter,
            project: project.into_iter().map(|(expression, _)| expression).collect(),
        });
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    /// The rows for which `predicate` is true.
    pub(crate) fn filter(input: IncrementalPlan, predicate: Expression) -> Result<IncrementalPlan> {
        let project = input.identity();
        IncrementalPlan::map(input, Some(predicate), project)
    }

    /// Some columns, in this order.
    pub(crate) fn columns(input: IncrementalPlan, columns: &[usize]) -> Result<IncrementalPlan> {
        let identity = input.identity();
        let project = columns.iter().map(|&column| identity[column].clone()).collect();
        IncrementalPlan::map(input, None, project)
    }

    /// The columns in which rows with NULL are filtered out.
    pub(crate) fn columns_without_null(&self) -> Vec<usize> {
        let Node::Map(Map { filter: Some(filter), project, .. }) = &self.node else {
            return Vec::new();
        };
        let present = split_conjunction(filter).into_iter().filter_map(present_column);
        let present: Vec<usize> = present.collect();
        let is_present = |expression: &Expression| {
            expression::as_column(expression).is_some_and(|column| present.contains(&column))
        };
        (0..project.len()).filter(|&column| is_present(&project[column])).collect()
    }

    /// The rows with those besides that have NULL in one of the columns `keys`, and where the columns of this are among their
    /// columns; `None` if something else is filtered out or computed.
    pub(crate) fn with_nulls(&self, keys: &[usize]) -> Option<(&IncrementalPlan, Vec<usize>)> {
        let Node::Map(Map { input, filter: Some(filter), project }) = &self.node else {
            return None;
        };
        let columns: Option<Vec<usize>> = project.iter().map(expression::as_column).collect();
        let columns = columns?;
        let is_key = |part| {
            present_column(part)
                .is_some_and(|column| keys.iter().any(|&key| columns[key] == column))
        };
        let is_same =
            |(column, field): (&usize, &Arc<Field>)| input.schema.field(*column) == &**field;
        let are_same = columns.iter().zip(self.schema.fields()).all(is_same);
        let is_all = are_same && split_conjunction(filter).into_iter().all(is_key);
        is_all.then_some((&**input, columns))
    }

    /// Lets a map also pass on the columns of its input by which state can be pruned and that follow from its columns `keys`,
    /// after the others. Dependencies that are only promised count if `promised`.
    pub(crate) fn pass_determined(&mut self, keys: &[usize], promised: bool) {
        let Node::Map(map) = &mut self.node else { return };
        let of = |expression: &Expression| expression::as_column(expression);
        let passed: Vec<usize> = map.project.iter().filter_map(of).collect();
        let by: Vec<usize> = keys.iter().filter_map(|key| of(&map.project[*key])).collect();
        let below = &map.input.schema;
        let known = map.input.properties.determined(&by, below.fields().len(), promised);
        let mut fields = self.schema.fields().to_vec();
        for (column, field) in below.fields().iter().enumerate() {
            if known[column] && !passed.contains(&column) && bounds::is_prunable(field.data_type())
            {
                map.project.push(expression::column(below, column));
                fields.push(Arc::clone(field));
            }
        }
        self.schema = Arc::new(Schema::new(fields));
    }

    /// Takes back which columns the map [passes on](Self::pass_determined) after its first `width` ones, apart from one, which
    /// follows from those of the dependency.
    pub(crate) fn pass_one(&mut self, width: usize, kept: Option<(usize, Dependency)>) {
        let Node::Map(map) = &mut self.node else { return };
        let kept_column = kept.as_ref().map(|(column, _)| *column);
        let columns: Vec<usize> = (0..width).chain(kept_column).collect();
        map.project = columns.iter().map(|column| Arc::clone(&map.project[*column])).collect();
        self.schema = layout::project(&self.schema, &columns);
        self.properties.dependencies.extend(kept.map(|(_, dependency)| dependency));
        self.fingerprint = OnceLock::new();
    }

    /// A projection that changes nothing.
    pub(crate) fn identity(&self) -> Vec<(Expression, String)> {
        let fields = self.schema.fields().iter().enumerate();
        fields
            .map(|(number, field)| (expression::column(&self.schema, number), field.name().clone()))
            .collect()
    }
}

/// The columns from which the value of an expression follows. `None` if it may differ for values that are equal as keys, as
/// those of 0.0 and -0.0.
fn followed(expression: &Expression, schema: &Schema) -> Option<Vec<usize>> {
    if let Some(column) = expression::as_column(expression) {
        return Some(vec![column]);
    }
    let mut columns = Vec::new();
    expression::for_each_column(expression, &mut |column| columns.push(column));
    let is_exact = |column: &usize| bounds::is_prunable(schema.field(*column).data_type());
    columns.iter().all(is_exact).then_some(columns)
}

/// Whether a projection gives the columns of `schema` as they are.
fn is_identity(project: &[(Expression, String)], schema: &Schema) -> bool {
    project.len() == schema.fields().len()
        && project.iter().enumerate().all(|(number, (expression, name))| {
            expression::as_column(expression) == Some(number) && schema.field(number).name() == name
        })
}

/// The input, filter and projection of a map, with a map below it taken in if nothing is then evaluated twice.
type Fused = (IncrementalPlan, Option<Expression>, Vec<(Expression, String)>);

fn fuse(
    input: IncrementalPlan,
    filter: Option<Expression>,
    project: Vec<(Expression, String)>,
) -> Result<Fused> {
    let below = match input.node {
        Node::Map(below) if can_fuse(&below.project, &filter, &project) => below,
        _ => return Ok((input, filter, project)),
    };
    let replace = |expression| {
        expression::replace_columns(expression, |column| Arc::clone(&below.project[column]))
    };
    let filter = expression::and(below.filter, filter.map(replace).transpose()?);
    let project: Result<Vec<_>> =
        project.into_iter().map(|(expression, name)| Ok((replace(expression)?, name))).collect();
    Ok((*below.input, filter, project?))
}

/// Whether everything that the lower map computes is used at most once.
fn can_fuse(
    below: &[Expression],
    filter: &Option<Expression>,
    project: &[(Expression, String)],
) -> bool {
    let mut uses = vec![0_usize; below.len()];
    for expression in filter.iter().chain(project.iter().map(|(expression, _)| expression)) {
        expression::for_each_column(expression, &mut |column| uses[column] += 1);
    }
    below.iter().zip(uses).all(|(expression, uses)| uses <= 1 || expression::is_free(expression))
}

impl PlanNode for Map {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(
        self,
        schema: &SchemaRef,
        _: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let Map { input, filter, project } = self;
        let project: Vec<(Expression, String)> = required
            .iter()
            .map(|&column| (Arc::clone(&project[column]), schema.field(column).name().clone()))
            .collect();
        let passed: Option<Vec<usize>> =
            project.iter().map(|(expression, _)| expression::as_column(expression)).collect();
        if let (None, Some(passed)) = (&filter, passed)
            && passed.iter().collect::<BTreeSet<_>>().len() == passed.len()
        {
            let input = prune(*input, &passed)?;
            let columns = input.identity().into_iter();
            let named = columns.zip(project).map(|((column, _), (_, name))| (column, name));
            let named = named.collect();
            return IncrementalPlan::map(input, None, named);
        }
        let mut used = BTreeSet::new();
        for expression in filter.iter().chain(project.iter().map(|(expression, _)| expression)) {
            expression::for_each_column(expression, &mut |column| {
                used.insert(column);
            });
        }
        let (input, used) = prune_to(*input, used)?;
        let renumber = |expression| {
            expression::replace_columns(expression, |column| {
                expression::column(&input.schema, place(&used, column))
            })
        };
        let filter = filter.map(renumber).transpose()?;
        let project: Result<Vec<_>> = project
            .into_iter()
            .map(|(expression, name)| Ok((renumber(expression)?, name)))
            .collect();
        IncrementalPlan::map(input, filter, project?)
    }

    fn bound(&mut self, _: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let mut below = bounds::conjuncts(self.filter.as_ref());
        let computed = conditions.iter().map(|condition| {
            let column = |column: usize| Arc::clone(&self.project[column]);
            expression::replace_columns(Arc::clone(condition), column)
        });
        below.extend(computed.flatten());
        let schema = Arc::clone(&self.input.schema);
        let mut bounds = self.input.bound(&below);
        bounds::infer(&mut bounds, &schema, &below);
        let project = self.project.iter();
        project.map(|expression| bounds::lower_bound(expression, &schema, &bounds)).collect()
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("map");
        canonical.number(self.filter.iter().len());
        for expression in self.filter.iter().chain(&self.project) {
            canonical.expression(expression, &self.input.schema);
        }
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        self.compile_as(self.project.clone(), Arc::clone(&plan.schema), compiler)
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        line.push_str("map");
        for (number, expression) in self.project.iter().enumerate() {
            line.push_str(if number == 0 { " " } else { ", " });
            let shown = below.expression(expression)?;
            let name = schema.field(number).name();
            match expression::as_column(expression) {
                Some(column) if self.input.schema.field(column).name() == name => {
                    line.push_str(&shown)
                }
                _ if shown == *name => line.push_str(&shown),
                _ => write!(line, "{shown} AS {name}")?,
            }
        }
        match &self.filter {
            Some(filter) => write!(line, " where {}", below.expression(filter)?),
            None => Ok(()),
        }
    }
}

impl Map {
    /// The rows that its filter keeps, as the columns `project`, named by `schema`.
    pub(super) fn compile_as(
        &self,
        project: Vec<Expression>,
        schema: SchemaRef,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        // Maps of the views below are steps of the same operator.
        let mut steps = vec![self.step(project, schema, compiler.reports(0))];
        let (mut input, mut views) = (&*self.input, 0);
        loop {
            input = match &input.node {
                Node::View(view) => {
                    views += 1;
                    &*view.input
                }
                Node::Map(map) => {
                    let (project, schema) = (map.project.clone(), Arc::clone(&input.schema));
                    steps.push(map.step(project, schema, compiler.reports(views)));
                    &*map.input
                }
                _ => break,
            };
        }
        steps.reverse();
        let input = compiler.rows_in_views(views, input)?;
        Ok(compiler.add(RowMap { input, steps }))
    }

    fn step(&self, project: Vec<Expression>, schema: SchemaRef, reports: bool) -> MapStep {
        let filter = self.filter.clone();
        let reports = reports && filter.iter().chain(&project).any(can_fail);
        MapStep { filter, project, schema, reports }
    }
}

impl InRounds for Map {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let input = compiler.rows(&self.input)?;
        let (project, schema) = (self.project.clone(), Arc::clone(&plan.schema));
        let step = self.step(project, schema, compiler.reports());
        Ok(compiler.add(RoundMap { input, step }))
    }
}

/// Consecutive maps, ready to be rendered.
#[derive(Debug)]
pub(crate) struct RowMap {
    input: OperatorId,
    steps: Vec<MapStep>,
}

impl Operator for RowMap {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let rows = rendering.rows(self.input);
        let (rows, errors) = maps(rows, self.steps.clone(), &rendering.context());
        if self.steps.iter().any(|step| step.reports) {
            rendering.report(errors);
        }
        rows
    }
}

impl RowMap {
    /// Some columns of rows of the schema `from`.
    pub(crate) fn columns(input: OperatorId, from: &SchemaRef, columns: &[usize]) -> Self {
        let project = columns.iter().map(|&column| expression::column(from, column)).collect();
        let schema = layout::project(from, columns);
        Self::step(input, MapStep { filter: None, project, schema, reports: false })
    }

    /// The rows of one step.
    pub(super) fn step(input: OperatorId, step: MapStep) -> Self {
        Self { input, steps: vec![step] }
    }

    /// Rows of the schema `from` under the names, and with the NULLs, of `to`.
    pub(crate) fn relabel(input: OperatorId, from: &Schema, to: SchemaRef) -> Self {
        Self::step(input, relabeling(from, to))
    }
}

/// Rows of the schema `from` under the names, and with the NULLs, of `to`.
pub(crate) fn relabeling(from: &Schema, to: SchemaRef) -> MapStep {
    let columns = 0..from.fields().len();
    let project = columns.map(|column| expression::column(from, column)).collect();
    MapStep { filter: None, project, schema: to, reports: false }
}

/// A map inside of a recursion, ready to be rendered.
#[derive(Debug)]
pub(crate) struct RoundMap {
    input: RoundId,
    step: MapStep,
}

impl RoundMap {
    /// Rows of the schema `from` under the names, and with the NULLs, of `to`.
    pub(crate) fn relabel(input: RoundId, from: &Schema, to: SchemaRef) -> Self {
        Self { input, step: relabeling(from, to) }
    }
}

impl RoundOperator for RoundMap {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        let rows = rendering.rows(self.input);
        let (rows, errors) = maps(rows, vec![self.step.clone()], &rendering.context());
        if self.step.reports {
            rendering.report(errors);
        }
        rows
    }
}

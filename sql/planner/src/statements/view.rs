//! Planning a view.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::ViewDefinition;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast;

use crate::catalog::{DeclaredView, Relation};
use crate::checks::extent::Extent;
use crate::checks::hopeless;
use crate::checks::refusal;
use crate::checks::validate;
use crate::context::{Context, Scope};
use crate::expressions::now;
use crate::names::repeated_names;
use crate::names::selected_names;
use crate::names::unnested_names;
use crate::registered;
use crate::relations::relation::{RelationSource, source_of};
use crate::rules::optimizer::ViewOptimizer;
use crate::statements::declared;
use crate::statements::recursion;
use crate::statements::set_operation;
use crate::subqueries::subquery;

/// A view as it is planned before it is said how it is maintained.
#[derive(Debug)]
pub struct LogicalView {
    /// Its query, which replaces its name in statements and views if it is not materialized.
    pub logical: Arc<LogicalPlan>,
    /// The size of that plan.
    pub extent: Extent,
    /// The same, with equal parts as one: an incremental plan is built of it.
    pub shared: LogicalPlan,
    /// Where its text has constructs that may turn out not to be supported.
    pub landmarks: refusal::Landmarks,
    /// All relations that its text names, each once, in alphabetical order; none of them may be dropped before it.
    pub depends: Vec<String>,
    /// Its part in a recursion, if it was declared.
    pub declared: Option<DeclaredView>,
    /// The views that it reads, itself or through others, and that are declared and not complete.
    pub awaits: Vec<String>,
}

pub(crate) fn plan(
    optimizer: &ViewOptimizer,
    view: &ViewDefinition,
    scope: Scope<'_>,
) -> Result<LogicalView> {
    let landmarks = refusal::check_view(&view.query, scope.registered)?;
    let planned = planned(optimizer, view, scope, landmarks)?;
    // Else a state directory with the view could not be opened again.
    debug_assert_eq!(registered::unknown(&view.query, scope.registered, &|_| false), None);
    Ok(planned)
}

fn planned(
    optimizer: &ViewOptimizer,
    view: &ViewDefinition,
    scope: Scope<'_>,
    landmarks: refusal::Landmarks,
) -> Result<LogicalView> {
    let in_query = |error: datafusion_common::DataFusionError| Error::from_datafusion(&error);
    recursion::check_syntax(&view.query)?;
    let context = Context::new(scope).with_recursion_limit(view.recursion_limit);
    let mut query = view.query.clone();
    repeated_names::apart(&mut query);
    let logical = context
        .plan(ast::Statement::Query(query))
        .and_then(|plan| unnested_names::name(plan, &view.query))
        .map_err(in_query)?;
    Extent::of(&logical)?;
    recursion::check(&logical).map_err(|error| error.at(landmarks.recursion))?;
    let logical = name_columns(logical, view)?;
    let mut depends = relations(&logical, &landmarks, scope)?;
    let schema = match scope.catalog.relation(&view.name) {
        Some(Relation::Declared { schema, recursion: None, .. }) => Some(schema),
        _ => None,
    };
    let mut logical = logical;
    if let Some(schema) = &schema {
        declared::check(view)?;
        depends.retain(|name| *name != view.name);
        logical = declared::with_integers(logical, schema).map_err(in_query)?;
    }

    let logical = set_operation::plan(logical)
        .and_then(now::with_clock)
        .and_then(selected_names::apart)
        .and_then(subquery::decorrelate)
        .map_err(in_query)?;
    validate::check_subqueries(&logical, &landmarks)?;
    let logical = optimizer.optimize(logical).map_err(in_query)?;
    hopeless::check(&logical)?;
    validate::validate(&logical, &landmarks)?;
    let extent = Extent::of(&logical)?;
    let shared = optimizer.share(logical.clone()).map_err(in_query)?;
    let mut awaits = declared::awaited(&shared).map_err(in_query)?;
    awaits.remove(&view.name);
    let name = view.name.clone();
    let declared =
        schema.map(|schema| DeclaredView { name, schema, plan: Arc::new(shared.clone()) });
    Ok(LogicalView {
        logical: Arc::new(logical),
        extent,
        shared,
        landmarks,
        depends,
        declared,
        awaits: awaits.into_iter().collect(),
    })
}

/// Gives the columns the names of the view's column list; without a list their names must be distinct.
pub(crate) fn name_columns(plan: LogicalPlan, view: &ViewDefinition) -> Result<LogicalPlan> {
    let selected = plan.schema().fields().len();
    if !view.columns.is_empty() && view.columns.len() != selected {
        return Err(Error::new(
            format!(
                "view \"{}\" names {} columns but selects {selected}",
                view.name,
                view.columns.len()
            ),
            view.position,
        ));
    }
    let mut is_as_planned = view.columns.is_empty();
    let names: Vec<String> = match view.columns.is_empty() {
        true => {
            let fields = plan.schema().fields().iter();
            let names = fields.map(|field| match repeated_names::written(field.name()) {
                Some(name) => {
                    is_as_planned = false;
                    name
                }
                None => field.name().clone(),
            });
            names.collect()
        }
        false => view.columns.clone(),
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Error::new(
            format!(
                "column \"{twice}\" appears twice in view \"{}\"; rename one with AS",
                view.name
            ),
            Position::of(view.query.as_ref()),
        ));
    }
    if is_as_planned {
        return Ok(plan);
    }
    let columns: Vec<Expr> = plan
        .schema()
        .columns()
        .into_iter()
        .zip(&names)
        .map(|(column, name)| Expr::Column(column).alias(name))
        .collect();
    LogicalPlanBuilder::from(plan)
        .project(columns)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| Error::from_datafusion(&error).at(Some(view.position)))
}

/// The relations that a plan scans; a view cannot read system relations.
fn relations(
    plan: &LogicalPlan,
    landmarks: &refusal::Landmarks,
    scope: Scope<'_>,
) -> Result<Vec<String>> {
    let is_system = |source: &RelationSource| match source.relation() {
        Relation::System { .. } => true,
        Relation::View { plan, .. } => {
            scope.catalog.system().is_some_and(|system| system.is_view(source.name(), plan))
        }
        _ => false,
    };
    let mut names = BTreeSet::new();
    let mut system = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = source_of(scan.source.as_ref())
        {
            names.insert(source.name().to_string());
            if is_system(source) {
                system = Some(source.name().to_string());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| Error::from_datafusion(&error))?;
    match system {
        Some(name) => Err(Error::new(
            format!("a view cannot read \"{name}\": query it instead"),
            landmarks.start,
        )),
        None => Ok(names.into_iter().collect()),
    }
}

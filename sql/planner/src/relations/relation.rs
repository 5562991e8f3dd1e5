//! Relations as DataFusion's plans refer to them.

use std::sync::Arc;

use alluvium_sql_syntax::error::{self, Error};
use alluvium_sql_syntax::statement::KEEPING;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource, TableType};

use crate::catalog::Relation;
use crate::checks::dataflow_only;
use crate::expressions::now::CLOCK_SCHEMA;
use crate::statements::declared;

/// The relation that a scan in a logical plan reads.
///
/// It cannot be executed: to run a plan, replace the source of each scan by one that provides the rows of
/// [`name`](RelationSource::name).
#[derive(Debug)]
pub struct RelationSource {
    name: String,
    relation: Relation,
    schema: SchemaRef,
}

impl RelationSource {
    /// The source of a relation and its name in the catalog.
    pub fn new(name: String, relation: Relation) -> RelationSource {
        let schema = match &relation {
            Relation::Table { schema, .. }
            | Relation::MaterializedView { schema, .. }
            | Relation::Declared { schema, .. }
            | Relation::System { schema } => Arc::clone(schema),
            Relation::Clock => Arc::clone(&CLOCK_SCHEMA),
            // Plans over this one must agree with it on which columns can be NULL.
            Relation::View { plan, .. } => Arc::clone(plan.schema().inner()),
        };
        RelationSource { name, relation, schema }
    }

    /// The relation's name in the catalog.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The relation, as the catalog has it.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        match self.relation {
            Relation::Table { .. } | Relation::Clock | Relation::System { .. } => TableType::Base,
            Relation::MaterializedView { .. }
            | Relation::View { .. }
            | Relation::Declared { .. } => TableType::View,
        }
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        match &self.relation {
            Relation::Table { schema, defaults, .. } => {
                defaults.get(schema.index_of(column).ok()?)?.as_ref()
            }
            _ => None,
        }
    }
}

/// The source of a scan, if it is a relation of the catalog.
pub fn source_of(source: &dyn TableSource) -> Option<&RelationSource> {
    source.downcast_ref::<RelationSource>()
}

/// Refuses a query of a table that does not keep its rows.
pub fn check_kept(plan: &LogicalPlan) -> error::Result<()> {
    let mut passing = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = source_of(scan.source.as_ref())
            && matches!(source.relation, Relation::Table { kept: false, .. })
        {
            passing = Some(source.name.clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| Error::from_datafusion(&error))?;
    match passing {
        None => Ok(()),
        Some(name) => Err(Error::new(
            format!("\"{name}\" does not keep its rows, so it cannot be queried: {KEEPING}"),
            None,
        )),
    }
}

/// Expands views that are not materialized, so that only relations with rows of their own are scanned.
pub fn inline_views(plan: LogicalPlan) -> Result<LogicalPlan> {
    let inlined = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let Some(source) = source_of(scan.source.as_ref()) else {
            return Ok(Transformed::no(node));
        };
        if let Relation::Declared { recursion, .. } = source.relation() {
            return declared::refuse(source.name(), recursion.is_some());
        }
        let Relation::View { plan, emit_final, lateness: late, .. } = source.relation() else {
            return Ok(Transformed::no(node));
        };
        if emit_final.is_some() {
            return dataflow_only::refuse_final(source.name());
        }
        if !late.is_empty() {
            return dataflow_only::refuse_late(source.name());
        }
        let mut view = LogicalPlanBuilder::from(inline_views(plan.as_ref().clone())?);
        if let Some(projection) = &scan.projection {
            let columns = plan.schema().columns();
            view = view
                .project(projection.iter().map(|&column| Expr::Column(columns[column].clone())))?;
        }
        Ok(Transformed::yes(view.alias(scan.table_name.clone())?.build()?))
    })?;
    Ok(inlined.data)
}

//! Scans: the rows of a table or of a materialized view.

use std::any::Any;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_sql_planner::CLOCK;
use alluvium_sql_planner::catalog::{Maintained, Relation};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::stream::table_bounds;
use super::{Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::{Fingerprint, IncrementalPlan, LowerBounds, Properties};

/// The rows of a table or of a materialized view.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Its name in the catalog.
    pub relation: String,
    /// All of its columns.
    pub stored: SchemaRef,
    /// Which of them, in output order.
    pub columns: Vec<usize>,
    /// The meaning of its rows, if it is a materialized view; the rows of a table are those written to it.
    pub view: Option<ViewRows>,
    /// Which of its columns have a waterline.
    pub waterlines: Vec<usize>,
}

/// The rows of a materialized view.
#[derive(Clone, Debug)]
pub struct ViewRows {
    /// Identifies their meaning.
    pub fingerprint: Fingerprint,
    /// The lower bounds of its columns.
    pub bounds: Arc<LowerBounds>,
    /// Whether [some are constant](IncrementalPlan::has_constant_rows).
    pub are_constant: bool,
}

impl ViewRows {
    /// The rows of a view with this plan, whose columns have these lower bounds.
    pub fn of(plan: &IncrementalPlan, bounds: Arc<LowerBounds>) -> Self {
        Self { fingerprint: plan.fingerprint(), bounds, are_constant: plan.has_constant_rows() }
    }
}

impl Maintained for ViewRows {}

impl IncrementalPlan {
    /// Some columns of a table whose columns are `stored`, of which `waterlines` have a waterline.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn scan(
        relation: String,
        stored: &SchemaRef,
        columns: Vec<usize>,
        primary_key: &[usize],
        append_only: bool,
        waterlines: Vec<usize>,
    ) -> Result<IncrementalPlan> {
        let key: Option<Vec<usize>> =
            primary_key.iter().map(|key| columns.iter().position(|column| column == key)).collect();
        let unique = key.filter(|key| !key.is_empty()).into_iter().collect();
        let schema = Arc::new(stored.project(&columns)?);
        let node =
            Node::Scan(Scan { relation, stored: stored.clone(), columns, view: None, waterlines });
        let properties = Properties { unique, append_only, ..Properties::default() };
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    /// Some columns of a relation that keeps its rows; `None` of another one.
    ///
    /// # Errors
    /// If there is no such column.
    pub(crate) fn stored_rows(
        name: &str,
        relation: &Relation,
        columns: Vec<usize>,
    ) -> Result<Option<IncrementalPlan>> {
        let name = name.to_owned();
        let rows = match relation {
            Relation::Table {
                schema,
                primary_key,
                promised_key,
                kept: true,
                append_only,
                waterlines,
                ..
            } => {
                // A row with the key of an earlier one replaces it.
                let append_only = *append_only && primary_key.is_empty();
                let (keys, waterlines) = (primary_key, waterlines.clone());
                IncrementalPlan::scan(name, schema, columns, keys, append_only, waterlines)?
                    .with_promised_key(promised_key)
            }
            Relation::MaterializedView { schema, append_only, maintained } => {
                let maintained: &dyn Any = &**maintained;
                let Some(view) = maintained.downcast_ref::<ViewRows>() else { return Ok(None) };
                IncrementalPlan::view_scan(name, schema, columns, view.clone(), *append_only)?
            }
            _ => return Ok(None),
        };
        Ok(Some(rows))
    }

    /// All columns of the relation that this scans, in its order, and where the columns of this are among them; `None` if this
    /// is no scan of a table or a view. Scans that differ in their columns agree on it.
    pub(crate) fn all_columns_scanned(&self) -> Option<(IncrementalPlan, &[usize])> {
        let Node::Scan(scan) = &self.node else { return None };
        if !scan.is_of_table_or_view() {
            return None;
        }
        let schema = scan.stored.clone();
        let columns = (0..schema.fields().len()).collect();
        // A scan of other columns may not have those of a key.
        let append_only = self.properties.append_only;
        let properties = Properties { append_only, ..Properties::default() };
        let node = Node::Scan(Scan { columns, ..scan.clone() });
        Some((IncrementalPlan::new(node, schema, properties), &scan.columns))
    }

    /// Some columns of a materialized view whose columns are `stored`. Its rows are only ever inserted if it is `append_only`.
    pub(crate) fn view_scan(
        relation: String,
        stored: &SchemaRef,
        columns: Vec<usize>,
        view: ViewRows,
        append_only: bool,
    ) -> Result<IncrementalPlan> {
        let schema = Arc::new(stored.project(&columns)?);
        let stored = stored.clone();
        let node = Node::Scan(Scan {
            relation,
            stored,
            columns,
            view: Some(view),
            waterlines: Vec::new(),
        });
        let properties = Properties { append_only, ..Properties::default() };
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    /// All columns of a relation that never has more than one row, whose values never fall.
    pub(crate) fn one_row_scan(relation: String, schema: SchemaRef) -> IncrementalPlan {
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let node = Node::Scan(Scan {
            relation,
            stored: schema.clone(),
            waterlines: columns.clone(),
            columns,
            view: None,
        });
        let properties = Properties { unique: vec![Vec::new()], ..Properties::default() };
        IncrementalPlan::new(node, schema, properties)
    }

    /// Whether this is the clock, which always has one row.
    pub(crate) fn is_clock(&self) -> bool {
        matches!(&self.node, Node::Scan(scan) if scan.relation == CLOCK)
    }

    /// Whether this is a scan of a relation that is stored sorted by `keys`.
    ///
    /// The clock has one row, which is not sorted by anything.
    pub(crate) fn is_stored_by(&self, keys: &[usize]) -> bool {
        matches!(self.node, Node::Scan(_))
            && matches!(&self.properties.unique[..], [key] if key == keys && !key.is_empty())
    }
}

impl Scan {
    /// Whether it reads a table or a materialized view, and not the clock.
    pub(crate) fn is_of_table_or_view(&self) -> bool {
        self.relation != CLOCK
    }
}

impl PlanNode for Scan {
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let columns = required.iter().map(|&column| self.columns[column]).collect();
        let node = Node::Scan(Scan { columns, ..self });
        let properties = properties.of_columns(required, schema.fields().len());
        let schema = Arc::new(schema.project(required)?);
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        match &self.view {
            Some(view) => {
                let bound = |column: &usize| {
                    view.bounds[*column].as_ref().map(|bound| bound.read_from(&self.relation))
                };
                let bounds = self.columns.iter().map(|column| bound(column).map_err(Clone::clone));
                bounds.collect()
            }
            None => table_bounds(&self.relation, &self.columns, &self.waterlines, schema),
        }
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("scan");
        canonical.relation(&self.relation);
        canonical.columns(&self.columns);
        canonical.flag(self.view.is_some());
        self.view.iter().for_each(|view| canonical.other_plan(view.fingerprint));
    }

    fn compile(&self, _: &IncrementalPlan, compiler: &mut Compiler) -> CompileResult<OperatorId> {
        let (relation, columns) = (self.relation.clone(), self.columns.clone());
        Ok(compiler.add(ScanRows { relation, columns }))
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "scan {} {}", self.relation, Names(schema).all())
    }

    fn relation(&self) -> Option<&str> {
        Some(&self.relation)
    }
}

/// A scan, ready to be rendered.
#[derive(Debug)]
struct ScanRows {
    relation: String,
    columns: Vec<usize>,
}

impl Operator for ScanRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        rendering.scan(&self.relation, &self.columns)
    }
}

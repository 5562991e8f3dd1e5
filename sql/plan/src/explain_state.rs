//! EXPLAIN STATE: the state of a view, whether and below which bound it is pruned, and why not.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use alluvium_sql_syntax::error::Result;
use arrow::datatypes::SchemaRef;

use super::bounds::{LowerBound, Reason, Retention};
use super::constructs::{Constructs, ViewText};
use super::names::Names;
use super::node::IndexScan;
use super::{Fingerprint, IncrementalPlan, Index, Node};
use crate::physical::{Compiled, Output, PhysicalPlan, Place, State, compile};

/// An operator that keeps or reads state.
#[derive(Clone, Debug)]
pub struct KeptBy {
    /// The operator, as EXPLAIN VIEW writes it.
    pub operator: String,
    /// How many such operators are above it.
    pub depth: usize,
    /// The clause that it stands for in the text of the view, and where that is, for people.
    pub at: Option<String>,
    /// Its states.
    pub states: Vec<KeptState>,
    /// The fingerprint of its rows; `None` of the view itself.
    pub rows: Option<Fingerprint>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct KeptState {
    /// The kind of its rows.
    pub what: &'static str,
    /// Where it is.
    pub place: Place,
    /// The index that the operator belongs to, if it is not the view's own.
    pub index: Option<Fingerprint>,
    /// Of an index: the one of all columns of a relation that the operator would read instead, had it been there.
    pub wider: Option<Arc<Index>>,
    /// The rows that are kept.
    pub keeping: Keeping,
}

/// The rows of a state that are kept.
#[derive(Clone, Debug)]
pub enum Keeping {
    /// Rows that have at least a bound in a column, or NULL, and the last ones below it.
    From {
        /// The column's name.
        column: String,
        /// The bound.
        bound: LowerBound,
        /// How many rows below the bound are kept of each key.
        last: usize,
    },
    /// All rows.
    All {
        /// Why.
        reason: Reason,
        /// The part of the view's text that the reason is about, for people.
        at: Option<String>,
    },
}

impl fmt::Display for Keeping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From { column, bound, last } => {
                let last = LastRows(*last);
                write!(formatter, "pruned by {column}, from {}{last}", bound.describe())
            }
            Self::All { reason, at: None } => write!(formatter, "never pruned: {reason}"),
            Self::All { reason, at: Some(at) } => {
                write!(formatter, "never pruned: {reason} ({at})")
            }
        }
    }
}

/// How many rows below a bound are kept of each key, for people.
#[derive(Clone, Copy, Debug)]
pub struct LastRows(pub usize);

impl fmt::Display for LastRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => formatter.write_str(", but for the last row before that of each key"),
            rows => write!(formatter, ", but for the last {rows} rows before that of each key"),
        }
    }
}

/// The state of a view that is planned like this over the indexes of whole relations that are `there`, and the state that it
/// reads. The first of `texts` is that of its definition, the others are those of the views that it expands.
///
/// # Errors
/// If the plan cannot be compiled.
pub fn explain_state(
    plan: &IncrementalPlan,
    output: Output,
    texts: &[ViewText<'_>],
    there: &dyn Fn(Fingerprint) -> bool,
) -> Result<Vec<KeptBy>> {
    let compiled = compile(plan, output, there)?;
    let Compiled { plan: physical, indexes, shared } = &compiled;
    let indexes = indexes.iter().map(|index| (index.fingerprint, &index.plan)).collect();
    let constructs = Constructs::of(texts);
    let mut walk = Walk { constructs, indexes, found: Vec::new() };
    if let Some(state) = physical.kept() {
        walk.found.push(contents(state));
    }
    walk.plan(shared, physical, Inside::default(), true);
    Ok(walk.found)
}

/// The contents of a materialized view.
fn contents(state: &State) -> KeptBy {
    let reason = Reason::new("a materialized view keeps its rows, to be read")
        .with_remedy("leave out MATERIALIZED if nothing reads them, or select fewer rows");
    let state = KeptState {
        what: "contents",
        place: Place::Own(state.clone()),
        index: None,
        wider: None,
        keeping: Keeping::All { reason, at: None },
    };
    KeptBy { operator: "the view".to_owned(), depth: 0, at: None, states: vec![state], rows: None }
}

/// The surroundings of a node.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// How many operators with state.
    depth: usize,
    /// The index.
    index: Option<Fingerprint>,
}

struct Walk<'a> {
    constructs: Constructs,
    indexes: HashMap<Fingerprint, &'a Arc<PhysicalPlan>>,
    found: Vec<KeptBy>,
}

impl Walk<'_> {
    /// The states of a plan. Those of a relation that it scans are left out unless `scans`.
    fn plan(
        &mut self,
        plan: &IncrementalPlan,
        physical: &PhysicalPlan,
        inside: Inside,
        scans: bool,
    ) {
        let node = plan.node.as_node();
        // Here follows the plan of the index.
        if let Some(IndexScan { index, .. }) = node.index()
            && let Some(&physical) = self.indexes.get(&index.fingerprint())
        {
            let inside = Inside { index: Some(index.fingerprint()), ..inside };
            return self.plan(&index.rows, physical, inside, true);
        }
        let places = physical.places(plan.fingerprint());
        let mut states = self.states(plan, physical, places, inside);
        if let Node::Scan(scan) = &plan.node
            && scan.is_of_table_or_view()
            && scans
        {
            states.push(stored(scan.relation.clone(), scan.view.is_some(), inside));
        }
        if !states.is_empty() {
            let mut operator = String::new();
            node.explain(&plan.schema, &mut operator).expect("a string takes any text");
            let at = self.clause(plan);
            let (depth, rows) = (inside.depth, Some(plan.fingerprint()));
            self.found.push(KeptBy { operator, depth, at, states, rows });
        }
        let is_stateful = !node.retained().is_empty();
        let inside = Inside { depth: inside.depth + usize::from(is_stateful), ..inside };
        for (number, input) in node.inputs().into_iter().enumerate() {
            let is_said = is_stateful && matches!(places.get(number), Some(Place::Table(_)));
            self.plan(input, physical, inside, !is_said);
        }
    }

    /// The states of the operator of a node.
    fn states(
        &self,
        plan: &IncrementalPlan,
        physical: &PhysicalPlan,
        places: &[Place],
        inside: Inside,
    ) -> Vec<KeptState> {
        let node = plan.node.as_node();
        let inputs = node.inputs();
        let retained = node.retained().into_iter().zip(places).enumerate();
        let states = retained.map(|(number, ((what, schema, retention), place))| {
            let keeping = match (place, retention) {
                (Place::Table(table), _) => {
                    return KeptState { what, ..stored(table.clone(), false, inside) };
                }
                (Place::Own(state), Retention::From { column, bound, last }) => {
                    let column = shown(plan, schema, *column);
                    match physical.is_pruned(&state.id) {
                        true => Keeping::From { column, bound: bound.clone(), last: *last },
                        false => Keeping::All { reason: Reason::unsorted(&column), at: None },
                    }
                }
                (_, Retention::All(reason)) => {
                    Keeping::All { reason: reason.clone(), at: self.subject(reason) }
                }
                // Only the own state of an operator is pruned.
                (Place::Index(_), Retention::From { .. }) => {
                    Keeping::All { reason: Reason::shared(), at: None }
                }
            };
            // The sides of a join come first among its places.
            let read = inputs.get(number).and_then(|input| input.node.as_node().index());
            let wider = read.and_then(|scan| scan.wider.clone());
            KeptState { what, place: place.clone(), index: inside.index, wider, keeping }
        });
        states.collect()
    }

    /// The clause that a node stands for, and where it is.
    fn clause(&self, plan: &IncrementalPlan) -> Option<String> {
        let clause = plan.node.as_node().clause()?;
        Some(match self.constructs.clause(&clause) {
            Some(spot) => format!("{} at {spot}", clause.name()),
            None => format!("in {}", clause.name()),
        })
    }

    /// The place of the subject of a reason, if it is not the node's clause.
    fn subject(&self, reason: &Reason) -> Option<String> {
        self.constructs.subject(reason.subject()).map(|spot| format!("at {spot}"))
    }
}

/// A column of an input of a node, whose columns are `schema`; as an expression if the input computes it.
fn shown(plan: &IncrementalPlan, schema: &SchemaRef, column: usize) -> String {
    let input = plan.inputs().into_iter().find(|input| Arc::ptr_eq(&input.schema, schema));
    let computed = input.and_then(|input| match &input.node {
        Node::Map(map) => Names(&map.input.schema).expression(map.project.get(column)?).ok(),
        _ => None,
    });
    computed.unwrap_or_else(|| Names(schema).column(column))
}

/// The contents of a relation.
fn stored(relation: String, is_view: bool, inside: Inside) -> KeptState {
    let reason = match is_view {
        true => Reason::new("the materialized view keeps its rows, whoever reads them"),
        false => Reason::of_table(),
    };
    KeptState {
        what: "contents",
        place: Place::Table(relation),
        index: inside.index,
        wider: None,
        keeping: Keeping::All { reason, at: None },
    }
}

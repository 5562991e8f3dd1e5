//! A catalog that is filled by SQL definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::catalog::{Catalog, Relation};
use alluvium_sql::error::Error;
use alluvium_sql::plan::node::ViewRows;
use alluvium_sql::plan::{ExplainedNode, IncrementalPlan, PlannedView, explained_nodes};
use alluvium_sql::planner::Planner;
use alluvium_sql::planner::defaults;
use alluvium_sql::stack::with_room;
use alluvium_sql::statement::{
    Statement, StatementKind, ViewDefinition, ViewKind, ViewLateness, parse,
};
use arrow::datatypes::{DataType, Field, Schema};

const FLIGHTS: &str = "
    CREATE TABLE flights (
        id BIGINT PRIMARY KEY, year INT, month INT, day INT, dep_time INT, dep_delay DOUBLE, arr_delay DOUBLE,
        carrier VARCHAR NOT NULL, tailnum VARCHAR, origin VARCHAR NOT NULL, dest VARCHAR NOT NULL,
        distance INT, time_hour TIMESTAMP);
    CREATE TABLE airlines (carrier VARCHAR PRIMARY KEY, name VARCHAR NOT NULL);
    CREATE TABLE planes (tailnum VARCHAR PRIMARY KEY, year INT, seats INT, model VARCHAR);
    CREATE TABLE weather (origin VARCHAR, time_hour TIMESTAMP, temp DOUBLE, PRIMARY KEY (origin, time_hour));
    CREATE TABLE numbers (a INT, b BIGINT, c SMALLINT, d DECIMAL(10,2), e REAL, u BIGINT UNSIGNED, t TEXT);
";

pub struct Definitions {
    pub planner: Planner,
    relations: BTreeMap<String, Relation>,
    /// The lateness declared for views that do not exist yet.
    lateness: Vec<ViewLateness>,
}

impl Catalog for Definitions {
    fn relation(&self, name: &str) -> Option<Relation> {
        self.relations.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.relations.keys().cloned().collect()
    }
}

impl Definitions {
    /// Flights and related tables, a table of numbers, and `alluvium.errors`.
    pub fn flights() -> Definitions {
        let (planner, relations, lateness) = (Planner::new(), BTreeMap::new(), Vec::new());
        let mut definitions = Definitions { planner, relations, lateness };
        let schema = Arc::new(Schema::new(vec![Field::new("view", DataType::Utf8, false)]));
        definitions.relations.insert("alluvium.errors".to_string(), Relation::System { schema });
        definitions.define(FLIGHTS);
        definitions
    }

    /// Adds all definitions of a text.
    pub fn define(&mut self, text: &str) {
        for statement in parse(text) {
            match statement.unwrap().kind {
                StatementKind::CreateTable(table) => {
                    let relation = Relation::Table {
                        kept: table.is_kept(),
                        append_only: table.is_append_only(),
                        waterlines: table.lateness.iter().map(|late| late.column).collect(),
                        always_generated: table.always_generated(),
                        defaults: defaults(&table).unwrap(),
                        uniques: table.uniques.into_iter().map(|unique| unique.columns).collect(),
                        schema: table.schema,
                        primary_key: table.primary_key,
                        promised_key: table.promised_key,
                    };
                    self.relations.insert(table.name, relation);
                }
                StatementKind::Lateness(declared) => self.lateness.push(*declared),
                StatementKind::CreateView(mut view) => {
                    let said = self.lateness.extract_if(.., |said| said.view == view.name);
                    view.lateness = said.collect();
                    let planned = PlannedView::of(&view, &self.planner, self).unwrap();
                    let relation = match view.kind {
                        ViewKind::Materialized => {
                            let append_only = planned.plan.properties.append_only;
                            let maintained = ViewRows::of(&planned.plan, planned.bounds);
                            Relation::MaterializedView {
                                schema: planned.schema,
                                append_only,
                                maintained: Arc::new(maintained),
                            }
                        }
                        kind @ (ViewKind::Local | ViewKind::Plain) => Relation::View {
                            schema: planned.schema,
                            plan: planned.logical,
                            extent: planned.extent,
                            local: kind == ViewKind::Local,
                            emit_final: planned.emit_final,
                            lateness: planned.lateness,
                        },
                    };
                    self.relations.insert(view.name, relation);
                }
                other => panic!("not a definition: {other:?}"),
            }
        }
    }

    /// The plan of `CREATE VIEW v AS query`.
    pub fn view(&self, query: &str) -> Result<PlannedView, Error> {
        let statement = statement(&format!("CREATE VIEW v AS\n{query}"))?;
        let StatementKind::CreateView(view) = &statement.kind else {
            panic!("not a view: {query}");
        };
        with_room(statement.depth, || PlannedView::of(view, &self.planner, self))
    }

    /// The plan of a query in a view, as EXPLAIN VIEW prints it.
    pub fn explain(&self, query: &str) -> String {
        match self.view(query) {
            Ok(planned) => explained(&planned.plan),
            Err(error) => panic!("{query}: {error}"),
        }
    }
}

/// A plan, a node a line: its inputs are indented below it, and what is known of its rows and state stands in brackets.
pub fn explained(plan: &IncrementalPlan) -> String {
    let nodes = explained_nodes(plan, &|_| false).unwrap();
    let line = |node: &ExplainedNode| {
        let (indent, operator) = (2 * node.depth, &node.operator);
        match node.known.is_empty() {
            true => format!("{:indent$}{operator}\n", ""),
            false => format!("{:indent$}{operator} [{}]\n", "", node.known.join("; ")),
        }
    };
    nodes.iter().map(line).collect()
}

/// The only statement of a text.
pub fn statement(text: &str) -> Result<Statement, Error> {
    let mut statements = parse(text);
    let statement = statements.next().unwrap_or_else(|| panic!("no statement in {text:?}"));
    assert!(statements.next().is_none(), "one statement in {text:?}");
    statement
}

/// A view's definition.
pub fn view(text: &str) -> Result<ViewDefinition, Error> {
    match statement(text)?.kind {
        StatementKind::CreateView(view) => Ok(view),
        other => panic!("not a view: {other:?}"),
    }
}

/// An error as printed for users, without the file.
pub fn shown(error: &Error) -> String {
    match error.position {
        Some(position) => format!("{}:{}: {error}", position.line, position.column),
        None => format!("{error}"),
    }
}

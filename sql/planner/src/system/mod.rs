//! Views and functions of the program's own, in schemas that statements read and do not change.
//!
//! A program gives their definitions as SQL when it sets an engine up, so that clients find what they look for, as
//! `pg_catalog.pg_class`. They are no part of the catalog: they are not persisted, listed, altered or dropped.
//!
//! - `view`: one reads system relations and others before it, and is planned when a statement names it first; [`visible`] is the catalog with
//!   them;
//! - a function is one of SQL that may also ask a query, and may have the name of a built-in function, whose place it then takes;
//! - `calls` are the ways in which only these functions can be called.

mod calls;
mod view;
pub(crate) mod visible;

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::{FunctionDefinition, StatementKind, parse};
use datafusion_expr::LogicalPlan;
use sqlparser::ast::Query;

pub(crate) use self::calls::{flatten, has_calls, resolve};
use self::view::SystemView;
use crate::sql_functions::{SqlFunction, SqlFunctions};

/// The definitions of a program.
#[derive(Debug, Default)]
pub struct SystemSchemas {
    /// The schemas in which names without one are found.
    path: Vec<String>,
    views: Vec<SystemView>,
    /// Where they are, by their names with a schema and, in a schema of the path, without.
    places: HashMap<String, usize>,
    settings: Arc<[(String, String)]>,
    pub(crate) functions: SqlFunctions,
}

impl SystemSchemas {
    /// Definitions whose views in these schemas can be named without them. A relation of users comes first.
    pub fn with_path(path: Vec<String>) -> Self {
        Self { path, ..Self::default() }
    }

    /// The same, with settings that statements show and cannot set: their names and values.
    #[must_use]
    pub fn with_settings(self, settings: Vec<(String, String)>) -> Self {
        Self { settings: settings.into(), ..self }
    }

    /// The settings that statements show and cannot set.
    pub fn settings(&self) -> &Arc<[(String, String)]> {
        &self.settings
    }

    /// Adds the definitions of a text: `CREATE VIEW s.v AS …` and `CREATE FUNCTION …`. Each may use those before it.
    ///
    /// # Errors
    /// If it has other statements, if one is wrong, or if a name is taken. The queries of views are not planned yet.
    pub fn add(&mut self, sql: &str) -> Result<()> {
        for statement in parse(sql) {
            let statement = statement?;
            let at = statement.position;
            match statement.kind {
                StatementKind::CreateView(view) => {
                    let place = self.views.len();
                    let (schema, short) = name::split(&view.name);
                    if self.places.insert(view.name.clone(), place).is_some() {
                        let message = format!("there are two system views \"{}\"", view.name);
                        return Err(Error::new(message, at));
                    }
                    if self.path.contains(&schema) {
                        self.places.entry(name::qualified(None, &short)).or_insert(place);
                    }
                    self.views.push(SystemView::new(view));
                }
                StatementKind::CreateFunction(function) => self.add_function(&function)?,
                _ => {
                    let message = "a system schema is of CREATE VIEW and CREATE FUNCTION";
                    return Err(Error::new(message, at));
                }
            }
        }
        Ok(())
    }

    fn add_function(&mut self, definition: &FunctionDefinition) -> Result<()> {
        let function = SqlFunction::of_system(definition, self)?;
        match self.functions.insert(definition.name.clone(), Arc::new(function)) {
            None => Ok(()),
            Some(_) => {
                let message = format!("there are two system functions {}()", definition.name);
                Err(Error::new(message, definition.position))
            }
        }
    }

    /// The schemas in which names without one are found.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Whether a view has this name, which may be one without a schema.
    pub fn has_view(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whether a query names one of the views, or calls one of the functions.
    pub fn is_used_by(&self, query: &Query) -> bool {
        !self.is_empty() && calls::uses(query, self)
    }

    /// Whether the relation of this name, with this plan, is one of the views.
    pub(crate) fn is_view(&self, name: &str, plan: &Arc<LogicalPlan>) -> bool {
        let view = self.places.get(name).and_then(|place| self.views.get(*place));
        view.is_some_and(|view| view.is(plan))
    }

    /// The names of the views, with their schemas, in the order of their definitions.
    pub fn views(&self) -> impl Iterator<Item = &str> {
        self.views.iter().map(SystemView::name)
    }

    /// Whether there are no definitions.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty() && self.functions.is_empty()
    }
}

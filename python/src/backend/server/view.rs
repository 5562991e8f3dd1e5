//! Rows of a server by key: prepared queries of the columns of the key.

use std::ops::Bound;
use std::sync::Arc;

use alluvium::Value;
use alluvium::name::{spelled, written};
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::arrow::datatypes::SchemaRef;
use alluvium_client::{Batches, Client};
use parking_lot::Mutex;

use super::catalog;
use super::pool::Server;
use super::rows::{Coming, RemoteRows};
use super::session::{Block, Place, parameters};
use super::wait::Stopped;
use crate::backend::{Rows, View};
use crate::failure::{Failure, Fallible};

/// A table or a view of a server.
pub(super) struct RemoteView {
    server: Server,
    name: String,
    schema: SchemaRef,
    key: Vec<usize>,
    /// Whether the columns of the key may be NULL.
    is_nullable: bool,
}

impl RemoteView {
    /// Looks up a table or a materialized view.
    pub(super) fn find(server: &Server, name: &str) -> Fallible<Self> {
        let (schema, key, is_nullable) = server.with(async |client: &Client| {
            let schema = catalog::columns(client, name).await?;
            let primary_key = catalog::primary_key(client, name).await?;
            if !primary_key.is_empty() {
                return Ok((schema, Some(primary_key), false));
            }
            let key = catalog::key_of_view(client, name).await?;
            let key = key.map(|key| places(&schema, &key));
            Ok((schema, key, true))
        })?;
        let Some(key) = key else {
            return Err(Failure::new(
                "ProgrammingError",
                format!("\"{name}\" keeps no rows, so they are not found by key; query it"),
            ));
        };
        Ok(Self { server: server.clone(), name: name.to_owned(), schema, key, is_nullable })
    }

    /// The name of a column of the key in SQL.
    fn column(&self, number: usize) -> String {
        spelled(self.schema.field(self.key[number]).name())
    }

    fn check(&self, values: &[Value]) -> Fallible<()> {
        if self.key.is_empty() {
            return Err(Failure::new(
                "DataError",
                "no unique key is known of these rows, so they are not found by key; query them",
            ));
        }
        if values.len() > self.key.len() {
            let names: Vec<&str> =
                self.key.iter().map(|key| self.schema.field(*key).name().as_str()).collect();
            let message = format!(
                "the key has {} columns ({}), and {} values were given",
                self.key.len(),
                names.join(", "),
                values.len()
            );
            return Err(Failure::new("DataError", message));
        }
        Ok(())
    }

    /// A query of rows by conditions, in the order of the key.
    fn query(&self, conditions: &[String]) -> String {
        let from = written(&self.name);
        let conditions = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let nulls = if self.is_nullable { " NULLS FIRST" } else { "" };
        let order: Vec<String> =
            (0..self.key.len()).map(|number| format!("{}{nulls}", self.column(number))).collect();
        let order = match order.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", order.join(", ")),
        };
        format!("SELECT * FROM {from}{conditions}{order}")
    }

    /// Runs a query. A connection that has been idle may be lost.
    fn run(&self, query: &Query) -> Fallible<(Client, Batches)> {
        let parameters = parameters(&query.values)?;
        let run = |client: &Client| self.server.wait(client.query_typed(&query.sql, &parameters));
        let mut client = self.server.take()?;
        let mut ran = run(&client);
        if matches!(&ran, Err(Stopped::Failed(error)) if error.is_lost()) {
            client = self.server.open()?;
            ran = run(&client);
        }
        Ok((client, ran?))
    }

    /// The condition that a key, from this column on, is not before some values, or not after them.
    fn beyond(&self, query: &mut Query, values: &[Value], number: usize, side: Side) -> String {
        let column = self.column(number);
        let value = &values[number];
        let is_last = number + 1 == values.len();
        // NULLs come first.
        let (apart, same) = match (value.is_null(), side) {
            (true, Side::Low) if is_last => return "true".to_owned(),
            (true, Side::Low) => (format!("{column} IS NOT NULL"), format!("{column} IS NULL")),
            (true, Side::High) => ("false".to_owned(), format!("{column} IS NULL")),
            (false, _) => {
                let place = query.place(value);
                let (compares, is_before) = match side {
                    Side::Low => (">", String::new()),
                    Side::High if self.is_nullable => ("<", format!(" OR {column} IS NULL")),
                    Side::High => ("<", String::new()),
                };
                if is_last && is_before.is_empty() {
                    return format!("{column} {compares}= {place}");
                }
                (format!("{column} {compares} {place}{is_before}"), format!("{column} = {place}"))
            }
        };
        match is_last {
            true => format!("({apart} OR {same})"),
            false => {
                let rest = self.beyond(query, values, number + 1, side);
                format!("({apart} OR ({same} AND {rest}))")
            }
        }
    }

    /// Adds the conditions of an end.
    fn end(&self, query: &mut Query, end: Bound<&[Value]>, side: Side) -> Fallible<Vec<String>> {
        let values = match end {
            Bound::Included(values) => values,
            _ => return Ok(Vec::new()),
        };
        self.check(values)?;
        let Some(first) = values.first() else { return Ok(Vec::new()) };
        let mut conditions = Vec::new();
        if values.len() > 1 && !first.is_null() && !(self.is_nullable && side == Side::High) {
            // By the first column alone they are found.
            let compares = if side == Side::Low { ">=" } else { "<=" };
            let place = query.place(first);
            conditions.push(format!("{} {compares} {place}", self.column(0)));
        }
        conditions.push(self.beyond(query, values, 0, side));
        Ok(conditions)
    }
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

/// A query, and the values of its parameters.
#[derive(Default)]
struct Query {
    sql: String,
    values: Vec<Value>,
}

impl Query {
    /// The place of another value.
    fn place(&mut self, value: &Value) -> String {
        self.values.push(value.clone());
        format!("${}", self.values.len())
    }
}

impl View for RemoteView {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn key(&self) -> &[usize] {
        &self.key
    }

    fn get(&self, key: &[Value]) -> Fallible<RecordBatch> {
        self.check(key)?;
        let mut query = Query::default();
        let conditions = key.iter().enumerate().map(|(number, value)| match value.is_null() {
            true => format!("{} IS NULL", self.column(number)),
            false => format!("{} = {}", self.column(number), query.place(value)),
        });
        let conditions: Vec<String> = conditions.collect();
        query.sql = match conditions.len() == self.key.len() {
            true => {
                format!("SELECT * FROM {} WHERE {}", written(&self.name), conditions.join(" AND "))
            }
            false => self.query(&conditions),
        };
        let (client, batches) = self.run(&query)?;
        let rows = self.server.wait(batches.collect())?;
        self.server.give_back(client);
        Ok(rows)
    }

    fn range(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Fallible<(SchemaRef, Rows)> {
        let mut query = Query::default();
        let mut conditions = self.end(&mut query, low, Side::Low)?;
        conditions.extend(self.end(&mut query, high, Side::High)?);
        query.sql = self.query(&conditions);
        let (client, batches) = self.run(&query)?;
        let schema = batches.schema().clone();
        let block = Arc::new(Mutex::new(Block::None));
        let coming = Coming::begin(self.server.clone(), batches, block, Place::whole(""), false)?;
        let rows = RemoteRows(Arc::new(Mutex::new(coming)));
        let server = self.server.clone();
        Ok((schema, Box::new(KeyRows { rows, client: Some(client), server })))
    }

    fn stale(&self) -> Fallible<Arc<dyn View>> {
        Ok(Arc::new(Self {
            server: self.server.stale(),
            name: self.name.clone(),
            schema: self.schema.clone(),
            key: self.key.clone(),
            is_nullable: self.is_nullable,
        }))
    }
}

/// Rows that come over a connection of the pool, which they give back.
struct KeyRows {
    rows: RemoteRows,
    client: Option<Client>,
    server: Server,
}

impl Iterator for KeyRows {
    type Item = Fallible<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.rows.next();
        if next.is_none()
            && let Some(client) = self.client.take()
        {
            self.server.give_back(client);
        }
        next
    }
}

/// The places of columns whose names a text has, with commas between them.
fn places(schema: &SchemaRef, names: &str) -> Vec<usize> {
    let mut rest = names;
    let mut places = Vec::new();
    while !rest.is_empty() {
        // A name may have a comma.
        let found = schema.fields().iter().enumerate().filter_map(|(place, field)| {
            let after = rest.strip_prefix(field.name().as_str())?;
            let after = if after.is_empty() { Some(after) } else { after.strip_prefix(", ") };
            Some((place, after?))
        });
        let Some((place, after)) = found.min_by_key(|(_, after)| after.len()) else {
            return Vec::new();
        };
        places.push(place);
        rest = after;
    }
    places
}

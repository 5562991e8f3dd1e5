//! Rows of the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, RecordBatch, StringArray};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, SchemaRef};
use fastrand::Rng;

use super::calendar::{Calendar, choose};
use super::constants::Constants;

/// The rows of a table whose keys others refer to.
const KEYS: usize = 16;

/// The items. A sales ticket has some or nearly all of them.
const ITEMS: usize = 24;

/// The rows of sales and inventory.
const SALES: usize = 400;

/// The rows of returns.
const RETURNS: usize = 200;

/// The numbers of tickets and orders.
const TICKETS: usize = 60;

/// A row, column by column; `None` is NULL.
type Row = BTreeMap<String, Option<String>>;

/// The rows of the tables that a query reads.
pub(super) struct Rows {
    constants: Constants,
    calendar: Calendar,
    rng: Rng,
    /// The rows of each channel's sales, by the first letter of their columns: returns are of these.
    sales: BTreeMap<char, Vec<Row>>,
}

impl Rows {
    pub(super) fn new(constants: Constants, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let calendar = Calendar::new(&constants, &mut rng);
        Self { constants, calendar, rng, sales: BTreeMap::new() }
    }

    /// The rows of a table.
    pub(super) fn table(&mut self, table: &str, schema: &SchemaRef) -> RecordBatch {
        let rows = match table {
            "date_dim" => self.days(schema),
            "store_sales" | "catalog_sales" | "web_sales" | "inventory" => self.sales(schema),
            "store_returns" | "catalog_returns" | "web_returns" => self.returns(schema),
            "item" => self.keyed(schema, ITEMS),
            _ => self.keyed(schema, KEYS),
        };
        batch(schema, &rows)
    }

    fn days(&self, schema: &SchemaRef) -> Vec<Row> {
        let row = |row| {
            let columns = schema.fields().iter().map(|field| field.name());
            columns.map(|name| (name.clone(), Some(self.calendar.value(name, row)))).collect()
        };
        (0..self.calendar.len()).map(row).collect()
    }

    /// Rows whose first columns have the numbers from 1.
    fn keyed(&mut self, schema: &SchemaRef, rows: usize) -> Vec<Row> {
        let key = schema.field(0).name();
        (1..=rows)
            .map(|number| {
                let mut row = self.row(schema);
                row.insert(key.clone(), Some(number.to_string()));
                row
            })
            .collect()
    }

    /// Rows of sales and of inventory, no two of them with the same keys.
    fn sales(&mut self, schema: &SchemaRef) -> Vec<Row> {
        let mut keys = BTreeSet::new();
        let mut rows: Vec<Row> = (0..SALES).map(|_| self.row(schema)).collect();
        rows.retain(|row| keys.insert(key(row)));
        share_buyers(&mut rows);
        if let Some(letter) = schema.field(0).name().chars().next() {
            self.sales.insert(letter, rows.clone());
        }
        rows
    }

    /// Rows of returns. Most of them are of a row of the sales, if the query reads these.
    fn returns(&mut self, schema: &SchemaRef) -> Vec<Row> {
        let letter = schema.field(0).name().chars().next().unwrap_or_default();
        let mut sales = self.sales.get(&letter).cloned().unwrap_or_default();
        self.rng.shuffle(&mut sales);
        let mut keys = BTreeSet::new();
        let mut rows = Vec::new();
        for _ in 0..RETURNS {
            let mut row = self.row(schema);
            let sale = if self.rng.u8(..8) > 0 { sales.pop() } else { None };
            for (column, value) in sale.into_iter().flatten() {
                // After the prefix, columns of sales and of returns that mean the same end in the same way.
                let what = column.split_once('_').map_or("", |(_, what)| what);
                let what = what.strip_prefix("bill").unwrap_or(what);
                let is_key = what.ends_with("_sk") || what.ends_with("_number");
                if is_key && !what.ends_with("date_sk") && !what.ends_with("time_sk") {
                    let same = |(name, _): &(&String, _)| {
                        name.ends_with(&format!("_{}", what.trim_start_matches('_')))
                    };
                    row.iter_mut().filter(same).for_each(|(_, kept)| *kept = value.clone());
                }
            }
            if keys.insert(key(&row)) {
                rows.push(row);
            }
        }
        rows
    }

    fn row(&mut self, schema: &SchemaRef) -> Row {
        let columns = schema.fields().iter();
        columns
            .map(|field| {
                let value = match field.is_nullable() && self.rng.u8(..20) == 0 {
                    true => None,
                    false => Some(self.value(field.name(), field.data_type())),
                };
                (field.name().clone(), value)
            })
            .collect()
    }

    fn value(&mut self, column: &str, data_type: &DataType) -> String {
        let rng = &mut self.rng;
        let constant = choose(self.constants.of_column(column), rng).filter(|_| rng.u8(..5) > 0);
        match data_type {
            DataType::Date32 => self.calendar.day(rng),
            _ if column.ends_with("_item_sk") => rng.usize(1..=ITEMS).to_string(),
            _ if column.ends_with("date_sk") => self.calendar.key(rng),
            _ if column.ends_with("_sk") => rng.usize(1..=KEYS).to_string(),
            DataType::Int64 => {
                // Small numbers are the most frequent.
                let share = rng.f64();
                ((share * share * TICKETS as f64) as usize).to_string()
            }
            DataType::Int32 | DataType::Decimal128(..) => {
                let is_whole = *data_type == DataType::Int32;
                match constant.and_then(|constant| constant.parse::<f64>().ok()) {
                    Some(number) if number.abs() < 10_000.0 || is_whole => {
                        let near = if rng.u8(..4) == 0 { f64::from(rng.i8(-1..=1)) } else { 0.0 };
                        (number + near).to_string()
                    }
                    _ if is_whole => rng.u8(1..=20).to_string(),
                    _ if column.ends_with("offset") => rng.i8(-8..=-5).to_string(),
                    _ => {
                        let sign =
                            if column.contains("profit") && rng.u8(..3) == 0 { "-" } else { "" };
                        format!("{sign}{}.{:02}", rng.u8(..200), rng.u8(..100))
                    }
                }
            }
            _ => match constant {
                Some(constant) => constant.clone(),
                None if column.ends_with("_id") => format!("id{:014}", rng.usize(..KEYS / 2)),
                None => ["Amber", "Birch", "Cedar"][rng.usize(..3)].to_owned(),
            },
        }
    }
}

/// Gives the rows of a ticket, or of an order, one buyer, one time and one place.
fn share_buyers(rows: &mut [Row]) {
    let ends = [
        "_customer_sk",
        "_cdemo_sk",
        "_hdemo_sk",
        "_addr_sk",
        "_sold_date_sk",
        "_sold_time_sk",
        "_store_sk",
    ];
    let mut firsts: BTreeMap<String, Row> = BTreeMap::new();
    for row in rows {
        let is_ticket = |name: &&String| name.ends_with("_number");
        let Some(ticket) = row.keys().find(is_ticket).and_then(|name| row[name].clone()) else {
            return;
        };
        let first = firsts.entry(ticket).or_insert_with(|| row.clone());
        for (name, value) in row.iter_mut() {
            if ends.iter().any(|end| name.ends_with(end)) {
                value.clone_from(&first[name]);
            }
        }
    }
}

/// The values of a row by which it is unique.
fn key(row: &Row) -> Vec<String> {
    let ends = ["_order_number", "_ticket_number", "_item_sk", "inv_date_sk", "inv_warehouse_sk"];
    let is_key = |name: &&String| ends.iter().any(|end| name.ends_with(end));
    let columns = row.keys().filter(is_key);
    columns.filter_map(|name| row[name].clone()).collect()
}

fn batch(schema: &SchemaRef, rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| {
            let values = rows.iter().map(|row| row.get(field.name()).cloned().flatten());
            let texts: ArrayRef = Arc::new(values.collect::<StringArray>());
            cast(&texts, field.data_type()).expect("text can be cast to every type of the tables")
        })
        .collect();
    RecordBatch::try_new(schema.clone(), columns).expect("each column has its type")
}

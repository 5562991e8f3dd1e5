//! Fingerprints: the meaning of state, as a number that is the same in every process.
//!
//! The fingerprint of a plan is a hash of a canonical encoding of its topmost node, its output columns and
//! properties, and the fingerprints of its inputs. Equal fingerprints mean equal rows, so equal plans are found by
//! a look-up instead of by comparing with all others. A scan of a materialized view has the fingerprint of the view in
//! it, so a view that changes its meaning changes that of its readers. A table stands for itself, by name and columns.
//!
//! The encoding has no pointers, no hash map orders and no debug output. Expressions are encoded as their SQL, with
//! the type of every part.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use alluvium_dataflow::reductions::window::Argument;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::array_value_to_string;
use arrow_row::{RowConverter, SortField};
use datafusion_common::ScalarValue;
use datafusion_physical_expr::expressions::Literal;
use xxhash_rust::xxh3::xxh3_128;

use super::IncrementalPlan;
use super::expression::{self, Expression};
use super::names::Sql;

/// Changes whenever the meaning of stored bytes changes although plans stay the same.
const FORMAT: u64 = 1;

/// A hash of the meaning of rows or state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Fingerprint {
    /// The first eight digits, for people.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 >> 96)
    }
}

impl IncrementalPlan {
    /// The fingerprint of the plan's rows. Plans have the same rows before and after [sharing](Self::share).
    pub fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| {
            let inputs = self.inputs().into_iter().map(IncrementalPlan::fingerprint);
            self.encoded(Canonical::new("plan"), inputs.collect())
        })
    }

    /// The fingerprint of the plan's rows once relations have their other names.
    pub fn fingerprint_with(&self, renamed: &Rc<Renamed>) -> Fingerprint {
        let now = self.fingerprint();
        renamed.known(now).unwrap_or_else(|| {
            let inputs = self.inputs().into_iter().map(|input| input.fingerprint_with(renamed));
            let inputs = inputs.collect();
            let then = self.encoded(Canonical::new("plan").with(renamed), inputs);
            renamed.fingerprints.borrow_mut().insert(now, then);
            then
        })
    }

    /// The fingerprint of a plan with inputs of these.
    fn encoded(&self, mut canonical: Canonical, inputs: Vec<Fingerprint>) -> Fingerprint {
        let node = self.node.as_node();
        if let Some(index) = node.index() {
            return index.rows;
        }
        node.encode(&mut canonical);
        canonical.schema(&self.schema);
        canonical.number(self.properties.unique.len());
        self.properties.unique.iter().for_each(|key| canonical.columns(key));
        canonical.flag(self.properties.append_only);
        canonical.number(inputs.len());
        inputs.into_iter().for_each(|input| canonical.fingerprint(input));
        canonical.finish()
    }
}

/// Relations that get other names.
///
/// A plan that reads them makes the same rows under those names, with another [fingerprint](IncrementalPlan::fingerprint_with).
#[derive(Debug)]
pub struct Renamed {
    names: BTreeMap<String, String>,
    /// The fingerprints of plans then, by those that they have now.
    fingerprints: RefCell<HashMap<Fingerprint, Fingerprint>>,
}

impl Renamed {
    /// Relations, each with the name that it has then.
    pub fn new(names: impl IntoIterator<Item = (String, String)>) -> Rc<Self> {
        Rc::new(Self { names: names.into_iter().collect(), fingerprints: RefCell::default() })
    }

    fn name<'a>(&'a self, relation: &'a str) -> &'a str {
        self.names.get(relation).map_or(relation, String::as_str)
    }

    /// The fingerprint that a plan has then, if it has been asked for.
    fn known(&self, now: Fingerprint) -> Option<Fingerprint> {
        self.fingerprints.borrow().get(&now).copied()
    }
}

/// The canonical encoding of a plan node or of state.
///
/// Texts and lists have their length in front, so that different sequences have different encodings.
pub(crate) struct Canonical {
    bytes: Vec<u8>,
    /// Relations that are encoded by other names.
    renamed: Option<Rc<Renamed>>,
}

impl Canonical {
    /// The encoding of a thing of this kind.
    pub(crate) fn new(kind: &str) -> Self {
        let mut canonical = Self { bytes: FORMAT.to_le_bytes().to_vec(), renamed: None };
        canonical.text(kind);
        canonical
    }

    /// The same, in which relations have other names.
    fn with(self, renamed: &Rc<Renamed>) -> Self {
        Self { renamed: Some(renamed.clone()), ..self }
    }

    pub(crate) fn finish(self) -> Fingerprint {
        Fingerprint(xxh3_128(&self.bytes))
    }

    pub(crate) fn number(&mut self, number: usize) {
        self.bytes.extend((number as u64).to_le_bytes());
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.bytes.push(flag.into());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.bytes.extend(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn fingerprint(&mut self, fingerprint: Fingerprint) {
        self.bytes.extend(fingerprint.0.to_le_bytes());
    }

    /// The name of a relation.
    pub(crate) fn relation(&mut self, name: &str) {
        match self.renamed.clone() {
            Some(renamed) => self.text(renamed.name(name)),
            None => self.text(name),
        }
    }

    /// The fingerprint of a plan that is no input.
    pub(crate) fn other_plan(&mut self, fingerprint: Fingerprint) {
        let renamed = self.renamed.as_ref().and_then(|renamed| renamed.known(fingerprint));
        self.fingerprint(renamed.unwrap_or(fingerprint));
    }

    pub(crate) fn columns(&mut self, columns: &[usize]) {
        self.number(columns.len());
        columns.iter().for_each(|&column| self.number(column));
    }

    pub(crate) fn optional(&mut self, column: Option<usize>) {
        self.columns(column.as_slice());
    }

    /// The pairs of columns of a join, whose order means nothing.
    pub(crate) fn pairs(&mut self, pairs: &[(usize, usize)]) {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        self.number(pairs.len());
        pairs.iter().for_each(|&(left, right)| self.columns(&[left, right]));
    }

    pub(crate) fn order(&mut self, order: &[(usize, SortOptions)]) {
        self.number(order.len());
        for &(column, options) in order {
            self.number(column);
            self.flag(options.descending);
            self.flag(options.nulls_first);
        }
    }

    pub(crate) fn data_type(&mut self, data_type: &DataType) {
        self.text(&data_type.to_string());
    }

    pub(crate) fn schema(&mut self, schema: &Schema) {
        self.number(schema.fields().len());
        for field in schema.fields() {
            self.text(field.name());
            self.data_type(field.data_type());
            self.flag(field.is_nullable());
        }
    }

    pub(crate) fn arguments(&mut self, arguments: &[Argument]) {
        self.number(arguments.len());
        for argument in arguments {
            self.optional(argument.column());
            if let Argument::Constant(value) = argument {
                self.scalar(value);
            }
        }
    }

    /// An expression over rows of `schema`.
    pub(crate) fn expression(&mut self, expression: &Expression, schema: &Schema) {
        if let Some(column) = expression::as_column(expression) {
            self.text("column");
            self.number(column);
        } else if let Some(literal) = expression.downcast_ref::<Literal>() {
            self.text("literal");
            self.scalar(literal.value());
        } else {
            self.text("expression");
            self.text(&Sql(expression).to_string());
        }
        match expression.data_type(schema) {
            Ok(data_type) => self.data_type(&data_type),
            Err(_) => self.text("no type"),
        }
        let parts = expression.children();
        self.number(parts.len());
        parts.into_iter().for_each(|part| self.expression(part, schema));
    }

    pub(crate) fn scalar(&mut self, value: &ScalarValue) {
        self.data_type(&value.data_type());
        match value.to_array() {
            Ok(array) => self.values(&[array]),
            Err(_) => self.text(&value.to_string()),
        }
    }

    pub(crate) fn rows(&mut self, rows: &RecordBatch) {
        self.schema(rows.schema_ref());
        self.number(rows.num_rows());
        self.values(rows.columns());
    }

    /// The values of columns, row by row.
    fn values(&mut self, columns: &[ArrayRef]) {
        let types = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        let rows = RowConverter::new(types.collect())
            .and_then(|converter| converter.convert_columns(columns));
        match rows {
            Ok(rows) => rows.iter().for_each(|row| self.bytes(row.as_ref())),
            // A type that has no order.
            Err(_) => columns.iter().for_each(|column| self.texts(column)),
        }
    }

    fn texts(&mut self, column: &ArrayRef) {
        for row in 0..column.len() {
            self.flag(column.is_null(row));
            self.text(&array_value_to_string(column, row).unwrap_or_default());
        }
    }
}

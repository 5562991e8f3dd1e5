//! Types that only columns of `pg_catalog` have: `oid`, `int2vector` and `oidvector`.
//!
//! An OID is a `UINTEGER` of the engine. Columns of users that are `UINTEGER` are sent as `bigint`, so a query says whether its columns are
//! those of the catalog: [`with_catalog_types`] notes their types in the metadata of their fields.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::pg_type::item;
use crate::catalog::{OF_CATALOG, VECTOR};

/// The value of [`OF_CATALOG`] for OIDs and arrays of them.
const OID: &str = "oid";

/// How a column is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By its Arrow type alone.
    Plain,
    /// As OIDs, or arrays of them.
    Oid,
    /// As a vector: an array whose first index is zero, and whose text has blanks between the elements.
    Vector,
}

impl Kind {
    /// The kind of a column.
    pub(super) fn of(field: &Field) -> Self {
        match field.metadata().get(OF_CATALOG).map(String::as_str) {
            Some(VECTOR) if item(field.data_type()).is_some() => Self::Vector,
            Some(OID) if is_of_oids(field.data_type()) => Self::Oid,
            _ => Self::Plain,
        }
    }

    /// The kinds of the columns of a schema.
    pub(super) fn all(schema: &Schema) -> Vec<Self> {
        schema.fields().iter().map(|field| Self::of(field)).collect()
    }
}

/// Whether values of a type, or the elements of its lists, are OIDs in a query of the catalog.
pub(super) fn is_of_oids(data_type: &DataType) -> bool {
    let mut leaf = data_type;
    while let Some(item) = item(leaf) {
        leaf = item.data_type();
    }
    *leaf == DataType::UInt32
}

/// The columns of a query that reads the catalog, or calls its functions, with the types that Postgres has for them.
pub(crate) fn with_catalog_types(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        if !is_of_oids(field.data_type()) || field.metadata().contains_key(OF_CATALOG) {
            return Arc::clone(field);
        }
        let mut metadata = field.metadata().clone();
        metadata.insert(OF_CATALOG.to_owned(), OID.to_owned());
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

//! Values of parameters.

use std::error::Error as StdError;

use arrow::array::{Array, ArrayRef, RecordBatch};
use bytes::{Buf, Bytes, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::kind::Kind;
use super::writer::plain;
use super::written::Written;
use crate::error::Result;

/// A value of a parameter with a type of its own, from an array of Arrow: [`Client::query_typed`](crate::Client::query_typed) takes them.
///
/// The server casts it to the type that its place has.
#[derive(Clone, Debug)]
pub struct Parameter {
    of: Type,
    /// `None` is NULL.
    bytes: Option<Bytes>,
}

impl Parameter {
    /// NULL, of the type that its place has.
    pub fn null() -> Self {
        Self { of: Type::UNKNOWN, bytes: None }
    }

    /// The value of a row of an array.
    ///
    /// # Errors
    ///
    /// If values of the array's type cannot be sent, as those of structs, or this value cannot.
    ///
    /// # Panics
    ///
    /// If the array has no such row.
    pub fn of(array: &ArrayRef, row: usize) -> Result<Self> {
        let mut values = Self::column(&array.slice(row, 1))?;
        Ok(values.pop().unwrap_or_else(Self::null))
    }

    /// The values of each row of a batch.
    ///
    /// # Errors
    ///
    /// As of [`of`](Self::of).
    pub fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Self>>> {
        let columns = batch.columns().iter().map(Self::column).collect::<Result<Vec<_>>>()?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        let row = |_| columns.iter_mut().filter_map(Iterator::next).collect();
        Ok((0..batch.num_rows()).map(row).collect())
    }

    fn column(array: &ArrayRef) -> Result<Vec<Self>> {
        let kind = Kind::of_data_type(array.data_type())?;
        let of = kind.of_postgres();
        let array = plain(array, kind)?;
        let written = Written::of(&array, kind);
        let mut out = BytesMut::new();
        let value = |row| {
            if array.is_null(row) {
                return Ok(Self { of: of.clone(), bytes: None });
            }
            written.put_field(row, &mut out)?;
            // Its length comes first.
            out.advance(4);
            Ok(Self { of: of.clone(), bytes: Some(out.split().freeze()) })
        };
        (0..array.len()).map(value).collect()
    }

    /// The types that the first rows have, and how many of them have these. NULL has any type.
    pub(crate) fn types_of(rows: &[Vec<Self>]) -> (Vec<Type>, usize) {
        let mut types: Vec<Type> = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            types.resize(row.len().max(types.len()), Type::UNKNOWN);
            let mut pairs = types.iter().zip(row);
            let fits = |(of, value): (&Type, &Self)| {
                *of == Type::UNKNOWN || value.bytes.is_none() || *of == value.of
            };
            if number > 0 && (types.len() != row.len() || !pairs.all(fits)) {
                return (types, number);
            }
            for (of, value) in types.iter_mut().zip(row).filter(|(of, _)| **of == Type::UNKNOWN) {
                *of = value.of.clone();
            }
        }
        (types, rows.len())
    }

    /// Its type.
    pub(crate) fn of_postgres(&self) -> &Type {
        &self.of
    }
}

impl ToSql for Parameter {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match &self.bytes {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        // The server is told which type it has.
        true
    }

    to_sql_checked!();
}

//! Rows of an engine by key.

use std::ops::Bound;
use std::sync::Arc;

use alluvium::Value;
use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;

use crate::backend::{Rows, View};
use crate::failure::{Failure, Fallible};

impl View for alluvium::View {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn schema(&self) -> &SchemaRef {
        Self::schema(self)
    }

    fn key(&self) -> &[usize] {
        Self::key(self)
    }

    fn get(&self, key: &[Value]) -> Fallible<RecordBatch> {
        Ok(Self::get(self, key)?)
    }

    fn range(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Fallible<(SchemaRef, Rows)> {
        let rows = Self::range(self, low, high)?;
        let schema = rows.schema().clone();
        Ok((schema, Box::new(rows.map(|batch| batch.map_err(Failure::from)))))
    }

    fn stale(&self) -> Fallible<Arc<dyn View>> {
        Ok(Arc::new(Self::stale(self)))
    }
}

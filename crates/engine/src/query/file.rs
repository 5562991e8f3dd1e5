//! Files as DataFusion reads them: `SELECT … FROM 'x.csv'`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use alluvium_dataflow::rows::codec::one_nan;
use alluvium_sql::catalog::{self as sql, Relation};
use alluvium_sql::planner::SqlFunctions;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::{LazyBatchGenerator, LazyMemoryExec};
use parking_lot::{Mutex, RwLock};

use crate::catalog::{Entries, Scope};
use crate::error::Error;
use crate::settings::Settings;
use crate::source::{Inferred, InputReader, Registry, Source, SourceRequest};
use crate::writer::complete_with_nulls;

/// The relations and files that a statement may name.
pub(crate) struct FileScope<'a> {
    pub(crate) entries: &'a Entries,
    pub(crate) files: &'a Files,
}

impl sql::Catalog for FileScope<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        match self.files.get(name) {
            Some(file) => Some(Relation::System { schema: file.request.schema.clone() }),
            None => Scope(self.entries).relation(name),
        }
    }

    fn names(&self) -> Vec<String> {
        Scope(self.entries).names()
    }

    fn functions(&self) -> &SqlFunctions {
        &self.entries.functions
    }

    fn outside(&self) -> Vec<(String, SchemaRef)> {
        let files = self.files.iter();
        files.map(|(name, file)| (name.clone(), file.request.schema.clone())).collect()
    }
}

/// A file that a query reads; every scan of it opens it again.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) request: SourceRequest,
}

impl File {
    /// A file of the columns that were found in it. Any column may be NULL.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        path: PathBuf,
        schema: SchemaRef,
        inferred: Inferred,
        settings: &Settings,
    ) -> Self {
        let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut request = SourceRequest::new(path, schema);
        request.options = inferred.options;
        (request.batch_rows, request.batch_bytes) = (settings.batch_rows, settings.batch_bytes);
        Self { source, request }
    }
}

/// The files that a query reads, by their names in it.
pub(crate) type Files = BTreeMap<String, File>;

/// A file, as a table.
pub(super) struct FileTable {
    pub(super) file: File,
    pub(super) formats: Arc<Registry>,
}

impl fmt::Debug for FileTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FileTable")
            .field("path", &self.file.request.path)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        self.file.request.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (file, formats) = (self.file.clone(), self.formats.clone());
        let schema = file.request.schema.clone();
        let rows = FileRows { file, formats, reader: Mutex::new(None) };
        let plan = LazyMemoryExec::try_new(schema, vec![Arc::new(RwLock::new(rows))])?;
        Ok(Arc::new(plan.with_projection(projection.cloned())))
    }
}

/// The rows of a file, portion by portion.
struct FileRows {
    file: File,
    formats: Arc<Registry>,
    /// Opened when the first row is asked for.
    reader: Mutex<Option<InputReader>>,
}

impl fmt::Debug for FileRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FileRows({})", self.file.request.path.display())
    }
}

impl fmt::Display for FileRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file.request.path.display())
    }
}

impl LazyBatchGenerator for FileRows {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn generate_next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let external = |error: Error| DataFusionError::External(Box::new(error));
        let reader = self.reader.get_mut();
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let File { source, request } = &self.file;
                reader.insert(self.formats.open(&**source, request).map_err(external)?)
            }
        };
        let Some(portion) = reader.next().map_err(external)? else { return Ok(None) };
        match portion.refused.first() {
            // No table counts it.
            Some(refusal) => Err(external(Error::source(refusal.to_string()))),
            None => {
                let schema = &self.file.request.schema;
                let columns = complete_with_nulls(schema, &portion.rows, &portion.absent);
                let columns = columns.map_err(external)?;
                let columns = columns.iter().map(one_nan).collect::<std::result::Result<_, _>>()?;
                Ok(Some(RecordBatch::try_new(schema.clone(), columns)?))
            }
        }
    }

    fn reset_state(&self) -> Arc<RwLock<dyn LazyBatchGenerator>> {
        let reader = Mutex::new(None);
        let (file, formats) = (self.file.clone(), self.formats.clone());
        Arc::new(RwLock::new(Self { file, formats, reader }))
    }
}

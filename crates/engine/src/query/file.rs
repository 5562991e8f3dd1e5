//! Files as DataFusion reads them: `SELECT … FROM 'x.csv'`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use alluvium_dataflow::rows::codec::one_nan;
use alluvium_sql::catalog::{self as sql, Relation};
use alluvium_sql::planner::SqlFunctions;
use arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::memory::{LazyBatchGenerator, LazyMemoryExec};
use parking_lot::{Mutex, RwLock};

use crate::catalog::{Entries, Scope};
use crate::error::Error;
use crate::settings::Settings;
use crate::source::{Inferred, InputReader, Registry, Source, SourceFiles, SourceRequest};
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
    /// Of the first of the paths.
    pub(crate) request: SourceRequest,
    /// What is read one after the other.
    pub(crate) paths: Vec<PathBuf>,
    /// The columns that have one value in all rows of a file.
    shared: Vec<String>,
    /// Whether rows that cannot be read are passed over.
    pub(crate) ignores_errors: bool,
}

impl File {
    /// A file of the columns that were found in it. Any column may be NULL.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        paths: Vec<PathBuf>,
        schema: SchemaRef,
        inferred: Inferred,
        settings: &Settings,
    ) -> Self {
        let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let path = paths.first().cloned().unwrap_or_default();
        let shared = inferred.shared.iter().map(|&column| schema.field(column).name().clone());
        let shared = shared.collect();
        let mut request = SourceRequest::new(path, schema);
        request.options = inferred.options;
        (request.batch_rows, request.batch_bytes) = (settings.batch_rows, settings.batch_bytes);
        request.threads = settings.workers;
        Self { source, request, paths, shared, ignores_errors: false }
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

    /// Filters on columns that all rows of a file share are seen, and evaluated again above the scan.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let is_shared = |filter: &Expr| {
            let columns = filter.column_refs();
            !columns.is_empty()
                && columns.iter().all(|column| self.file.shared.contains(&column.name))
        };
        let support = |filter: &&Expr| match is_shared(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (mut file, formats) = (self.file.clone(), self.formats.clone());
        if !filters.is_empty() {
            let found = formats.files(&*file.source, &file.paths, &file.request);
            if let Some(found) = found.map_err(external)? {
                file.paths = wanted(session, found, filters)?;
            }
        }
        let mut projection = projection.cloned();
        if file.source.finds_by_name()
            && let Some(columns) = projection.take()
        {
            let request = &mut file.request;
            request.schema = Arc::new(request.schema.project(&columns)?);
            request.has_default =
                columns.iter().map(|&column| request.has_default[column]).collect();
        }
        let schema = file.request.schema.clone();
        let rows = FileRows { file, formats, reader: Mutex::new(None), opened: 0 };
        let plan = LazyMemoryExec::try_new(schema, vec![Arc::new(RwLock::new(rows))])?;
        Ok(Arc::new(plan.with_projection(projection)))
    }
}

/// The files that filters do not rule out.
fn wanted(session: &dyn Session, found: SourceFiles, filters: &[Expr]) -> Result<Vec<PathBuf>> {
    let SourceFiles { mut paths, shared } = found;
    let schema = DFSchema::try_from(shared.schema())?;
    let mut are_kept = vec![true; paths.len()];
    for filter in filters {
        let filter = session.create_physical_expr(filter.clone(), &schema)?;
        let evaluated =
            filter.evaluate(&shared).and_then(|kept| kept.into_array(shared.num_rows()));
        // An error is that of the rows.
        let Ok(kept) = evaluated else { continue };
        let Some(kept) = kept.as_boolean_opt() else { continue };
        are_kept.iter_mut().zip(kept).for_each(|(is_kept, kept)| *is_kept &= kept == Some(true));
    }
    let mut are_kept = are_kept.into_iter();
    paths.retain(|_| are_kept.next() != Some(false));
    Ok(paths)
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The rows of a file, portion by portion.
struct FileRows {
    file: File,
    formats: Arc<Registry>,
    /// Opened when the first row is asked for.
    reader: Mutex<Option<InputReader>>,
    /// How many of the paths were opened.
    opened: usize,
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
        let reader = self.reader.get_mut();
        let portion = loop {
            if reader.is_none() {
                let File { source, request, paths, .. } = &self.file;
                let Some(path) = paths.get(self.opened) else { return Ok(None) };
                let request = SourceRequest { path: path.clone(), ..request.clone() };
                *reader = Some(self.formats.open(&**source, &request).map_err(external)?);
                self.opened += 1;
            }
            match reader.as_mut().map(InputReader::next).transpose().map_err(external)?.flatten() {
                Some(portion) => break portion,
                None => *reader = None,
            }
        };
        match portion.refused.first().filter(|_| !self.file.ignores_errors) {
            // No table counts it.
            Some(refusal) => Err(external(Error::source(refusal.to_string()))),
            None => {
                let schema = &self.file.request.schema;
                let columns = complete_with_nulls(schema, &portion.rows, &portion.absent);
                let columns = columns.map_err(external)?;
                let columns = columns.iter().map(one_nan).collect::<std::result::Result<_, _>>()?;
                // There may be no columns.
                let count = RecordBatchOptions::new().with_row_count(Some(portion.rows.num_rows()));
                Ok(Some(RecordBatch::try_new_with_options(schema.clone(), columns, &count)?))
            }
        }
    }

    fn reset_state(&self) -> Arc<RwLock<dyn LazyBatchGenerator>> {
        let reader = Mutex::new(None);
        let (file, formats) = (self.file.clone(), self.formats.clone());
        Arc::new(RwLock::new(Self { file, formats, reader, opened: 0 }))
    }
}

//! Statements that clients prepare, and the portals that run them.

use std::sync::Arc;

use alluvium::unstable::{StatementKind, StatementTree, columns_of_changes, prepared_tree, tree};
use alluvium::{Prepared, SqlState, Value};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use bytes::Bytes;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::Bind;

use super::arrow_statement;
use super::copy::Copy;
use super::deallocation::Deallocation;
use super::failure::Failure;
use super::listening::Listen;
use super::results::{Formats, Results, description, format_of};
use super::types::{self, Format, PgType, with_catalog_types};

/// A text as it was prepared. The default is that of an empty one.
#[derive(Default)]
pub(super) struct Preparation {
    /// The statement as the engine has prepared it; `None` of an empty text, and of one that takes and gives Arrow.
    pub(super) prepared: Option<Prepared>,
    /// The statement, if it takes and gives [Arrow](arrow_statement).
    pub(super) arrow: Option<alluvium::Statement>,
    /// The COPY that it is, if the client sends or takes its rows.
    pub(super) copy: Option<Copy>,
    /// The prepared statements that it removes, if it does.
    pub(super) deallocation: Option<Deallocation>,
    /// What it asks for, if it is LISTEN or UNLISTEN.
    pub(super) listen: Option<Listen>,
    /// Whether it is a query that reads the catalog, or calls its functions.
    pub(super) is_of_catalog: bool,
}

/// A statement that a client has prepared.
pub(super) struct Statement {
    /// Its text, as the client has sent it: errors have their positions in it.
    pub(super) sql: Arc<str>,
    preparation: Preparation,
    /// The types of its parameters that the client has given; zero is none.
    oids: Vec<u32>,
    columns: Option<SchemaRef>,
}

impl Statement {
    pub(super) fn new(sql: Arc<str>, preparation: Preparation, oids: Vec<u32>) -> Self {
        let columns = preparation.prepared.as_ref().and_then(|prepared| {
            let columns = prepared.description().columns.as_ref()?;
            Some(match &prepared_tree(prepared).kind {
                StatementKind::Subscribe(changes) => {
                    columns_of_changes(columns, changes.has_progress)
                }
                _ if preparation.is_of_catalog => with_catalog_types(columns),
                _ => columns.clone(),
            })
        });
        Self { sql, preparation, oids, columns }
    }

    /// Whether it reads or changes rows, and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.command(), "SELECT" | "INSERT" | "UPDATE" | "DELETE")
    }

    /// Whether the text has no statement.
    pub(super) fn is_empty(&self) -> bool {
        self.tree().is_none()
    }

    /// Whether it takes and gives [Arrow](arrow_statement).
    pub(super) fn is_arrow(&self) -> bool {
        self.oids == [arrow_statement::PARAMETERS]
    }

    /// The parsed statement; `None` of an empty text.
    pub(super) fn tree(&self) -> Option<&StatementTree> {
        let Preparation { prepared, arrow, .. } = &self.preparation;
        prepared.as_ref().map(prepared_tree).or_else(|| arrow.as_ref().map(tree))
    }

    /// What the engine has prepared, if it has.
    pub(super) fn prepared(&self) -> Option<&Prepared> {
        self.preparation.prepared.as_ref()
    }

    /// The COPY that it is, if the client sends or takes its rows.
    pub(super) fn copy(&self) -> Option<&Copy> {
        self.preparation.copy.as_ref()
    }

    /// The prepared statements that it removes, if it does.
    pub(super) fn deallocation(&self) -> Option<&Deallocation> {
        self.preparation.deallocation.as_ref()
    }

    /// What it asks for, if it is LISTEN or UNLISTEN.
    pub(super) fn listen(&self) -> Option<&Listen> {
        self.preparation.listen.as_ref()
    }

    /// Fails if it has other columns by now than when it was described.
    pub(super) fn check_columns(&self, now: &Schema) -> Result<(), Failure> {
        if self.is_arrow() || self.columns().is_some_and(|columns| **columns == *now) {
            return Ok(());
        }
        let message = "cached plan must not change result type: since the statement was prepared its columns have changed, prepare it again";
        Err(Failure::new(SqlState::NOT_SUPPORTED.as_str(), message))
    }

    /// Whether it is a query that reads the catalog, or calls its functions.
    pub(super) fn is_of_catalog(&self) -> bool {
        self.preparation.is_of_catalog
    }

    /// Its command; empty of an empty text.
    pub(super) fn command(&self) -> &'static str {
        let of_arrow = || self.preparation.arrow.as_ref().map(alluvium::Statement::command);
        self.prepared().map(Prepared::command).or_else(of_arrow).unwrap_or_default()
    }

    /// The columns of its rows, if it has any.
    pub(super) fn columns(&self) -> Option<&SchemaRef> {
        self.columns.as_ref()
    }

    /// The types of its parameters as the engine has found them.
    fn parameters(&self) -> &[Option<DataType>] {
        self.prepared().map_or(&[], |prepared| &prepared.description().parameters)
    }

    /// The type of a parameter, by which its value is read: the client's, if it has given one.
    fn oid(&self, parameter: usize) -> u32 {
        let given = self.oids.get(parameter).copied().filter(|oid| *oid != 0);
        let of = if self.is_of_catalog() { PgType::of_catalog } else { PgType::of };
        let found = || self.parameters().get(parameter)?.as_ref().map(|found| of(found).oid());
        given.or_else(found).unwrap_or(types::TEXT)
    }

    /// The message that describes its parameters.
    pub(super) fn parameter_description(&self) -> Answer {
        let oids = match self.is_arrow() {
            true => vec![types::BYTEA],
            false => (0..self.parameters().len()).map(|parameter| self.oid(parameter)).collect(),
        };
        Answer::ParameterDescription(ParameterDescription::new(oids))
    }

    /// The message that describes its rows in these formats.
    pub(super) fn row_description(&self, formats: &Formats) -> Answer {
        match self.columns() {
            _ if self.is_arrow() => {
                description(&arrow_statement::described(), &Formats::Fields(vec![Format::Binary]))
            }
            Some(columns) => description(columns, formats),
            None => Answer::NoData(NoData::new()),
        }
    }

    /// The values that a message binds to its parameters.
    fn values(&self, bind: &Bind) -> Result<Vec<Value>, Failure> {
        let (wanted, given) = (self.parameters().len(), bind.parameters.len());
        if wanted != given {
            let message =
                format!("the statement has {wanted} parameters, and {given} values were given");
            return Err(Failure::new("08P01", message));
        }
        let formats = formats(&bind.parameter_format_codes, given, "parameters")?;
        let pairs = bind.parameters.iter().zip(self.parameters()).enumerate();
        let value = |(place, (bytes, found)): (usize, (&Option<Bytes>, &Option<DataType>))| {
            let Some(bytes) = bytes else { return Ok(Value::NULL) };
            let format = format_of(&formats, place);
            types::decode(self.oid(place), found.as_ref(), format, bytes).map_err(|error| {
                Failure::from(error).about(&format!("the parameter ${}", place + 1))
            })
        };
        pairs.map(value).collect()
    }
}

/// A statement with the values of its parameters, and its rows while it runs.
pub(super) struct Portal {
    pub(super) statement: Arc<Statement>,
    pub(super) values: Bound,
    pub(super) formats: Formats,
    pub(super) state: State,
}

/// The values of a statement's parameters.
pub(super) enum Bound {
    /// One for each parameter.
    Values(Vec<Value>),
    /// Those of a statement that takes [Arrow](arrow_statement), as they came.
    Arrow(Option<Bytes>),
}

/// How far a portal has run.
pub(super) enum State {
    /// It has not run.
    Bound,
    /// It has rows left.
    Open(Box<Results>),
    /// It has run to its end.
    Over,
}

impl Portal {
    /// A portal of a statement, as a message binds it.
    pub(super) fn new(statement: Arc<Statement>, bind: &Bind) -> Result<Self, Failure> {
        if statement.is_arrow() {
            let [parameters] = &bind.parameters[..] else {
                let message = "a statement that takes Arrow is bound to one parameter";
                return Err(Failure::new("08P01", message));
            };
            let (values, formats) = (Bound::Arrow(parameters.clone()), Formats::Arrow);
            return Ok(Self { statement, values, formats, state: State::Bound });
        }
        let values = Bound::Values(statement.values(bind)?);
        let columns = statement.columns().map_or(0, |columns| columns.fields().len());
        let formats = formats(&bind.result_column_format_codes, columns, "columns")?;
        let formats = Formats::Fields(formats);
        Ok(Self { statement, values, formats, state: State::Bound })
    }
}

/// The formats of parameters or columns: none, one for all, or one for each.
fn formats(codes: &[i16], count: usize, of: &str) -> Result<Vec<Format>, Failure> {
    if codes.len() > 1 && codes.len() != count {
        let given = codes.len();
        let message = format!("{given} formats were given for {count} {of}");
        return Err(Failure::new("08P01", message));
    }
    let format = |code: &i16| {
        Format::of_code(*code).ok_or_else(|| {
            Failure::new("08P01", format!("there is no format {code}: 0 is text, 1 is binary"))
        })
    };
    codes.iter().map(format).collect()
}

//! `CREATE [LOCAL | MATERIALIZED] VIEW`.

use sqlparser::ast::{self, CreateTableOptions};

use super::IfTaken;
use super::ViewLateness;
use super::connector::{ConnectorDefinition, Options, Setting};
use super::kind::if_taken;
use crate::error::{Error, Position, Result};
use crate::name::{fold, relation_name};

/// The rounds of a recursion that does not say how many it may take.
pub const DEFAULT_ROUNDS: u64 = 10_000;

/// The kind of a view: the use of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Other views read them; there is no output.
    Local,
    /// Their changes are an output.
    Plain,
    /// Their changes are an output, and the rows are kept to be read.
    Materialized,
}

/// By which column rows of a view are final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmitFinal {
    /// `'emit_final' = 'column'`
    By {
        /// The column, as it was written.
        column: String,
        /// Where the option is.
        position: Position,
    },
    /// `EMIT ON WINDOW CLOSE`: the only one that can be.
    OnWindowClose {
        /// Where the clause begins.
        position: Position,
    },
}

/// A view as it was written.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// The action if one of its name exists.
    pub if_taken: IfTaken,
    /// Its kind.
    pub kind: ViewKind,
    /// Names for its columns, folded; empty to take the query's.
    pub columns: Vec<String>,
    /// Its query.
    pub query: Box<ast::Query>,
    /// Whether only its final rows are emitted, and by which column they are.
    pub emit_final: Option<EmitFinal>,
    /// The last round of its recursions.
    pub recursion_limit: u64,
    /// Whether the statement waits until the view is full.
    pub waits: bool,
    /// How late its changes may come, as other statements say.
    pub lateness: Vec<ViewLateness>,
    /// The connectors that its rows go to.
    pub connectors: Vec<ConnectorDefinition>,
    /// The statement's source.
    pub text: String,
}

/// The option that names the column by which rows are final.
const EMIT_FINAL: &str = "emit_final";

/// The option that says at which round a recursion ends that does not end by itself.
const RECURSION_LIMIT: &str = "recursion_limit";

/// The option that says whether the statement waits until the view is full.
const WAIT: &str = "wait";

/// Whether an option says so.
fn is_true(Setting { name, value, position }: &Setting) -> Result<bool> {
    match () {
        () if value.eq_ignore_ascii_case("true") => Ok(true),
        () if value.eq_ignore_ascii_case("false") => Ok(false),
        () => {
            Err(Error::new(format!("'{name}' is 'true' or 'false', and not '{value}'"), *position))
        }
    }
}

/// The number of rounds that an option says.
fn recursion_limit(Setting { value, position, .. }: &Setting) -> Result<u64> {
    value.parse().ok().filter(|rounds| *rounds > 0).ok_or_else(|| {
        let message = format!("'{RECURSION_LIMIT}' is a number of rounds, and not '{value}'");
        Error::new(message, *position)
    })
}

impl ViewDefinition {
    pub(super) fn read(
        create: ast::CreateView,
        kind: ViewKind,
        on_window_close: Option<Position>,
        text: &str,
    ) -> Result<ViewDefinition> {
        let (name, position) = relation_name(&create.name)?;
        let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
        let options = match &create.options {
            CreateTableOptions::With(options) | CreateTableOptions::Options(options) => options,
            _ => &Vec::new(),
        };
        let Options { own, connectors } =
            Options::read(options, &[EMIT_FINAL, RECURSION_LIMIT, WAIT], position)?;
        let named = |name: &'static str| own.iter().filter(move |setting| setting.name == name);
        let limit = named(RECURSION_LIMIT).next_back().map(recursion_limit).transpose()?;
        let waits = named(WAIT).next_back().map(is_true).transpose()?;
        let finals: Vec<Setting> = named(EMIT_FINAL).cloned().collect();
        let by = finals
            .into_iter()
            .map(|Setting { value, position, .. }| EmitFinal::By { column: value, position });
        let on_close = on_window_close.map(|position| EmitFinal::OnWindowClose { position });
        let mut emit_final = by.chain(on_close);
        let (first, second) = (emit_final.next(), emit_final.next());
        if let Some(EmitFinal::By { position, .. } | EmitFinal::OnWindowClose { position }) = second
        {
            return Err(Error::new("it is said twice which rows of the view are final", position));
        }
        let columns = create.columns.iter().map(|column| fold(&column.name)).collect();
        Ok(ViewDefinition {
            name,
            position,
            if_taken,
            kind,
            columns,
            query: create.query,
            emit_final: first,
            recursion_limit: limit.unwrap_or(DEFAULT_ROUNDS),
            waits: waits.unwrap_or(true),
            lateness: Vec::new(),
            connectors,
            text: text.to_string(),
        })
    }
}

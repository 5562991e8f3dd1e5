//! Names without a schema, which a search path completes.
//!
//! A statement is completed in its text: `FROM t` becomes `FROM s.t`, and is read again. So what is planned, kept and recorded
//! does not depend on a search path. Positions in the new text are [moved](Qualified::moved) back for errors.

use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, TableFactor, Visit, Visitor};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::dialect::Alluvium;
use super::scopes::Scopes;
use super::statements::parse;
use super::{CommentedKind, GrantKind, GrantObject, Granted, Statement, StatementKind};
use crate::error::{Error, Position, Result};
use crate::name;
use crate::name::fold;
use crate::syntax::windowed_without_schema;
use crate::walk::walk;

/// A name without a schema in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unqualified {
    /// The name, folded.
    pub name: String,
    /// Where it is.
    pub position: Position,
    /// The kind of object that it names.
    pub kind: NamedKind,
}

/// The kind of object that a name in a statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKind {
    /// A relation that exists.
    Relation,
    /// An index that exists.
    Index,
    /// A sequence that exists.
    Sequence,
    /// A relation or sequence that is created.
    New,
}

/// A statement whose names have schemas.
#[derive(Clone, Debug)]
pub struct Qualified {
    /// The statement, as if it were all of its text.
    pub statement: Statement,
    /// Where the original began.
    start: Position,
    /// How many characters were put before what begins at these positions of the original text, as if that began at its start;
    /// in order.
    inserted: Vec<(Position, u64)>,
}

impl Qualified {
    /// Where a position of the completed statement is in the text of the original one.
    pub fn moved(&self, position: Position) -> Position {
        let Position { line, mut column } = position;
        for (at, length) in self.inserted.iter().filter(|(at, _)| at.line == line) {
            if column > at.column {
                column = column.saturating_sub(*length).max(at.column);
            }
        }
        match line {
            1 => Position { line: self.start.line, column: self.start.column + column - 1 },
            _ => Position { line: self.start.line + line - 1, column },
        }
    }
}

/// The names without a schema in a statement, in the order of the text. Names that the statement itself defines, with WITH,
/// are not among them.
pub fn unqualified(statement: &Statement) -> Vec<Unqualified> {
    let Ok(tokens) = tokens(statement) else { return Vec::new() };
    let mut names = Names::default();
    names.of(&statement.kind);
    let mut found = names.found;
    found.retain(|name| place(&tokens, name).is_some());
    found.sort_by_key(|name| name.position);
    found.dedup_by_key(|name| name.position);
    found
}

/// The statement with schemas before names in it.
///
/// # Errors
/// If it cannot be read with them.
pub fn with_schemas(statement: &Statement, schemas: &[(Unqualified, String)]) -> Result<Qualified> {
    let tokens = tokens(statement)?;
    let (start, text) = (statement.position, &statement.text);
    let mut completed = String::with_capacity(text.len() + 16 * schemas.len());
    let (mut inserted, mut at) =
        (Vec::with_capacity(schemas.len()), Position { line: 1, column: 1 });
    let mut schemas = schemas.iter().filter(|(name, _)| place(&tokens, name).is_some()).peekable();
    for letter in text.chars() {
        if let Some((_, schema)) = schemas.next_if(|(name, _)| within(name.position, start) == at) {
            let prefix = format!("{}.", name::spelled(schema));
            inserted.push((at, prefix.chars().count() as u64));
            completed.push_str(&prefix);
        }
        completed.push(letter);
        at = match letter {
            '\n' => Position { line: at.line + 1, column: 1 },
            _ => Position { column: at.column + 1, ..at },
        };
    }
    let unread = || Error::new(format!("\"{completed}\" is no statement"), start);
    let read = parse(&completed).next().ok_or_else(unread)?;
    let mut qualified = Qualified { statement: statement.clone(), start, inserted };
    qualified.statement = read.map_err(|error| {
        let position = error.position.map(|position| qualified.moved(position));
        Error { position, ..error }
    })?;
    Ok(qualified)
}

/// A position in a text that begins at `start`, as one of a text of its own.
fn within(position: Position, start: Position) -> Position {
    let line = (position.line + 1).saturating_sub(start.line);
    match line {
        1 => Position { line, column: (position.column + 1).saturating_sub(start.column) },
        _ => Position { line, column: position.column },
    }
}

/// The tokens of a statement, with positions as in a text of its own.
fn tokens(statement: &Statement) -> Result<Vec<(TokenWithSpan, Position)>> {
    let mut tokens = Vec::new();
    Tokenizer::new(&Alluvium::new(0), &statement.text)
        .tokenize_with_location_into_buf(&mut tokens)
        .map_err(|error| Error::new(error.message, statement.position))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let (start, tokens) = (statement.position, tokens.into_iter());
    let of_text = |token: TokenWithSpan| {
        let Position { line, column } = Position::of_span(token.span)?;
        let position = match line {
            1 => Position { line: start.line, column: start.column + column - 1 },
            _ => Position { line: start.line + line - 1, column },
        };
        Some((token, position))
    };
    Ok(tokens.filter_map(of_text).collect())
}

/// The token that is a name, and has no schema before it and none that it is.
fn place(tokens: &[(TokenWithSpan, Position)], name: &Unqualified) -> Option<usize> {
    let at = tokens.binary_search_by_key(&name.position, |(_, position)| *position).ok()?;
    let Token::Word(word) = &tokens[at].0.token else { return None };
    let is_period =
        |at: usize| tokens.get(at).is_some_and(|(token, _)| token.token == Token::Period);
    // In LATENESS v.column and COMMENT ON COLUMN t.column the name ends with the period.
    let is_last = !is_period(at + 1) || is_about_column(tokens) && !is_period(at + 3);
    let folded = match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_ascii_lowercase(),
    };
    let is_first = at == 0 || !is_period(at - 1);
    (folded == name.name && is_first && is_last).then_some(at)
}

/// Whether a statement is about a column, which it names with its relation.
fn is_about_column(tokens: &[(TokenWithSpan, Position)]) -> bool {
    let begins = |words: &[&str]| {
        let is_word = |(word, (token, _)): (&&str, &(TokenWithSpan, Position))| matches!(&token.token, Token::Word(found) if found.value.eq_ignore_ascii_case(word));
        tokens.len() >= words.len() && words.iter().zip(tokens).all(is_word)
    };
    begins(&["LATENESS"]) || begins(&["COMMENT", "ON", "COLUMN"])
}

/// The names of a statement.
#[derive(Default)]
struct Names {
    found: Vec<Unqualified>,
    scopes: Scopes,
    /// Names in FROM that are those of functions, by their addresses.
    functions: Vec<*const ObjectName>,
}

impl Names {
    fn of(&mut self, statement: &StatementKind) {
        use NamedKind::{Index, New, Relation, Sequence};
        match statement {
            StatementKind::CreateTable(table) if table.temporary.is_some() => {}
            StatementKind::CreateTable(table) => self.add(&table.name, table.position, New),
            StatementKind::CreateSequence(it) => self.add(&it.name, it.position, New),
            StatementKind::DropSequence(it) => self.add(&it.name, it.position, Sequence),
            StatementKind::RestartSequence(it) => self.add(&it.name, it.position, Sequence),
            StatementKind::CreateView(view) => {
                self.add(&view.name, view.position, New);
                self.within(&*view.query);
            }
            StatementKind::DeclareView(view) => self.add(&view.name, view.position, New),
            StatementKind::Lateness(late) => self.add(&late.view, late.position, Relation),
            StatementKind::CreateFunction(function) => self.within(&*function.body),
            // A relation that is renamed stays in its schema.
            StatementKind::Alter(alter) => self.add(&alter.name, alter.position, Relation),
            StatementKind::CreateSink(it) => self.add(&it.relation, it.relation_position, Relation),
            StatementKind::AlterSource(change) => self.add(&change.name, change.position, Relation),
            StatementKind::DropTable(dropped) | StatementKind::DropView(dropped) => {
                self.add(&dropped.name, dropped.position, Relation);
            }
            StatementKind::CreateIndex(index) => {
                self.add(&index.relation, index.relation_position, Relation);
            }
            StatementKind::DropIndex(dropped) => self.add(&dropped.name, dropped.position, Index),
            StatementKind::Comment(comment) => {
                let kind = match comment.kind {
                    CommentedKind::Index => Index,
                    _ => Relation,
                };
                self.add(&comment.name, comment.position, kind);
            }
            StatementKind::Grant(grant) => {
                if let Granted::Privileges { objects, .. } = &grant.granted {
                    objects.iter().for_each(|object| self.object(object));
                }
            }
            StatementKind::SetOwner(owner) => self.object(&owner.object),
            StatementKind::Insert(insert) => self.within(&**insert),
            StatementKind::Update(update) => self.within(&**update),
            StatementKind::Delete(delete) => self.within(&**delete),
            StatementKind::CreateTableFrom { name, position, .. } => self.add(name, *position, New),
            StatementKind::CreateTableAs { name, position, temporary, query, .. } => {
                if temporary.is_none() {
                    self.add(name, *position, New);
                }
                self.within(&**query);
            }
            StatementKind::Copy { table, position, .. } => self.add(table, *position, Relation),
            StatementKind::CopyTo { query, .. }
            | StatementKind::Query(query)
            | StatementKind::ExplainSelect { query, .. } => self.within(&**query),
            StatementKind::LockingQuery(locking) => self.within(&*locking.query),
            StatementKind::Describe { name, position }
            | StatementKind::ExplainView { name, position, .. }
            | StatementKind::ExplainState { name, position, .. }
            | StatementKind::ExplainAnalyze { name, position, .. } => {
                self.add(name, *position, Relation);
            }
            StatementKind::Subscribe(changes) | StatementKind::CopyChanges { changes, .. } => {
                self.add(&changes.name, changes.position, Relation);
            }
            StatementKind::Listen(relation) | StatementKind::Unlisten(Some(relation)) => {
                self.add(&relation.name, relation.position, Relation);
            }
            StatementKind::Prepare { statement, .. } => self.of(&statement.kind),
            StatementKind::DropSeveral(statements) | StatementKind::Truncate(statements) => {
                statements.iter().for_each(|statement| self.of(&statement.kind));
            }
            StatementKind::Refresh { name, position } => self.add(name, *position, Relation),
            StatementKind::DeclareCursor(cursor) => self.of(&cursor.query.kind),
            StatementKind::CreateSchema(_)
            | StatementKind::DropSchema(_)
            | StatementKind::DropFunction(_)
            | StatementKind::CreateSecret(_)
            | StatementKind::DropSecret(_)
            | StatementKind::CreateConnection(_)
            | StatementKind::DropConnection(_)
            | StatementKind::DropSink(_)
            | StatementKind::Begin(_)
            | StatementKind::Commit { .. }
            | StatementKind::Rollback { .. }
            | StatementKind::Savepoint(_)
            | StatementKind::RollbackTo(_)
            | StatementKind::Release(_)
            | StatementKind::Execute { .. }
            | StatementKind::Deallocate(_)
            | StatementKind::Fetch { .. }
            | StatementKind::Move { .. }
            | StatementKind::Close(_)
            | StatementKind::Start
            | StatementKind::Checkpoint
            | StatementKind::DescribeFile { .. }
            | StatementKind::ShowTables
            | StatementKind::ShowSources
            | StatementKind::ShowSinks
            | StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::SetRole(_)
            | StatementKind::Set(_)
            | StatementKind::Show { .. }
            | StatementKind::Reset { .. }
            | StatementKind::Unlisten(None)
            | StatementKind::Vacuum
            | StatementKind::DiscardAll => {}
        }
    }

    /// Adds the name of a relation by the text by which that goes.
    fn add(&mut self, relation: &str, position: Position, kind: NamedKind) {
        let (_, name) = name::split(relation);
        self.found.push(Unqualified { name, position, kind });
    }

    /// Adds the name of an object that roles have rights on, if it is in a schema.
    fn object(&mut self, object: &GrantObject) {
        match object.kind {
            GrantKind::Relation => self.add(&object.name, object.position, NamedKind::Relation),
            GrantKind::Sequence => self.add(&object.name, object.position, NamedKind::Sequence),
            _ => {}
        }
    }

    /// Adds the name of a relation at a place where WITH may define it, unless it is that of a file.
    fn relation(&mut self, ident: &Ident) {
        let name = fold(ident);
        if ident.quote_style != Some('\'')
            && let Some(position) = Position::of_span(ident.span)
            && !self.scopes.define(&name)
        {
            self.found.push(Unqualified { name, position, kind: NamedKind::Relation });
        }
    }

    fn within(&mut self, part: &impl Visit) {
        // The visitor has no errors.
        let _ = walk(part, self);
    }
}

impl Visitor for Names {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.scopes.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.scopes.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Error> {
        let is_function = self.functions.iter().any(|name| std::ptr::eq(*name, relation));
        if let [part] = relation.0.as_slice()
            && let Some(ident) = part.as_ident()
            && !is_function
        {
            self.relation(ident);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Table { name, args: Some(_), .. } = factor {
            self.functions.push(std::ptr::from_ref(name));
        }
        if let Some(relation) = windowed_without_schema(factor) {
            self.relation(relation);
        }
        ControlFlow::Continue(())
    }
}

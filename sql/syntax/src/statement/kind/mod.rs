//! The kinds of statements; [`command`] names their commands, and [`explain`] reads the options of EXPLAIN.

mod command;
mod explain;

use sqlparser::ast::{self, ObjectName, ObjectType};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub use self::explain::ExplainFormat;
use self::explain::{Options, begins_query, options, upcoming};
use super::column_type::duration;
use super::dialect::Alluvium;
use super::refused::{first_meant, is_refused, refusal};
use super::rights::{grant, role};
use super::syntax_error::{TOO_DEEP, lonely_bracket, syntax_error};
use super::view::ViewKind;
use super::{
    ConnectorDefinition, Drop, FileName, IfTaken, LockingQuery, OnCommit, Statement, StatementKind,
    TableDefinition, ViewDefinition, alter, changes, comment, connector, copy, declared, file,
    function, index, lateness, nested, respelled, schema, sequence, setting, temporary,
    transaction,
};
use crate::error::{Error, Position, Result, SqlState};
use crate::name::{Named, relation_name};
use crate::syntax;

/// The kind of the statement in `tokens`; `text` is their source.
pub(super) fn read(tokens: Vec<TokenWithSpan>, text: &str) -> Result<StatementKind> {
    if let Some(kind) = nested::read(&tokens, text) {
        return kind;
    }
    let tokens = sequence::respell(respelled::respell(tokens));
    let dialect = Alluvium::new(tokens.len());
    parse(&dialect, &tokens, text).map_err(|error| match error.message == TOO_DEEP {
        true => error.at(dialect.reached()),
        false => lonely_bracket(&tokens).unwrap_or(error),
    })
}

/// The file that a token names.
fn file_at(tokens: &[TokenWithSpan], at: usize) -> Option<FileName> {
    match &tokens.get(at)?.token {
        Token::SingleQuotedString(written) => Some(FileName::read(written)),
        _ => None,
    }
}

fn parse(dialect: &Alluvium, tokens: &[TokenWithSpan], text: &str) -> Result<StatementKind> {
    let words: Vec<String> =
        tokens.iter().take(8).map(|token| token.token.to_string().to_uppercase()).collect();
    let word = |number: usize| words.get(number).map_or("", String::as_str);
    let start = tokens.first().and_then(|token| Position::of_span(token.span));
    let (tokens, on_window_close) = window_close(tokens, &words);
    let (tokens, connector) = connector::clause::split(dialect, tokens)?;
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
    let kind = match word(0) {
        "CREATE" if word(1) == "TABLE" && word(behind_name(&words, 2)) == "FROM" => {
            copy::create_table(&mut parser)?
        }
        "CREATE" => {
            let created = create(&mut parser, &words, (start, on_window_close), text)?;
            completed(created, connector, tokens)?
        }
        "START" if tokens.len() == 1 => {
            parser.advance_token();
            StatementKind::Start
        }
        "CHECKPOINT" if tokens.len() == 1 => {
            parser.advance_token();
            StatementKind::Checkpoint
        }
        "DROP" if is_of_connectors(word(1)) => drop_of_connectors(&mut parser, word(1))?,
        "DROP" if matches!(word(1), "FUNCTION" | "MACRO") => function::drop(&mut parser)?,
        "DROP" if is_role(word(1)) => role::drop(&mut parser)?,
        "GRANT" | "REVOKE" if !word(1).is_empty() => grant::read(&mut parser, start)?,
        "ALTER" if matches!(word(1), "ROLE" | "USER") => role::alter(&mut parser)?,
        "ALTER" if grant::is_of_owner(&last_words(tokens)) => grant::owner(&mut parser, start)?,
        "EXPLAIN" => explain_statement(&mut parser, start)?,
        "SHOW" if is_list(word(1)) && tokens.len() == 2 => list(&mut parser, word(1)),
        "SHOW" if is_setting(&words, tokens.len()) => setting::show(&mut parser, start)?,
        "RESET" if !word(1).is_empty() => setting::reset(&mut parser, start)?,
        "SET" if !word(1).is_empty() => setting::set(&mut parser)?,
        "DISCARD" if word(1) == "ALL" => {
            parser.advance_token();
            parser.advance_token();
            StatementKind::DiscardAll
        }
        "VACUUM" | "ANALYZE" => {
            while parser.next_token().token != Token::EOF {}
            StatementKind::Vacuum
        }
        "DESCRIBE" | "DESC" if file_at(tokens, 1).is_some() && tokens.len() == 2 => {
            parser.advance_token();
            let position = Position::of_span(parser.next_token().span).or(start);
            let (Some(file), Some(position)) = (file_at(tokens, 1), position) else {
                return Err(Error::new("a file is expected", start));
            };
            StatementKind::DescribeFile { file, position }
        }
        "DESCRIBE" | "DESC" if tokens.len() == behind_name(&words, 1) => {
            parser.advance_token();
            let name = parser.parse_object_name(false).map_err(syntax_error)?;
            let (name, position) = relation_name(&name)?;
            StatementKind::Describe { name, position }
        }
        "SUBSCRIBE" => StatementKind::Subscribe(changes::subscribe(&mut parser)?),
        "COPY" if word(1) == "(" && word(2) == "SUBSCRIBE" => changes::copy(&mut parser)?,
        "LISTEN" if !word(1).is_empty() => changes::listen(&mut parser)?,
        "UNLISTEN" if !word(1).is_empty() => changes::unlisten(&mut parser)?,
        "COMMENT" if word(1) == "ON" => comment::read(&mut parser, start)?,
        "COPY" => {
            let mut copied = copy::read(&mut parser)?;
            if let StatementKind::CopyTo { query, .. } = &mut copied {
                syntax::normalize(query)?;
                syntax::check(query)?;
            }
            copied
        }
        "SELECT" | "WITH" | "VALUES" | "(" => read_query(&mut parser, &words, start)?,
        _ if transaction::is_of_transactions(&words) => transaction::read(&mut parser)?,
        "INSERT" | "UPDATE" | "DELETE" | "DROP" => {
            sort(parser.parse_statement().map_err(syntax_error)?, &words, start)?
        }
        "DECLARE" if word(1) == "RECURSIVE" && word(2) == "VIEW" => {
            return declared::read(dialect, tokens, text);
        }
        "ALTER" if word(1) == "SOURCE" => {
            StatementKind::AlterSource(connector::pause::alter(&mut parser)?)
        }
        "ALTER" if word(1) == "SEQUENCE" => sequence::alter(&mut parser)?,
        "ALTER" if !word(1).is_empty() => alter::read(&mut parser, start, text)?,
        "DECLARE" | "SHOW" if !word(1).is_empty() => {
            return Err(refusal(&[word(0), word(1)], start));
        }
        "LATENESS" => {
            StatementKind::Lateness(Box::new(lateness::read_statement(&mut parser, text)?))
        }
        first if is_refused(first) => return Err(refusal(&[first], start)),
        first => {
            let found = parser.next_token();
            let error = parser.expected::<()>("a statement", found).expect_err("it is an error");
            let Error { message, position, sqlstate } = syntax_error(error);
            let message = message + &first_meant(first);
            return Err(Error::new(message, position).with_sqlstate(sqlstate));
        }
    };
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.next_token();
        return Err(syntax_error(
            parser.expected::<()>("the end of the statement", found).expect_err("it is an error"),
        ));
    }
    Ok(kind)
}

/// What CREATE defines, with the connector that it ends with.
fn completed(
    mut created: StatementKind,
    connector: Option<ConnectorDefinition>,
    tokens: &[TokenWithSpan],
) -> Result<StatementKind> {
    match &mut created {
        StatementKind::CreateView(view) => file::refuse(&view.query, tokens)?,
        StatementKind::CreateTable(table) => {
            let has_key = !table.primary_key.is_empty();
            let connector = connector.map(|it| connector::clause::of_table(it, has_key));
            table.connectors.extend(connector.transpose()?);
        }
        _ => {}
    }
    Ok(created)
}

/// Whether a word names the kind of what connectors name, or a sink.
fn is_of_connectors(word: &str) -> bool {
    matches!(word, "SECRET" | "CONNECTION" | "SINK")
}

/// Reads CREATE of what connectors name, or of a sink.
fn create_of_connectors(parser: &mut Parser<'_>, word: &str, text: &str) -> Result<StatementKind> {
    Ok(match word {
        "SECRET" => StatementKind::CreateSecret(Box::new(connector::secret::create(parser, text)?)),
        "CONNECTION" => {
            let connection = connector::connection::create(parser, text)?;
            StatementKind::CreateConnection(Box::new(connection))
        }
        _ => StatementKind::CreateSink(Box::new(connector::sink::create(parser, text)?)),
    })
}

/// Reads DROP of what connectors name, or of a sink.
fn drop_of_connectors(parser: &mut Parser<'_>, word: &str) -> Result<StatementKind> {
    let (Named { name, position }, if_exists, cascade) = connector::connection::drop(parser)?;
    let dropped = Drop { name, position, if_exists, cascade };
    Ok(match word {
        "SECRET" => StatementKind::DropSecret(dropped),
        "CONNECTION" => StatementKind::DropConnection(dropped),
        _ => StatementKind::DropSink(dropped),
    })
}

/// Whether SHOW lists what this word says.
fn is_list(word: &str) -> bool {
    matches!(word, "TABLES" | "SOURCES" | "SINKS")
}

/// Reads SHOW of a list.
fn list(parser: &mut Parser<'_>, word: &str) -> StatementKind {
    parser.advance_token();
    parser.advance_token();
    match word {
        "TABLES" => StatementKind::ShowTables,
        "SOURCES" => StatementKind::ShowSources,
        _ => StatementKind::ShowSinks,
    }
}

/// Whether a word names the kind of a role.
fn is_role(word: &str) -> bool {
    matches!(word, "ROLE" | "USER" | "GROUP")
}

/// The last three words of a statement in upper case; those in quotes are no words.
fn last_words(tokens: &[TokenWithSpan]) -> Vec<String> {
    let last = &tokens[tokens.len().saturating_sub(3)..];
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    };
    last.iter().map(word).collect()
}

/// Where a name ends that starts here, with all its parts.
fn behind_name(words: &[String], start: usize) -> usize {
    let mut end = start + 1;
    while words.get(end).is_some_and(|word| word == ".") {
        end += 2;
    }
    end
}

/// Whether SHOW shows a setting, by its name or in a spelling of its own.
fn is_setting(words: &[String], tokens: usize) -> bool {
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        [] | ["VIEWS"] => false,
        ["TIME", "ZONE"] | ["TRANSACTION", "ISOLATION", "LEVEL"] => true,
        [_] => true,
        [_, second, ..] => second == "." && tokens > 3,
    }
}

/// The tokens of a statement without the `EMIT ON WINDOW CLOSE` that a view ends with, and where that is. The parser would
/// take EMIT for the name of a relation.
fn window_close<'a>(
    tokens: &'a [TokenWithSpan],
    words: &[String],
) -> (&'a [TokenWithSpan], Option<Position>) {
    const CLAUSE: [&str; 4] = ["EMIT", "ON", "WINDOW", "CLOSE"];
    let what = words.iter().take(5).find(|word| matches!(&***word, "TABLE" | "VIEW"));
    let is_view = words.first().is_some_and(|word| word == "CREATE")
        && what.is_some_and(|what| what == "VIEW");
    let Some((rest, clause)) = tokens.split_last_chunk::<4>().filter(|_| is_view) else {
        return (tokens, None);
    };
    let is_word = |(token, word): (&TokenWithSpan, &str)| {
        matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    match clause.iter().zip(CLAUSE).all(is_word) {
        true => (rest, Position::of_span(clause[0].span)),
        false => (tokens, None),
    }
}

/// A query, which may lock rows.
fn read_query(
    parser: &mut Parser<'_>,
    words: &[String],
    start: Option<Position>,
) -> Result<StatementKind> {
    let mut query = parser.parse_query().map_err(syntax_error)?;
    if let Some(change) = syntax::change(&query)? {
        return sort(change, words, start);
    }
    syntax::normalize(&mut query)?;
    let locking = LockingQuery::take(&mut query)?;
    syntax::check(&query)?;
    Ok(match locking {
        Some(locking) => StatementKind::LockingQuery(locking),
        None => StatementKind::Query(query),
    })
}

/// A query that stands for itself.
pub(super) fn query(parser: &mut Parser<'_>) -> Result<Box<ast::Query>> {
    let mut query = parser.parse_query().map_err(syntax_error)?;
    syntax::normalize(&mut query)?;
    syntax::check(&query)?;
    Ok(query)
}

fn create(
    parser: &mut Parser<'_>,
    words: &[String],
    (start, on_window_close): (Option<Position>, Option<Position>),
    text: &str,
) -> Result<StatementKind> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let kind = match words[1..] {
        ["SCHEMA", _, ..] => {
            return schema::create(parser.parse_statement().map_err(syntax_error)?, start);
        }
        ["FUNCTION" | "MACRO", _, ..] => return function::create(parser, text),
        [what, _, ..] if is_role(what) => return role::create(parser),
        ["SEQUENCE", _, ..] => return sequence::create(parser, text),
        [word, _, ..] if is_of_connectors(word) => {
            return create_of_connectors(parser, word, text);
        }
        ["INDEX", ..] => {
            return match parser.parse_statement().map_err(syntax_error)? {
                ast::Statement::CreateIndex(create) => index::create(create, start, text),
                _ => Err(Error::not_supported("this CREATE INDEX", start)),
            };
        }
        ["TABLE", ..]
        | ["TEMP" | "TEMPORARY", "TABLE", ..]
        | ["LOCAL" | "GLOBAL", "TEMP" | "TEMPORARY", "TABLE", ..]
        | ["OR", "REPLACE", "TEMP" | "TEMPORARY", "TABLE", ..] => None,
        ["VIEW", ..] => Some(ViewKind::Plain),
        ["LOCAL", "VIEW", ..] => Some(ViewKind::Local),
        ["MATERIALIZED", "VIEW", ..] => Some(ViewKind::Materialized),
        ["OR", "REPLACE", "TABLE", ..] => None,
        ["OR", "REPLACE", "VIEW", ..] => Some(ViewKind::Plain),
        ["OR", "REPLACE", "LOCAL", "VIEW", ..] => Some(ViewKind::Local),
        ["OR", "REPLACE", "MATERIALIZED", "VIEW", ..] => Some(ViewKind::Materialized),
        ["OR", "REPLACE", "FUNCTION" | "MACRO", ..] => {
            return Err(refusal(&["CREATE", "OR", "REPLACE", "FUNCTION"], start));
        }
        ["OR", second, ..] => {
            return Err(refusal(&["CREATE", "OR", second], start));
        }
        ["TEMP" | "TEMPORARY", what, ..] | ["UNIQUE", what, ..] => {
            return Err(refusal(&["CREATE", words[1], what], start));
        }
        [what, ..] if parser.peek_nth_token_ref(1).token != Token::EOF => {
            return Err(refusal(&["CREATE", what], start));
        }
        _ => None,
    };
    match (parser.parse_statement().map_err(syntax_error)?, kind) {
        (ast::Statement::CreateTable(create), None) => table(create, text),
        (ast::Statement::CreateView(mut create), Some(kind)) => {
            syntax::normalize(&mut create)?;
            syntax::check_view(&create)?;
            Ok(StatementKind::CreateView(ViewDefinition::read(
                create,
                kind,
                on_window_close,
                text,
            )?))
        }
        _ => Err(Error::not_supported(words[..words.len().min(3)].join(" "), start)),
    }
}

/// Reads `CREATE TABLE`, whose source is `text`.
pub(super) fn create_table(parser: &mut Parser<'_>, text: &str) -> Result<StatementKind> {
    match parser.parse_statement().map_err(syntax_error)? {
        ast::Statement::CreateTable(create) => table(create, text),
        _ => Err(Error::not_supported("this CREATE TABLE", None)),
    }
}

fn table(mut create: ast::CreateTable, text: &str) -> Result<StatementKind> {
    let lateness = lateness::take(&mut create)?;
    let temporary = temporary::take(&mut create)?;
    syntax::normalize(&mut create)?;
    syntax::check_table(&create)?;
    if let Some(query) = create.query.take() {
        return create_as(&create, temporary, query);
    }
    let definition = TableDefinition::read(create, &lateness, text)?;
    Ok(StatementKind::CreateTable(TableDefinition { temporary, ..definition }))
}

/// `CREATE TABLE … AS`
fn create_as(
    create: &ast::CreateTable,
    temporary: Option<OnCommit>,
    query: Box<ast::Query>,
) -> Result<StatementKind> {
    let (name, position) = relation_name(&create.name)?;
    let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
    match if_taken {
        IfTaken::Fail | IfTaken::Keep => {}
        IfTaken::Replace => {
            let what = "CREATE OR REPLACE TABLE … AS (DROP the table first)";
            return Err(Error::not_supported(what, position));
        }
    }
    Ok(StatementKind::CreateTableAs { name, position, if_taken, temporary, query })
}

/// Statements that sqlparser parses.
fn sort(
    mut statement: ast::Statement,
    words: &[String],
    start: Option<Position>,
) -> Result<StatementKind> {
    syntax::name_returned(&mut statement);
    syntax::normalize(&mut statement)?;
    match statement {
        ast::Statement::Insert(insert) => {
            syntax::check_insert(&insert)?;
            Ok(StatementKind::Insert(Box::new(insert)))
        }
        ast::Statement::Update(update) => {
            syntax::check_update(&update)?;
            Ok(StatementKind::Update(Box::new(update)))
        }
        ast::Statement::Delete(delete) => {
            syntax::check_delete(&delete)?;
            Ok(StatementKind::Delete(Box::new(delete)))
        }
        ast::Statement::Drop {
            object_type,
            if_exists,
            names,
            cascade,
            // The default.
            restrict: _,
            purge: false,
            temporary: false,
            table: None,
        } => {
            let (of, place) = (object_type, start.unwrap_or(Position { line: 1, column: 1 }));
            let drop = |name| dropped(of, name, if_exists, cascade, place);
            match names.as_slice() {
                [name] => Ok(drop(name)?.kind),
                names
                    if matches!(
                        of,
                        ObjectType::Table | ObjectType::View | ObjectType::MaterializedView
                    ) =>
                {
                    Ok(StatementKind::DropSeveral(names.iter().map(drop).collect::<Result<_>>()?))
                }
                _ => Err(Error::not_supported(format!("DROP {of} of several"), start)),
            }
        }
        _ => Err(Error::not_supported(words[..words.len().min(2)].join(" "), start)),
    }
}

/// DROP of one of these objects.
fn dropped(
    object_type: ObjectType,
    name: &ObjectName,
    if_exists: bool,
    cascade: bool,
    position: Position,
) -> Result<Statement> {
    let exists = if if_exists { " IF EXISTS" } else { "" };
    let all = if cascade { " CASCADE" } else { "" };
    let text = format!("DROP {object_type}{exists} {name}{all}");
    let (name, at) = match object_type {
        ObjectType::Schema => schema::schema_name(name)?,
        _ => relation_name(name)?,
    };
    let drop = Drop { name, position: at, if_exists, cascade };
    let kind = match object_type {
        ObjectType::Schema => StatementKind::DropSchema(drop),
        ObjectType::Table => StatementKind::DropTable(drop),
        ObjectType::Index => StatementKind::DropIndex(drop),
        ObjectType::Sequence => StatementKind::DropSequence(drop),
        ObjectType::View | ObjectType::MaterializedView => StatementKind::DropView(drop),
        other => return Err(Error::not_supported(format!("DROP {other}"), position)),
    };
    Ok(Statement { kind, text, position, depth: 1 })
}

/// The action of a definition if its name is taken.
pub(super) fn if_taken(
    or_replace: bool,
    if_not_exists: bool,
    position: Position,
) -> Result<IfTaken> {
    match (or_replace, if_not_exists) {
        (false, false) => Ok(IfTaken::Fail),
        (false, true) => Ok(IfTaken::Keep),
        (true, false) => Ok(IfTaken::Replace),
        (true, true) => {
            Err(Error::new("OR REPLACE and IF NOT EXISTS contradict each other", position))
        }
    }
}

/// Reads an EXPLAIN, which starts here.
fn explain_statement(parser: &mut Parser<'_>, start: Option<Position>) -> Result<StatementKind> {
    parser.advance_token();
    let Options { analyze, format } = options(parser)?;
    if parser.parse_keyword(Keyword::ANALYZE) || analyze {
        return explain_work(parser, format, start);
    }
    if parser.parse_keyword(Keyword::VIEW) {
        let (name, position) = named(parser)?;
        return Ok(StatementKind::ExplainView { name, position, format });
    }
    match upcoming(parser).as_str() {
        "STATE" => {
            parser.advance_token();
            let (name, position) = named(parser)?;
            Ok(StatementKind::ExplainState { name, position, format })
        }
        word if begins_query(word) => {
            Ok(StatementKind::ExplainSelect { query: query(parser)?, analyze: false, format })
        }
        "EOF" => Err(refusal(&["EXPLAIN"], start)),
        other => Err(refusal(&["EXPLAIN", other], start)),
    }
}

/// EXPLAIN ANALYZE of a query or a view, after these words.
fn explain_work(
    parser: &mut Parser<'_>,
    format: ExplainFormat,
    start: Option<Position>,
) -> Result<StatementKind> {
    let is_view = parser.parse_keyword(Keyword::VIEW);
    let next = upcoming(parser);
    match next.as_str() {
        "EOF" => return Err(refusal(&["EXPLAIN", "ANALYZE"], start)),
        "INSERT" | "UPDATE" | "DELETE" if !is_view => {
            return Err(refusal(&["EXPLAIN", "ANALYZE", &next], start));
        }
        word if !is_view && begins_query(word) => {
            return Ok(StatementKind::ExplainSelect {
                query: query(parser)?,
                analyze: true,
                format,
            });
        }
        _ => {}
    }
    let (name, position) = named(parser)?;
    let mut time = None;
    if parser.parse_keyword(Keyword::FOR) {
        let at = Position::of_span(parser.peek_token_ref().span);
        let interval = parser.parse_expr().map_err(syntax_error)?;
        time = Some(duration(&interval)?.ok_or_else(|| {
            let message =
                "EXPLAIN ANALYZE watches a view for one interval, such as INTERVAL '10' SECOND";
            Error::new(message, at).with_sqlstate(SqlState::INVALID_VALUE)
        })?);
    }
    Ok(StatementKind::ExplainAnalyze { name, position, time, format })
}

fn named(parser: &mut Parser<'_>) -> Result<(String, Position)> {
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    relation_name(&name)
}

//! Statements around others: `PREPARE`, `EXECUTE`, `DECLARE … CURSOR` and `TRUNCATE`, and those that name what these make.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::connector::Setting;
use super::connector::option_list;
use super::dialect::Alluvium;
use super::syntax_error::{expected, lonely_bracket, syntax_error};
use super::{Named, Statement, StatementKind, kind, room};
use crate::error::{Error, Position, Result, SqlState};
use crate::name::{fold, relation_name};

/// How far FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// So many rows forward.
    Forward(u64),
    /// To the last row.
    All,
    /// To a row that is not one of the next ones: backward, or by its number.
    Elsewhere,
}

/// A cursor that is declared.
#[derive(Clone, Debug)]
pub struct CursorDefinition {
    /// Its name, and where it stands.
    pub name: Named,
    /// Whether it outlives its transaction: `WITH HOLD`.
    pub holds: bool,
    /// Its query, or SUBSCRIBE.
    pub query: Box<Statement>,
}

/// Reads a statement of these tokens, whose source is `text`; `None` if it is another one.
pub(super) fn read(tokens: &[TokenWithSpan], text: &str) -> Option<Result<StatementKind>> {
    if tokens.len() < 2 {
        return None;
    }
    let source = Source { tokens, text };
    match keyword(&tokens[0].token) {
        Keyword::PREPARE => Some(source.prepare()),
        Keyword::EXECUTE => Some(source.execute()),
        Keyword::DEALLOCATE => Some(source.deallocate()),
        Keyword::DECLARE if source.declares_cursor() => Some(source.declare()),
        Keyword::FETCH => Some(source.fetch(false)),
        _ if is_move(&tokens[0].token) => Some(source.fetch(true)),
        Keyword::CLOSE => Some(source.close()),
        Keyword::TRUNCATE => Some(source.truncate()),
        Keyword::REFRESH => Some(source.refresh()),
        _ => None,
    }
}

/// The tokens of a statement, and their text.
#[derive(Clone, Copy)]
struct Source<'a> {
    tokens: &'a [TokenWithSpan],
    text: &'a str,
}

impl Source<'_> {
    /// Runs `read` over the tokens after the first.
    fn parsed<R>(self, read: impl FnOnce(&mut Parser<'_>) -> Result<R>) -> Result<R> {
        let dialect = Alluvium::new(self.tokens.len());
        let mut parser =
            Parser::new(&dialect).with_tokens_with_locations(self.tokens[1..].to_vec());
        read(&mut parser)
    }

    /// As [`Source::parsed`], over all of them.
    fn parsed_whole<R>(self, read: impl FnOnce(&mut Parser<'_>) -> Result<R>) -> Result<R> {
        self.parsed(|parser| {
            let read = read(parser)?;
            match parser.peek_token_ref().token {
                Token::EOF => Ok(read),
                _ => {
                    let found = parser.next_token();
                    Err(expected(parser, "the end of the statement", found))
                }
            }
        })
    }

    /// `PREPARE name [(type, …)] AS statement`
    fn prepare(self) -> Result<StatementKind> {
        let (name, types, at) = self.parsed(|parser| {
            let name = named(parser)?;
            let mut types = Vec::new();
            if parser.consume_token(&Token::LParen) {
                let begin = parser.index();
                parser.parse_comma_separated(Parser::parse_data_type).map_err(syntax_error)?;
                let end = parser.index();
                parser.expect_token(&Token::RParen).map_err(syntax_error)?;
                types = separated(&self.tokens[1 + begin..1 + end]);
            }
            parser.expect_keyword_is(Keyword::AS).map_err(syntax_error)?;
            Ok((name, types, 1 + parser.index()))
        })?;
        let (tokens, text) = self.with_types(at, &types);
        let statement = Box::new(nested(&tokens, text)?);
        match &statement.kind {
            StatementKind::Query(_)
            | StatementKind::LockingQuery(_)
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_) => Ok(StatementKind::Prepare { name, statement }),
            _ => Err(Error::new(
                "PREPARE takes SELECT, INSERT, UPDATE or DELETE",
                statement.position,
            )
            .with_sqlstate(SqlState::SYNTAX)),
        }
    }

    /// The tokens from one on, and their text, in which each parameter whose type is given has it.
    fn with_types(self, at: usize, types: &[Vec<Token>]) -> (Vec<TokenWithSpan>, String) {
        let (mut tokens, mut text) = (Vec::new(), String::new());
        let Some(first) = self.tokens.get(at) else { return (tokens, text) };
        let mut from = self.offset(first.span.start);
        for token in &self.tokens[at..] {
            let Some(data_type) = type_of(&token.token, types) else {
                tokens.push(token.clone());
                continue;
            };
            let bytes = self.offset(token.span.start)..self.offset(token.span.end);
            let words: Vec<String> = data_type.iter().map(Token::to_string).collect();
            text += &self.text[from..bytes.start];
            text += &format!("CAST({} AS {})", &self.text[bytes.clone()], words.join(" "));
            from = bytes.end;
            let cast = [Token::make_keyword("CAST"), Token::LParen, token.token.clone()];
            let cast = cast.into_iter().chain([Token::make_keyword("AS")]);
            let cast = cast.chain(data_type.iter().cloned()).chain([Token::RParen]);
            tokens.extend(cast.map(|cast| TokenWithSpan { token: cast, span: token.span }));
        }
        text += &self.text[from..];
        (tokens, text)
    }

    /// `EXECUTE name [(value, …)]`
    fn execute(self) -> Result<StatementKind> {
        let (name, at) = self.parsed(|parser| Ok((named(parser)?, 1 + parser.index())))?;
        let Some(first) = self.tokens.get(at) else {
            return Ok(StatementKind::Execute { name, values: None });
        };
        if first.token != Token::LParen {
            return self.parsed(|parser| {
                named(parser)?;
                let found = parser.next_token();
                Err(expected(parser, "values in brackets", found))
            });
        }
        let behind = self.tokens.get(at + 1).map(|token| &token.token);
        if behind == Some(&Token::RParen) && self.tokens.len() == at + 2 {
            return Ok(StatementKind::Execute { name, values: None });
        }
        // Expressions, and nothing that could follow them in SELECT.
        self.parsed_whole(|parser| {
            named(parser)?;
            parser.expect_token(&Token::LParen).map_err(syntax_error)?;
            parser.parse_comma_separated(Parser::parse_expr).map_err(syntax_error)?;
            parser.expect_token(&Token::RParen).map_err(syntax_error)
        })
        .map_err(|error| lonely_bracket(self.tokens).unwrap_or(error))?;
        let (inside, end) = (at + 1, self.tokens.len() - 1);
        let word = TokenWithSpan { token: Token::make_keyword("SELECT"), span: first.span };
        let values = self.tokens[inside..end].iter().cloned();
        let tokens: Vec<_> = [word].into_iter().chain(values).collect();
        let [from, to] = [inside, end].map(|token| self.offset(self.tokens[token].span.start));
        let text = format!("SELECT {}", &self.text[from..to]);
        Ok(StatementKind::Execute { name, values: Some(Box::new(nested(&tokens, text)?)) })
    }

    /// `DEALLOCATE [PREPARE] name`, or `ALL`
    fn deallocate(self) -> Result<StatementKind> {
        self.parsed_whole(|parser| {
            if parser.peek_nth_token_ref(1).token != Token::EOF {
                let _ = parser.parse_keyword(Keyword::PREPARE);
            }
            Ok(StatementKind::Deallocate(named_or_all(parser)?))
        })
    }

    /// Whether it is DECLARE of a cursor.
    fn declares_cursor(self) -> bool {
        self.tokens.iter().skip(2).take(6).any(|token| keyword(&token.token) == Keyword::CURSOR)
    }

    /// `DECLARE name [BINARY] [ASENSITIVE | INSENSITIVE] [[NO] SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR query`. How rows are sent
    /// is the protocol's to say.
    fn declare(self) -> Result<StatementKind> {
        let (name, holds, at) = self.parsed(|parser| {
            let name = named(parser)?;
            loop {
                if parser.parse_keywords(&[Keyword::NO, Keyword::SCROLL]) {
                    continue;
                }
                let words = [
                    Keyword::BINARY,
                    Keyword::ASENSITIVE,
                    Keyword::INSENSITIVE,
                    Keyword::SCROLL,
                    Keyword::CURSOR,
                ];
                match parser.expect_one_of_keywords(&words).map_err(syntax_error)? {
                    Keyword::CURSOR => break,
                    Keyword::SCROLL => {
                        let what = "SCROLL (a cursor goes forward only)";
                        return Err(Error::not_supported(what, name.position));
                    }
                    _ => {}
                }
            }
            let holds = parser.parse_keywords(&[Keyword::WITH, Keyword::HOLD]);
            if !holds {
                let _ = parser.parse_keywords(&[Keyword::WITHOUT, Keyword::HOLD]);
            }
            parser.expect_keyword_is(Keyword::FOR).map_err(syntax_error)?;
            Ok((name, holds, 1 + parser.index()))
        })?;
        let text =
            self.tokens.get(at).map_or("", |first| &self.text[self.offset(first.span.start)..]);
        let query = Box::new(nested(&self.tokens[at.min(self.tokens.len())..], text.to_owned())?);
        match &query.kind {
            StatementKind::Subscribe(changes) if holds => {
                let what = "WITH HOLD of a cursor over SUBSCRIBE (it ends with its transaction)";
                Err(Error::not_supported(what, changes.position))
            }
            StatementKind::Query(_) | StatementKind::Subscribe(_) => {
                Ok(StatementKind::DeclareCursor(CursorDefinition { name, holds, query }))
            }
            _ => Err(Error::new("a cursor takes a query or SUBSCRIBE", query.position)
                .with_sqlstate(SqlState::SYNTAX)),
        }
    }

    /// `FETCH [direction] [FROM | IN] cursor [WITH (TIMEOUT [=] 'time')]`, or `MOVE`
    fn fetch(self, moves: bool) -> Result<StatementKind> {
        self.parsed_whole(|parser| {
            // A cursor may be called as a direction is.
            let steps = match ends_name(parser) {
                true => Steps::Forward(1),
                false => steps(parser)?,
            };
            if !ends_name(parser) {
                let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
            }
            let cursor = named(parser)?;
            Ok(match moves {
                true => StatementKind::Move { cursor, steps },
                false => StatementKind::Fetch { cursor, steps, timeout: timeout(parser)? },
            })
        })
    }

    /// `CLOSE cursor`, or `ALL`
    fn close(self) -> Result<StatementKind> {
        self.parsed_whole(|parser| Ok(StatementKind::Close(named_or_all(parser)?)))
    }

    /// `TRUNCATE [TABLE] table, … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]`: nothing counts up in a table, and no table
    /// refers to another.
    fn truncate(self) -> Result<StatementKind> {
        let names = self.parsed_whole(|parser| {
            let _ = parser.parse_keyword(Keyword::TABLE);
            let mut names = Vec::new();
            loop {
                if !matches!(parser.peek_nth_token_ref(1).token, Token::EOF | Token::Comma) {
                    let _ = parser.parse_keyword(Keyword::ONLY);
                }
                let begin = 1 + parser.index();
                parser.parse_object_name(false).map_err(syntax_error)?;
                names.push(begin..1 + parser.index());
                let _ = parser.consume_token(&Token::Mul);
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            let _ = parser.parse_keywords(&[Keyword::RESTART, Keyword::IDENTITY])
                || parser.parse_keywords(&[Keyword::CONTINUE, Keyword::IDENTITY]);
            let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
            Ok(names)
        })?;
        let delete = |name: std::ops::Range<usize>| {
            let name = &self.tokens[name];
            let (Some(first), Some(last)) = (name.first(), name.last()) else {
                return Err(Error::new("TRUNCATE takes the name of a table", None));
            };
            let bytes = self.offset(first.span.start)..self.offset(last.span.end);
            let words = [Token::make_keyword("DELETE"), Token::make_keyword("FROM")];
            let words = words.map(|token| TokenWithSpan { token, span: first.span });
            let tokens: Vec<_> = words.into_iter().chain(name.iter().cloned()).collect();
            nested(&tokens, format!("DELETE FROM {}", &self.text[bytes]))
        };
        let mut deletes = names.into_iter().map(delete).collect::<Result<Vec<_>>>()?;
        match deletes.len() {
            1 => Ok(deletes.remove(0).kind),
            _ => Ok(StatementKind::Truncate(deletes)),
        }
    }

    /// `REFRESH MATERIALIZED VIEW [CONCURRENTLY] view [WITH DATA]`
    fn refresh(self) -> Result<StatementKind> {
        self.parsed_whole(|parser| {
            let words = [Keyword::MATERIALIZED, Keyword::VIEW];
            words
                .iter()
                .try_for_each(|word| parser.expect_keyword_is(*word).map_err(syntax_error))?;
            if parser.peek_nth_token_ref(1).token != Token::EOF {
                let _ = parser.parse_keyword(Keyword::CONCURRENTLY);
            }
            let name = parser.parse_object_name(false).map_err(syntax_error)?;
            let (name, position) = relation_name(&name)?;
            let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
            Ok(StatementKind::Refresh { name, position })
        })
    }

    /// The byte of the text at which a location is.
    fn offset(self, location: Location) -> usize {
        let mut reached = self.tokens[0].span.start;
        for (offset, character) in self.text.char_indices() {
            if reached >= location {
                return offset;
            }
            reached = match character {
                '\n' => Location { line: reached.line + 1, column: 1 },
                _ => Location { column: reached.column + 1, ..reached },
            };
        }
        self.text.len()
    }
}

/// The statement of these tokens.
fn nested(tokens: &[TokenWithSpan], text: String) -> Result<Statement> {
    let place = tokens.first().and_then(|token| Position::of_span(token.span));
    let position = place.unwrap_or(Position { line: 1, column: 1 });
    let read = room::with_room(tokens.to_vec(), |tokens| kind::read(tokens, &text));
    let (kind, depth) = read?;
    Ok(Statement { kind, text, position, depth })
}

/// The direction of FETCH.
fn steps(parser: &mut Parser<'_>) -> Result<Steps> {
    let words = [
        Keyword::NEXT,
        Keyword::ALL,
        Keyword::FORWARD,
        Keyword::PRIOR,
        Keyword::FIRST,
        Keyword::LAST,
        Keyword::ABSOLUTE,
        Keyword::RELATIVE,
        Keyword::BACKWARD,
    ];
    match parser.parse_one_of_keywords(&words) {
        None => Ok(count(parser)?.unwrap_or(Steps::Forward(1))),
        Some(Keyword::NEXT) => Ok(Steps::Forward(1)),
        Some(Keyword::ALL) => Ok(Steps::All),
        Some(Keyword::FORWARD) => Ok(count(parser)?.unwrap_or(Steps::Forward(1))),
        Some(_) => {
            count(parser)?;
            Ok(Steps::Elsewhere)
        }
    }
}

/// Whether the next token is the last of a name: nothing follows it, or only options do.
fn ends_name(parser: &Parser<'_>) -> bool {
    let [behind, last] = [1, 2].map(|place| &parser.peek_nth_token_ref(place).token);
    *behind == Token::EOF || (keyword(behind) == Keyword::WITH && *last == Token::LParen)
}

/// The time that FETCH gives changes to come, if it says one.
fn timeout(parser: &mut Parser<'_>) -> Result<Option<Setting>> {
    if !parser.parse_keyword(Keyword::WITH) {
        return Ok(None);
    }
    let mut timeout = None;
    for option in option_list::bracketed(parser).map_err(syntax_error)? {
        if !option.name.eq_ignore_ascii_case("timeout") {
            let message = format!("FETCH has no option \"{}\": there is TIMEOUT", option.name);
            return Err(Error::new(message, option.position).with_sqlstate(SqlState::INVALID_VALUE));
        }
        timeout = Some(option);
    }
    Ok(timeout)
}

/// A number of rows, or ALL, if there is one.
fn count(parser: &mut Parser<'_>) -> Result<Option<Steps>> {
    if parser.parse_keyword(Keyword::ALL) {
        return Ok(Some(Steps::All));
    }
    let is_negative = parser.consume_token(&Token::Minus);
    let _ = is_negative || parser.consume_token(&Token::Plus);
    if !is_negative && !matches!(parser.peek_token_ref().token, Token::Number(..)) {
        return Ok(None);
    }
    let rows = parser.parse_literal_uint().map_err(syntax_error)?;
    // FETCH 0 is the row before the next one.
    Ok(Some(if is_negative || rows == 0 { Steps::Elsewhere } else { Steps::Forward(rows) }))
}

fn named_or_all(parser: &mut Parser<'_>) -> Result<Option<Named>> {
    if parser.parse_keyword(Keyword::ALL) {
        return Ok(None);
    }
    named(parser).map(Some)
}

/// A name, as of a savepoint, a cursor or a prepared statement.
pub(super) fn named(parser: &mut Parser<'_>) -> Result<Named> {
    let name = parser.parse_identifier().map_err(syntax_error)?;
    let position = Position::of_span(name.span).unwrap_or(Position { line: 1, column: 1 });
    Ok(Named { name: fold(&name), position })
}

/// Whether it is the word MOVE, which is no keyword of the parser.
fn is_move(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("MOVE"))
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The elements of a list of types.
fn separated(tokens: &[TokenWithSpan]) -> Vec<Vec<Token>> {
    let (mut all, mut depth) = (vec![Vec::new()], 0_usize);
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::LParen | Token::Lt | Token::LBracket => depth += 1,
            Token::RParen | Token::Gt | Token::RBracket => depth = depth.saturating_sub(1),
            Token::ShiftRight => depth = depth.saturating_sub(2),
            Token::Comma if depth == 0 => {
                all.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(token.clone());
        }
    }
    all
}

/// The type that is given for a parameter; `None` as well if it is `unknown`.
fn type_of<'a>(token: &Token, types: &'a [Vec<Token>]) -> Option<&'a [Token]> {
    let Token::Placeholder(name) = token else { return None };
    let number: usize = name.strip_prefix('$')?.parse().ok()?;
    let data_type = types.get(number.checked_sub(1)?)?;
    match &data_type[..] {
        [Token::Word(word)] if word.value.eq_ignore_ascii_case("unknown") => None,
        data_type => Some(data_type),
    }
}

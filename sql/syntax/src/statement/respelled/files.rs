//! Files with options in FROM, and DuckDB's functions that read files.
//!
//! `FROM 'x.csv' (DELIMITER ';')` and `FROM read_csv('x.csv', delim = ';')` become one text, as `FROM 'x.csv'` has, that is the
//! [name of a file](crate::statement::FileName) with its options.

use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_keyword;
use crate::error::Position;
use crate::statement::connector::Setting;
use crate::statement::connector::option_list;
use crate::statement::file::FileName;

/// DuckDB's functions, and the format of each.
const FUNCTIONS: [(&str, &str); 9] = [
    ("parquet_scan", "parquet"),
    ("read_csv", "csv"),
    ("read_csv_auto", "csv"),
    ("read_json", "json"),
    ("read_json_auto", "json"),
    ("read_json_objects_auto", "json"),
    ("read_ndjson", "jsonl"),
    ("read_ndjson_auto", "jsonl"),
    ("read_parquet", "parquet"),
];

/// The tokens of a statement with files as texts.
pub(super) fn respell(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // COPY and CREATE TABLE have options of their own.
    let reads = [Keyword::SELECT, Keyword::USING, Keyword::UPDATE];
    let start = tokens
        .iter()
        .position(|token| reads.iter().any(|keyword| is_keyword(Some(token), *keyword)));
    let start = if is_keyword(tokens.first(), Keyword::DESCRIBE) { Some(0) } else { start };
    let Some(start) = start else { return tokens };
    let mut respelled: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let found = if at > start { file(&tokens, at) } else { None };
        let span = tokens[at].span;
        match found {
            Some((name, end)) => {
                let token = Token::SingleQuotedString(name.written());
                respelled.push(TokenWithSpan { token, span });
                at = end;
            }
            None => {
                respelled.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    respelled
}

/// The file that begins here, and where the tokens after it do.
fn file(tokens: &[TokenWithSpan], at: usize) -> Option<(FileName, usize)> {
    let before = &tokens[at.checked_sub(1)?];
    let follows = [Keyword::FROM, Keyword::JOIN, Keyword::USING, Keyword::DESCRIBE]
        .iter()
        .any(|keyword| is_keyword(Some(before), *keyword));
    if tokens.get(at + 1)?.token != Token::LParen || !follows && before.token != Token::Comma {
        return None;
    }
    let rest = tokens[at + 1..].to_vec();
    let mut parser = Parser::new(&GenericDialect {}).with_tokens_with_locations(rest);
    let name = match &tokens[at].token {
        Token::SingleQuotedString(path) => {
            let options = option_list::bracketed(&mut parser).ok()?;
            FileName { paths: vec![path.clone()], options }
        }
        Token::Word(word) if word.quote_style.is_none() => {
            let name = word.value.to_ascii_lowercase();
            let (_, format) = FUNCTIONS.iter().find(|(function, _)| *function == name)?;
            let (paths, mut options) = option_list::arguments(&mut parser).ok()?;
            let position = Position::of_span(tokens[at].span)?;
            let (name, value) = ("FORMAT".to_owned(), (*format).to_owned());
            options.insert(0, Setting { name, value, position });
            FileName { paths, options }
        }
        _ => return None,
    };
    Some((name, at + 1 + parser.index()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::respelled;
    use super::*;

    #[test]
    fn files_are_one_text_and_nothing_else_changes() {
        for (sql, expected) in [
            ("SELECT a FROM 'x.csv' (DELIMITER ';')", "SELECT a FROM 'x.csv|DELIMITER=;'"),
            (
                "SELECT a FROM t, read_csv(['x', 'y'], nullstr = ['NA', '-'], header := true) AS r",
                "SELECT a FROM t , 'x+y|FORMAT=csv|nullstr=[\"NA\",\"-\"]|header=true' AS r",
            ),
            ("COPY t FROM 'x.csv' (HEADERS)", "COPY t FROM 'x.csv' ( HEADERS )"),
            ("SELECT 'x' IN ('a')", "SELECT 'x' IN ( 'a' )"),
            ("SELECT read_csv FROM read_csv", "SELECT read_csv FROM read_csv"),
        ] {
            let found = respelled(sql, respell).replace('\u{1F}', "|").replace('\u{1E}', "+");
            assert_eq!(found, expected, "{sql}");
        }
    }
}

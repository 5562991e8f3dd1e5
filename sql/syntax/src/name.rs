//! The names of relations.
//!
//! A relation has a name in a schema. Here and in the engine it goes by one text: `t` in the default schema, [`SCHEMA`], and
//! `s.t` in another one. A part with a dot or a quote in it stands in quotes, so that `s.t` is not `"s.t"`.

use datafusion_common::TableReference;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::{
    ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_IDENTIFIER,
    RESERVED_FOR_TABLE_ALIAS,
};

use crate::error::{Error, Position, Result};

/// The name of the database, which is the only one.
pub const DATABASE: &str = "alluvium";

/// The default schema.
pub const SCHEMA: &str = "public";

/// The schema of temporary tables: each session has its own.
pub const TEMPORARY: &str = "pg_temp";

/// Whether the relation that goes by a text is a temporary table.
pub fn is_temporary(relation: &str) -> bool {
    relation.strip_prefix(TEMPORARY).is_some_and(|name| name.starts_with('.'))
}

/// The schemas of the engine's own relations.
pub const OWN_SCHEMAS: [&str; 2] = ["alluvium", "information_schema"];

/// The text by which a relation goes; without a schema it is in the default one.
pub fn qualified(schema: Option<&str>, name: &str) -> String {
    match schema.filter(|schema| *schema != SCHEMA) {
        None => part(name),
        Some(schema) => format!("{}.{}", part(schema), part(name)),
    }
}

fn part(name: &str) -> String {
    match name.is_empty() || name.contains(['.', '"']) {
        true => Ident::with_quote('"', name).to_string(),
        false => name.to_owned(),
    }
}

/// A name in a statement: of a savepoint, a cursor, a prepared statement or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The folded name.
    pub name: String,
    /// Where it stands.
    pub position: Position,
}

/// The schema and the name of the relation that goes by a text.
pub fn split(relation: &str) -> (String, String) {
    let mut parts = parts(relation);
    let name = parts.pop().unwrap_or_default();
    (parts.pop().unwrap_or_else(|| SCHEMA.to_owned()), name)
}

/// The parts of a name, without their quotes.
fn parts(relation: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut letters, mut is_quoted) = (relation.chars().peekable(), false);
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => letters.next(),
            '"' => {
                is_quoted = !is_quoted;
                continue;
            }
            '.' if !is_quoted => {
                parts.push(String::new());
                continue;
            }
            _ => None,
        };
        parts.last_mut().into_iter().for_each(|part| part.push(letter));
    }
    parts
}

/// The text by which a relation goes whose name stands in a text of SQL, as in `nextval('s.t')`.
pub fn of_text(text: &str) -> String {
    let (schema, name) = parts_of_text(text);
    qualified(schema.as_deref(), &name)
}

/// As [`of_text`], the schema, if there is one, and the name. Letters outside of quotes become small ones.
pub fn parts_of_text(text: &str) -> (Option<String>, String) {
    let mut is_quoted = false;
    let fold = |letter: char| {
        is_quoted ^= letter == '"';
        if is_quoted { letter } else { letter.to_ascii_lowercase() }
    };
    let folded: String = text.trim().chars().map(fold).collect();
    let mut parts = parts(&folded);
    let name = parts.pop().unwrap_or_default();
    (parts.pop(), name)
}

/// The text by which a relation goes that a program names: `public.t` is `t`.
pub fn short(relation: &str) -> &str {
    let is_in_default = |name: &&str| name.strip_prefix(SCHEMA)?.strip_prefix('.').map(drop);
    let without = |name: &&str| is_in_default(name).map(|()| SCHEMA.len() + 1);
    match without(&relation) {
        Some(start) => &relation[start..],
        None => relation,
    }
}

/// A name as SQL spells it: in quotes where it needs them.
pub fn spelled(name: &str) -> String {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    match is_word && !is_reserved(name) {
        true => name.to_owned(),
        false => Ident::with_quote('"', name).to_string(),
    }
}

/// Words that begin something else where a name may stand, besides those that the parser lists.
const RESERVED: &[Keyword] = &[
    Keyword::ALL,
    Keyword::ARRAY,
    Keyword::CASE,
    Keyword::CAST,
    Keyword::CHECK,
    Keyword::CONSTRAINT,
    Keyword::DISTINCT,
    Keyword::EXISTS,
    Keyword::FOREIGN,
    Keyword::FULLTEXT,
    Keyword::IF,
    Keyword::INDEX,
    Keyword::INTERVAL,
    Keyword::KEY,
    Keyword::NOT,
    Keyword::NULL,
    Keyword::PRIMARY,
    Keyword::SPATIAL,
    Keyword::TABLE,
    Keyword::TRUE,
    Keyword::TRY_CAST,
    Keyword::UNIQUE,
    Keyword::UNNEST,
    Keyword::VALUES,
];

fn is_reserved(word: &str) -> bool {
    let found = ALL_KEYWORDS.binary_search(&&*word.to_ascii_uppercase());
    let lists: [&[Keyword]; 5] = [
        RESERVED,
        &CLAUSES,
        RESERVED_FOR_COLUMN_ALIAS,
        RESERVED_FOR_IDENTIFIER,
        RESERVED_FOR_TABLE_ALIAS,
    ];
    found.is_ok_and(|place| lists.iter().any(|list| list.contains(&ALL_KEYWORDS_INDEX[place])))
}

/// The relation that goes by a text as SQL spells it.
pub fn written(relation: &str) -> String {
    match split(relation) {
        (schema, name) if schema == SCHEMA => spelled(&name),
        (schema, name) => format!("{}.{}", spelled(&schema), spelled(&name)),
    }
}

/// The text by which the relation goes that a statement names.
pub fn of_object(name: &ObjectName) -> Result<String> {
    let parts = name.0.iter().map(|part| part.as_ident().map(fold));
    let parts: Option<Vec<String>> = parts.collect();
    let position = Position::of(name);
    let parts =
        parts.ok_or_else(|| Error::new(format!("\"{name}\" is not a valid name"), position))?;
    of_parts(&parts.iter().map(String::as_str).collect::<Vec<_>>())
        .map_err(|error| error.at(position))
}

/// The text by which the relation goes that DataFusion's planner refers to.
pub fn of_reference(reference: &TableReference) -> Result<String> {
    let parts = [reference.catalog(), reference.schema(), Some(reference.table())];
    of_parts(&parts.into_iter().flatten().collect::<Vec<_>>())
}

fn of_parts(parts: &[&str]) -> Result<String> {
    match parts {
        [name] => Ok(qualified(None, name)),
        [schema, name] | [DATABASE, schema, name] => Ok(qualified(Some(schema), name)),
        [database, _, _] => {
            let message = format!(
                "there is no database \"{database}\": the only one is \"{DATABASE}\", and a name is schema.relation"
            );
            Err(Error::new(message, None))
        }
        _ => {
            let message = format!("\"{}\" is not the name of a relation", parts.join("."));
            Err(Error::new(message, None))
        }
    }
}

/// A folded identifier: unquoted ones are in lower case.
pub fn fold(identifier: &Ident) -> String {
    match identifier.quote_style {
        Some(_) => identifier.value.clone(),
        None => identifier.value.to_ascii_lowercase(),
    }
}

/// The name of a relation that is created, dropped or written to, and its position.
pub fn relation_name(name: &ObjectName) -> Result<(String, Position)> {
    let position = Position::of(name).unwrap_or(Position { line: 1, column: 1 });
    Ok((of_object(name).map_err(|error| error.at(Some(position)))?, position))
}

/// Words that begin no expression. The parser would take them for columns: `a + FROM t` for the sum of two.
pub const CLAUSES: [Keyword; 15] = [
    Keyword::AND,
    Keyword::AS,
    Keyword::ELSE,
    Keyword::EXCEPT,
    Keyword::FROM,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::INTERSECT,
    Keyword::JOIN,
    Keyword::ON,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::THEN,
    Keyword::UNION,
    Keyword::WHERE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_names_as_they_are_spelled() {
        let is_read = |sql: &str, name: &str| match crate::statement::parse(sql).next() {
            Some(Ok(statement)) => match statement.kind {
                crate::statement::StatementKind::CreateTable(table) => {
                    table.name == name && table.schema.field(0).name() == name
                }
                _ => true,
            },
            _ => false,
        };
        let fails = |name: &String| {
            let word = spelled(name);
            let create = format!("CREATE TABLE {word} ({word} INT)");
            let select = format!("SELECT {word}.{word} FROM {word}");
            !is_read(&create, name) || !is_read(&select, name)
        };
        let words = ALL_KEYWORDS.iter().map(|word| word.to_ascii_lowercase());
        let words: Vec<String> = words.filter(fails).collect();
        assert_eq!(words, [""; 0]);
        assert_eq!(spelled("name"), "name");
    }

    #[test]
    fn each_relation_goes_by_a_text_of_its_own() {
        let names = ["t", "a.b", "a\"b", "", "\"", "s", "Select", "ü.", "public"];
        let schemas = ["public", "s", "a.b", "\"s\"", ""];
        let mut texts = std::collections::BTreeSet::new();
        for schema in schemas {
            for name in names {
                let text = qualified(Some(schema), name);
                assert_eq!(split(&text), (schema.to_owned(), name.to_owned()), "{text}");
                assert!(texts.insert(text));
            }
        }
        assert_eq!(qualified(None, "t"), "t");
        assert_eq!(qualified(Some("s"), "t"), "s.t");
        assert_eq!(qualified(None, "s.t"), "\"s.t\"");
        assert_eq!((short("public.t"), short("public"), short("s.t")), ("t", "public", "s.t"));
        assert_eq!(written("s.t"), "s.t");
        assert_eq!(written("Select.a"), "\"Select\".a");
        assert_eq!(written("\"s.t\""), "\"s.t\"");
        assert_eq!((&*spelled("select"), &*spelled("a b")), ("\"select\"", "\"a b\""));
    }
}

//! Rights of roles: `GRANT`, `REVOKE`, and `OWNER TO`.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::role;
use crate::error::{Error, Position, Result, SqlState};
use crate::name::{self, relation_name};
use crate::statement::function::function_name;
use crate::statement::schema::schema_name;
use crate::statement::syntax_error::{place, syntax_error};
use crate::statement::{Named, StatementKind};

/// `GRANT` or `REVOKE`.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Whether it revokes.
    pub revokes: bool,
    /// The rights.
    pub granted: Granted,
    /// The roles that get them or lose them; [`PUBLIC`](super::PUBLIC) is all.
    pub roles: Vec<Named>,
}

/// The rights of a [`Grant`].
#[derive(Clone, Debug)]
pub enum Granted {
    /// Those of being members of roles.
    Membership(Vec<Named>),
    /// Privileges on objects.
    Privileges {
        /// Which; `None` is `ALL`.
        privileges: Option<Vec<Privilege>>,
        /// On which objects.
        objects: Vec<GrantObject>,
    },
}

/// An object that roles have privileges on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantObject {
    /// Its kind.
    pub kind: GrantKind,
    /// Its name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
}

/// The kinds of objects that roles have privileges on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantKind {
    /// A table or a view.
    Relation,
    /// All tables and views that a schema has when the statement runs.
    AllRelations,
    /// A schema: privileges on rows are those on all of its relations, now and later.
    Schema,
    /// A sequence.
    Sequence,
    /// A function.
    Function,
    /// The database.
    Database,
    /// A secret.
    Secret,
    /// A connection.
    Connection,
}

impl GrantKind {
    /// As SQL has it before the name.
    pub fn words(self) -> &'static str {
        match self {
            Self::Relation => "TABLE",
            Self::AllRelations => "ALL TABLES IN SCHEMA",
            Self::Schema => "SCHEMA",
            Self::Sequence => "SEQUENCE",
            Self::Function => "FUNCTION",
            Self::Database => "DATABASE",
            Self::Secret => "SECRET",
            Self::Connection => "CONNECTION",
        }
    }
}

/// A privilege on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Privilege {
    /// Reading rows, and subscribing to their changes.
    Select,
    /// Inserting rows.
    Insert,
    /// Updating rows.
    Update,
    /// Deleting rows.
    Delete,
    /// Naming what is in a schema, a secret or a connection, and taking values of a sequence.
    Usage,
    /// Creating something in a schema, or schemas in the database.
    Create,
    /// Connecting to the database.
    Connect,
    /// Creating temporary tables.
    Temporary,
}

impl Privilege {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Select,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Usage,
        Self::Create,
        Self::Connect,
        Self::Temporary,
    ];

    /// Its word in SQL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Usage => "USAGE",
            Self::Create => "CREATE",
            Self::Connect => "CONNECT",
            Self::Temporary => "TEMPORARY",
        }
    }

    /// Whether objects of a kind have it.
    pub fn is_of(self, kind: GrantKind) -> bool {
        use Privilege::{Connect, Create, Delete, Insert, Select, Temporary, Update, Usage};
        match kind {
            GrantKind::Relation | GrantKind::AllRelations => {
                matches!(self, Select | Insert | Update | Delete)
            }
            GrantKind::Schema => {
                matches!(self, Select | Insert | Update | Delete | Usage | Create)
            }
            GrantKind::Sequence => matches!(self, Usage | Select | Update),
            // All roles may call all functions.
            GrantKind::Function => false,
            GrantKind::Database => matches!(self, Connect | Create | Temporary),
            GrantKind::Secret | GrantKind::Connection => matches!(self, Usage),
        }
    }
}

/// `ALTER … OWNER TO`
#[derive(Clone, Debug)]
pub struct OwnerChange {
    /// What gets another owner.
    pub object: GrantObject,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// The owner.
    pub owner: Named,
}

/// Reads `GRANT` or `REVOKE`, which starts at `start`.
pub(in crate::statement) fn read(
    parser: &mut Parser<'_>,
    start: Option<Position>,
) -> Result<StatementKind> {
    let revokes = parser.parse_keyword(Keyword::REVOKE);
    if !revokes {
        parser.advance_token();
    }
    if parser.parse_keywords(&[Keyword::GRANT, Keyword::OPTION]) {
        return Err(Error::not_supported("REVOKE GRANT OPTION", start));
    }
    let granted = match is_of_objects(parser) {
        true => {
            let privileges = privileges(parser)?;
            parser.expect_keyword_is(Keyword::ON).map_err(syntax_error)?;
            let objects = objects(parser)?;
            check(privileges.as_deref(), &objects)?;
            let privileges =
                privileges.map(|all| all.into_iter().map(|(privilege, _)| privilege).collect());
            Granted::Privileges { privileges, objects }
        }
        false => Granted::Membership(role::roles(parser)?),
    };
    if let Granted::Privileges { objects, .. } = &granted
        && objects.iter().any(|object| object.kind == GrantKind::Function)
    {
        let what = "a privilege on a function (all roles may call all functions)";
        return Err(Error::not_supported(what, start));
    }
    let to = if revokes { Keyword::FROM } else { Keyword::TO };
    parser.expect_keyword_is(to).map_err(syntax_error)?;
    // GROUP is an old word before a role.
    let _ = parser.parse_keyword(Keyword::GROUP);
    let roles = role::roles(parser)?;
    if parser.parse_keyword(Keyword::WITH) {
        return Err(Error::not_supported("GRANT … WITH an option", start));
    }
    // Rights cannot be handed on, so none depends on another.
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(StatementKind::Grant(Box::new(Grant { revokes, granted, roles })))
}

/// Whether there is an ON before the roles.
fn is_of_objects(parser: &Parser<'_>) -> bool {
    let mut number = 0;
    loop {
        match &parser.peek_nth_token_ref(number).token {
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::ON => {
                return true;
            }
            Token::Word(word)
                if word.quote_style.is_none()
                    && matches!(word.keyword, Keyword::TO | Keyword::FROM) =>
            {
                return false;
            }
            Token::EOF => return false,
            _ => number += 1,
        }
    }
}

type Privileges = Vec<(Privilege, Position)>;

/// The privileges, with where they are named; `None` is ALL.
fn privileges(parser: &mut Parser<'_>) -> Result<Option<Privileges>> {
    if parser.parse_keyword(Keyword::ALL) {
        let _ = parser.parse_keyword(Keyword::PRIVILEGES);
        return Ok(None);
    }
    let mut privileges = Vec::new();
    loop {
        let position = place(parser);
        let word = parser.next_token().token.to_string().to_uppercase();
        let word = if word == "TEMP" { "TEMPORARY".to_owned() } else { word };
        let known = Privilege::ALL.into_iter().find(|privilege| privilege.word() == word);
        match (known, &*word) {
            (Some(privilege), _) => privileges.push((privilege, position)),
            // There are no foreign keys and triggers to grant them for, and TRUNCATE is a DELETE.
            (None, "REFERENCES" | "TRIGGER" | "TRUNCATE") => {}
            (None, _) => {
                let message = format!("{word} is no privilege");
                return Err(Error::new(message, position).with_sqlstate(SqlState::SYNTAX));
            }
        }
        if parser.peek_token_ref().token == Token::LParen {
            return Err(Error::not_supported("a privilege on columns", place(parser)));
        }
        if !parser.consume_token(&Token::Comma) {
            return Ok(Some(privileges));
        }
    }
}

fn objects(parser: &mut Parser<'_>) -> Result<Vec<GrantObject>> {
    let kind = if parser.parse_keyword(Keyword::ALL) {
        parser.expect_keyword_is(Keyword::TABLES).map_err(syntax_error)?;
        for word in [Keyword::IN, Keyword::SCHEMA] {
            parser.expect_keyword_is(word).map_err(syntax_error)?;
        }
        GrantKind::AllRelations
    } else {
        let kinds = [
            Keyword::TABLE,
            Keyword::SCHEMA,
            Keyword::SEQUENCE,
            Keyword::FUNCTION,
            Keyword::DATABASE,
        ];
        // These name tables as well: GRANT SELECT ON secret TO r.
        let others = [Keyword::SECRET, Keyword::CONNECTION];
        let found = match is_followed_by_name(parser) {
            true => parser.parse_one_of_keywords(&others),
            false => None,
        };
        match found.or_else(|| parser.parse_one_of_keywords(&kinds)) {
            Some(Keyword::SCHEMA) => GrantKind::Schema,
            Some(Keyword::SEQUENCE) => GrantKind::Sequence,
            Some(Keyword::FUNCTION) => GrantKind::Function,
            Some(Keyword::DATABASE) => GrantKind::Database,
            Some(Keyword::SECRET) => GrantKind::Secret,
            Some(Keyword::CONNECTION) => GrantKind::Connection,
            _ => GrantKind::Relation,
        }
    };
    let mut objects = vec![object(parser, kind)?];
    while parser.consume_token(&Token::Comma) {
        objects.push(object(parser, kind)?);
    }
    Ok(objects)
}

/// Whether a name comes after the next word.
fn is_followed_by_name(parser: &Parser<'_>) -> bool {
    match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => {
            word.quote_style.is_some() || !matches!(word.keyword, Keyword::TO | Keyword::FROM)
        }
        _ => false,
    }
}

/// The name of an object of a kind.
fn object(parser: &mut Parser<'_>, kind: GrantKind) -> Result<GrantObject> {
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, position) = match kind {
        GrantKind::Relation | GrantKind::Sequence => relation_name(&name)?,
        GrantKind::AllRelations | GrantKind::Schema | GrantKind::Database => schema_name(&name)?,
        GrantKind::Secret | GrantKind::Connection => schema_name(&name)?,
        GrantKind::Function => {
            let named = function_name(&name)?;
            // There is one of a name, whatever it takes.
            if parser.consume_token(&Token::LParen) {
                while !parser.consume_token(&Token::RParen) {
                    let found = parser.next_token();
                    if found.token == Token::EOF {
                        let error = parser.expected::<()>(")", found);
                        return Err(syntax_error(error.expect_err("it is an error")));
                    }
                }
            }
            named
        }
    };
    Ok(GrantObject { kind, name, position })
}

/// Fails if there is a privilege that the objects do not have.
fn check(privileges: Option<&[(Privilege, Position)]>, objects: &[GrantObject]) -> Result<()> {
    for (privilege, position) in privileges.into_iter().flatten() {
        for object in objects {
            if !privilege.is_of(object.kind) {
                let (word, kind) = (privilege.word(), object.kind.words());
                let message = format!("there is no privilege {word} on {kind} …");
                return Err(Error::new(message, *position).with_sqlstate(SqlState::INVALID_GRANT));
            }
        }
    }
    Ok(())
}

/// Whether an ALTER ends with `OWNER TO role`.
pub(in crate::statement) fn is_of_owner(words: &[String]) -> bool {
    matches!(words, [owner, to, _] if owner == "OWNER" && to == "TO")
}

/// Reads `ALTER … OWNER TO`, which starts at `start`.
pub(in crate::statement) fn owner(
    parser: &mut Parser<'_>,
    start: Option<Position>,
) -> Result<StatementKind> {
    parser.advance_token();
    let kinds = [
        Keyword::TABLE,
        Keyword::VIEW,
        Keyword::MATERIALIZED,
        Keyword::SCHEMA,
        Keyword::SEQUENCE,
        Keyword::FUNCTION,
        Keyword::SECRET,
        Keyword::CONNECTION,
    ];
    let kind = match parser.parse_one_of_keywords(&kinds) {
        Some(Keyword::SCHEMA) => GrantKind::Schema,
        Some(Keyword::SEQUENCE) => GrantKind::Sequence,
        Some(Keyword::FUNCTION) => GrantKind::Function,
        Some(Keyword::SECRET) => GrantKind::Secret,
        Some(Keyword::CONNECTION) => GrantKind::Connection,
        Some(Keyword::MATERIALIZED) => {
            parser.expect_keyword_is(Keyword::VIEW).map_err(syntax_error)?;
            GrantKind::Relation
        }
        Some(_) => GrantKind::Relation,
        None => return Err(Error::not_supported("ALTER … OWNER TO of this", start)),
    };
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let object = object(parser, kind)?;
    for word in [Keyword::OWNER, Keyword::TO] {
        parser.expect_keyword_is(word).map_err(syntax_error)?;
    }
    let owner = role::role(parser)?;
    Ok(StatementKind::SetOwner(Box::new(OwnerChange { object, if_exists, owner })))
}

fn verbs(revokes: bool) -> (&'static str, &'static str) {
    if revokes { ("REVOKE", "FROM") } else { ("GRANT", "TO") }
}

/// The name of an object as SQL has it.
fn spelled(kind: GrantKind, name: &str) -> String {
    match kind {
        GrantKind::Relation | GrantKind::Sequence => name::written(name),
        _ => name::spelled(name),
    }
}

impl Grant {
    /// The statement that gives a role privileges on an object, or takes them.
    pub fn statement(
        revokes: bool,
        privileges: impl IntoIterator<Item = Privilege>,
        (kind, name): (GrantKind, &str),
        role: &str,
    ) -> String {
        let words: Vec<&str> = privileges.into_iter().map(Privilege::word).collect();
        let (words, kind, name) = (words.join(", "), kind.words(), spelled(kind, name));
        let (verb, to) = verbs(revokes);
        format!("{verb} {words} ON {kind} {name} {to} {}", name::spelled(role))
    }

    /// The statement that makes a role a member of another one, or ends that.
    pub fn membership(revokes: bool, of: &str, member: &str) -> String {
        let (verb, to) = verbs(revokes);
        format!("{verb} {} {to} {}", name::spelled(of), name::spelled(member))
    }
}

impl OwnerChange {
    /// The statement that gives an object an owner.
    pub fn statement((kind, name): (GrantKind, &str), owner: &str) -> String {
        let (kind, name) = (kind.words(), spelled(kind, name));
        format!("ALTER {kind} {name} OWNER TO {}", name::spelled(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    fn read(sql: &str) -> std::result::Result<Grant, String> {
        match parse(sql).next().expect("a statement") {
            Ok(statement) => match statement.kind {
                StatementKind::Grant(grant) => Ok(*grant),
                other => Err(format!("{other:?}")),
            },
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn grants_are_read_as_they_are_written() {
        let grant = read("GRANT SELECT, INSERT ON s.t, \"U\" TO a, public").unwrap();
        let Granted::Privileges { privileges, objects } = &grant.granted else {
            panic!("{grant:?}")
        };
        assert_eq!(privileges.as_deref(), Some(&[Privilege::Select, Privilege::Insert][..]));
        let objects: Vec<_> = objects.iter().map(|of| (of.kind, &*of.name)).collect();
        assert_eq!(objects, [(GrantKind::Relation, "s.t"), (GrantKind::Relation, "U")]);
        let text = Grant::statement(false, [Privilege::Select], objects[1], "A role");
        assert_eq!(text, "GRANT SELECT ON TABLE \"U\" TO \"A role\"");
        assert!(read(&text).is_ok());
        let grant = read("REVOKE ALL PRIVILEGES ON ALL TABLES IN SCHEMA s FROM r CASCADE").unwrap();
        assert!(grant.revokes);
        assert!(matches!(grant.granted, Granted::Privileges { privileges: None, .. }));
        let grant = read("GRANT a, b TO c").unwrap();
        assert!(matches!(grant.granted, Granted::Membership(roles) if roles.len() == 2));
    }

    #[test]
    fn wrong_grants_are_refused() {
        for sql in [
            "GRANT USAGE ON t TO r",
            "GRANT SELECT (a) ON t TO r",
            "GRANT FLY ON t TO r",
            "GRANT ALL ON FUNCTION f(int, text) TO r",
            "GRANT SELECT ON t TO r WITH GRANT OPTION",
            "GRANT CREATE ON SEQUENCE q TO r",
            "GRANT SELECT ON t",
            "GRANT",
        ] {
            assert!(read(sql).is_err(), "{sql}");
        }
    }
}

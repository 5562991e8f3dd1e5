//! Roles: `CREATE ROLE`, `ALTER ROLE`, `DROP ROLE`, and `SET ROLE`.

use std::fmt;

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::error::{Error, Position, Result, SqlState};
use crate::name::{self, fold};
use crate::statement::syntax_error::{place, syntax_error};
use crate::statement::{Named, StatementKind};

/// The name that stands for all roles in GRANT and REVOKE.
pub const PUBLIC: &str = "public";

/// A role that is created or altered.
#[derive(Clone, Debug)]
pub struct RoleDefinition {
    /// Its folded name.
    pub name: Named,
    /// Whether it may be there already.
    pub if_not_exists: bool,
    /// Its options.
    pub options: RoleOptions,
    /// `IN ROLE`: the roles that it becomes a member of.
    pub member_of: Vec<Named>,
    /// `ROLE`: the roles that become members of it.
    pub members: Vec<Named>,
}

/// Options of a role; `None` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// `SUPERUSER`: it may do everything.
    pub superuser: Option<bool>,
    /// `CREATEROLE`: it may create, alter and drop roles that are no superusers.
    pub create_role: Option<bool>,
    /// `LOGIN`: clients may connect as this role.
    pub login: Option<bool>,
    /// `CONNECTION LIMIT`: how many clients may be connected as this role; -1 is any number.
    pub connection_limit: Option<i64>,
    /// `PASSWORD`, or its verifier; `PASSWORD NULL` is `Some(None)`.
    pub password: Option<Option<Password>>,
    /// `VALID UNTIL`: when the password ends to be valid, as it is written.
    pub valid_until: Option<String>,
}

/// A password, or the verifier of one. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// `SET ROLE` or `SET SESSION AUTHORIZATION`, and their RESET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// The role; `None` is the one that the session began with.
    pub role: Option<Named>,
    /// Whether it is the role of the session, by `SET SESSION AUTHORIZATION`, in place of that of its statements.
    pub is_of_session: bool,
}

/// Reads `CREATE ROLE`, `CREATE USER` or `CREATE GROUP`.
pub(in crate::statement) fn create(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    let is_user = word(parser) == "USER";
    parser.advance_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = new_role(parser)?;
    let mut definition = options(parser, name, true)?;
    definition.if_not_exists = if_not_exists;
    if is_user && definition.options.login.is_none() {
        definition.options.login = Some(true);
    }
    Ok(StatementKind::CreateRole(Box::new(definition)))
}

/// Reads `ALTER ROLE` or `ALTER USER`.
pub(in crate::statement) fn alter(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    parser.advance_token();
    let name = role(parser)?;
    Ok(StatementKind::AlterRole(Box::new(options(parser, name, false)?)))
}

/// Reads `DROP ROLE`, `DROP USER` or `DROP GROUP`.
pub(in crate::statement) fn drop(parser: &mut Parser<'_>) -> Result<StatementKind> {
    parser.advance_token();
    parser.advance_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    Ok(StatementKind::DropRole { roles: roles(parser)?, if_exists })
}

/// Reads what comes after `SET [SESSION | LOCAL] ROLE` or `SET SESSION AUTHORIZATION`.
pub(in crate::statement) fn set(
    parser: &mut Parser<'_>,
    is_of_session: bool,
) -> Result<StatementKind> {
    let is_none = match is_of_session {
        true => parser.parse_keyword(Keyword::DEFAULT),
        false => parser.parse_keyword(Keyword::NONE),
    };
    let role = match is_none {
        true => None,
        false => Some(role(parser)?),
    };
    Ok(StatementKind::SetRole(RoleChange { role, is_of_session }))
}

/// The names of roles, with commas between them.
pub(in crate::statement) fn roles(parser: &mut Parser<'_>) -> Result<Vec<Named>> {
    let mut roles = vec![role(parser)?];
    while parser.consume_token(&Token::Comma) {
        roles.push(role(parser)?);
    }
    Ok(roles)
}

/// The name of a role: a word, or a text in quotes as `SET ROLE 'name'` has it.
pub(in crate::statement) fn role(parser: &mut Parser<'_>) -> Result<Named> {
    let position = place(parser);
    let name = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(name) => {
            let name = name.clone();
            parser.advance_token();
            name
        }
        _ => fold(&parser.parse_identifier().map_err(syntax_error)?),
    };
    Ok(Named { name, position })
}

/// A name for a role, which must not be one that stands for something else.
fn new_role(parser: &mut Parser<'_>) -> Result<Named> {
    let named = role(parser)?;
    let name = &named.name;
    if name.is_empty() || name == PUBLIC || name == "none" || name.starts_with("pg_") {
        let message = format!("a role cannot have the name \"{name}\": it is reserved");
        return Err(Error::new(message, named.position).with_sqlstate(SqlState::RESERVED_NAME));
    }
    Ok(named)
}

fn options(parser: &mut Parser<'_>, name: Named, creates: bool) -> Result<RoleDefinition> {
    let (options, member_of, members) = Default::default();
    let mut read = RoleDefinition { name, if_not_exists: false, options, member_of, members };
    let _ = parser.parse_keyword(Keyword::WITH);
    while let Token::Word(option) = &parser.peek_token_ref().token {
        let (option, position) = (option.value.to_uppercase(), place(parser));
        parser.advance_token();
        if !read.options.flag(&option, position)? {
            read.option(parser, &option, position, creates)?;
        }
    }
    Ok(read)
}

impl RoleOptions {
    /// Notes an option of one word; `false` if it is none.
    fn flag(&mut self, option: &str, position: Position) -> Result<bool> {
        let (flag, value) = match option {
            "SUPERUSER" => (&mut self.superuser, true),
            "NOSUPERUSER" => (&mut self.superuser, false),
            "CREATEROLE" => (&mut self.create_role, true),
            "NOCREATEROLE" => (&mut self.create_role, false),
            "LOGIN" => (&mut self.login, true),
            "NOLOGIN" => (&mut self.login, false),
            // They say what holds for all roles.
            "INHERIT" | "NOCREATEDB" | "NOREPLICATION" | "NOBYPASSRLS" | "ENCRYPTED" => {
                return Ok(true);
            }
            "NOINHERIT" | "CREATEDB" | "REPLICATION" | "BYPASSRLS" => {
                return Err(Error::not_supported(
                    format!("the option {option} of roles"),
                    position,
                ));
            }
            _ => return Ok(false),
        };
        match flag.replace(value) {
            None => Ok(true),
            Some(_) => Err(conflicting(option, position)),
        }
    }
}

impl RoleDefinition {
    /// Reads an option with a value from its second word on.
    fn option(
        &mut self,
        parser: &mut Parser<'_>,
        option: &str,
        position: Position,
        creates: bool,
    ) -> Result<()> {
        let is_new = match option {
            "CONNECTION" => {
                parser.expect_keyword_is(Keyword::LIMIT).map_err(syntax_error)?;
                self.options.connection_limit.replace(limit(parser)?).is_none()
            }
            "PASSWORD" => self.options.password.replace(password(parser)?).is_none(),
            "VALID" => {
                parser.expect_keyword_is(Keyword::UNTIL).map_err(syntax_error)?;
                let until = parser.parse_literal_string().map_err(syntax_error)?;
                self.options.valid_until.replace(until).is_none()
            }
            "IN" if creates => {
                let of = [Keyword::ROLE, Keyword::GROUP];
                parser.expect_one_of_keywords(&of).map_err(syntax_error)?;
                self.member_of.extend(roles(parser)?);
                true
            }
            "ROLE" | "USER" if creates => {
                self.members.extend(roles(parser)?);
                true
            }
            "SET" | "RESET" | "RENAME" if !creates => {
                return Err(Error::not_supported(format!("ALTER ROLE … {option}"), position));
            }
            _ => {
                let message = format!(
                    "{option} is no option of a role: there are LOGIN, SUPERUSER, CREATEROLE, PASSWORD, CONNECTION LIMIT and \
                     VALID UNTIL"
                );
                return Err(Error::new(message, position).with_sqlstate(SqlState::SYNTAX));
            }
        };
        match is_new {
            true => Ok(()),
            false => Err(conflicting(option, position)),
        }
    }
}

fn limit(parser: &mut Parser<'_>) -> Result<i64> {
    let (is_negative, position) = (parser.consume_token(&Token::Minus), place(parser));
    let limit = parser.parse_literal_uint().map_err(syntax_error)?;
    match (is_negative, i64::try_from(limit)) {
        (true, Ok(1)) => Ok(-1),
        (false, Ok(limit)) if limit <= i64::from(i32::MAX) => Ok(limit),
        _ => {
            let message = "CONNECTION LIMIT is a number of clients, or -1 for any number";
            Err(Error::new(message, position).with_sqlstate(SqlState::INVALID_VALUE))
        }
    }
}

fn password(parser: &mut Parser<'_>) -> Result<Option<Password>> {
    match parser.parse_keyword(Keyword::NULL) {
        true => Ok(None),
        false => {
            // The error of the parser would quote what it finds.
            let position = place(parser);
            let password = parser.parse_literal_string().map_err(|_| {
                Error::new("PASSWORD takes a text in quotes, or NULL", position)
                    .with_sqlstate(SqlState::SYNTAX)
            })?;
            Ok(Some(Password(password)))
        }
    }
}

fn conflicting(option: &str, position: Position) -> Error {
    Error::new(format!("the option {option}, or its opposite, is there twice"), position)
        .with_sqlstate(SqlState::SYNTAX)
}

/// The next word in upper case; empty if there is none.
fn word(parser: &Parser<'_>) -> String {
    match &parser.peek_token_ref().token {
        Token::Word(word) => word.value.to_uppercase(),
        _ => String::new(),
    }
}

impl RoleOptions {
    /// The statement that creates a role with these options, or gives them to an existing one. It has the verifier of a password.
    pub fn statement(&self, name: &str, creates: bool) -> String {
        let verb = if creates { "CREATE" } else { "ALTER" };
        let mut text = format!("{verb} ROLE {}", name::spelled(name));
        let flags = [
            (self.superuser, "SUPERUSER"),
            (self.create_role, "CREATEROLE"),
            (self.login, "LOGIN"),
        ];
        for (flag, word) in flags {
            text += match flag {
                Some(true) => " ",
                Some(false) => " NO",
                None => continue,
            };
            text += word;
        }
        let quoted = |value: &str| format!("'{}'", value.replace('\'', "''"));
        if let Some(limit) = self.connection_limit {
            text += &format!(" CONNECTION LIMIT {limit}");
        }
        match &self.password {
            Some(Some(Password(password))) => text += &format!(" PASSWORD {}", quoted(password)),
            Some(None) => text += " PASSWORD NULL",
            None => {}
        }
        if let Some(until) = &self.valid_until {
            text += &format!(" VALID UNTIL {}", quoted(until));
        }
        text
    }

    /// The statement that drops a role.
    pub fn dropped(name: &str) -> String {
        format!("DROP ROLE {}", name::spelled(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    fn read(sql: &str) -> std::result::Result<StatementKind, String> {
        let statement = parse(sql).next().expect("a statement");
        statement.map(|statement| statement.kind).map_err(|error| error.message)
    }

    fn defined(sql: &str) -> RoleDefinition {
        match read(sql) {
            Ok(StatementKind::CreateRole(role) | StatementKind::AlterRole(role)) => *role,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn options_are_read_and_written() {
        let role = defined(
            "CREATE ROLE \"A b\" WITH LOGIN NOSUPERUSER CONNECTION LIMIT 3 ENCRYPTED PASSWORD 'it''s' VALID UNTIL '2030-01-01' IN ROLE x, y",
        );
        assert_eq!(role.options.login, Some(true));
        assert_eq!(role.options.connection_limit, Some(3));
        let names: Vec<&str> = role.member_of.iter().map(|role| &*role.name).collect();
        assert_eq!(names, ["x", "y"]);
        let text = role.options.statement(&role.name.name, true);
        assert_eq!(
            text,
            "CREATE ROLE \"A b\" NOSUPERUSER LOGIN CONNECTION LIMIT 3 PASSWORD 'it''s' VALID UNTIL '2030-01-01'"
        );
        assert_eq!(defined(&text).options, role.options);
        assert_eq!(defined("CREATE USER u").options.login, Some(true));
        assert_eq!(defined("CREATE USER u NOLOGIN").options.login, Some(false));
        assert_eq!(defined("ALTER USER u PASSWORD NULL").options.password, Some(None));
        assert_eq!(defined("ALTER ROLE u CONNECTION LIMIT -1").options.connection_limit, Some(-1));
    }

    #[test]
    fn wrong_options_are_refused_and_passwords_are_not_shown() {
        for sql in [
            "CREATE ROLE public",
            "CREATE ROLE pg_mine",
            "CREATE ROLE r LOGIN NOLOGIN",
            "CREATE ROLE r PASSWORD secret",
            "CREATE ROLE r CONNECTION LIMIT -2",
            "CREATE ROLE r CREATEDB",
            "CREATE ROLE r WITH WINGS",
            "ALTER ROLE r IN ROLE x",
            "CREATE ROLE",
            "DROP ROLE",
        ] {
            let message = read(sql).expect_err(sql);
            assert!(!message.contains("secret"), "{message}");
        }
        let shown = format!("{:?}", defined("CREATE ROLE r PASSWORD 'secret'"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}

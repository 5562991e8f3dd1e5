//! What statements about roles ask for.

use std::collections::BTreeSet;

use alluvium_sql::error::Position;
use alluvium_sql::name::{self, DATABASE};
use alluvium_sql::statement::{
    Grant, GrantKind, GrantObject, Granted, Named, OwnerChange, PUBLIC, Password, Privilege,
    RoleDefinition, StatementKind,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;

use super::rights::{may_create_in, owns};
use super::{ObjectName, PREDEFINED, Role, RoleEdit, Roles};
use crate::catalog::Entries;
use crate::clock::Moment;
use crate::error::{Error, Result, SqlState};

/// The prefix of a password's verifier.
const SCRAM: &str = "SCRAM-SHA-256$";

/// The longest name of a role, in bytes, as Postgres has it.
const MOST_BYTES: usize = 63;

/// Whose statement it is, and over what.
pub(crate) struct Existing<'a> {
    /// The roles before it.
    pub(crate) roles: &'a Roles,
    /// The relations, schemas, sequences and functions.
    pub(crate) entries: &'a Entries,
    /// The role whose rights are asked for; `None` may do everything.
    pub(crate) by: Option<&'a str>,
    /// Makes the verifier of a password.
    pub(crate) verifier: Option<fn(&str) -> String>,
    /// Whether it was executed before, so that nothing is checked.
    pub(crate) replays: bool,
}

/// The edits that a statement asks for; none if it is not about roles.
pub(crate) fn edits(statement: &StatementKind, existing: &Existing<'_>) -> Result<Vec<RoleEdit>> {
    match statement {
        StatementKind::CreateRole(role) => existing.create(role),
        StatementKind::AlterRole(role) => existing.alter(role),
        StatementKind::DropRole { roles, if_exists } => existing.drop(roles, *if_exists),
        StatementKind::Grant(grant) => existing.grant(grant),
        StatementKind::SetOwner(change) => existing.own(change),
        _ => Ok(Vec::new()),
    }
}

/// Whether a statement is about roles and their rights, as all are that [`edits`] reads.
pub(crate) fn is_of_roles(statement: &StatementKind) -> bool {
    matches!(
        statement,
        StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::Grant(_)
            | StatementKind::SetOwner(_)
    )
}

/// Whether there is such an object.
pub(crate) fn is_there(entries: &Entries, (kind, name): &ObjectName) -> bool {
    match kind {
        GrantKind::Relation => entries.contains_key(name),
        GrantKind::Sequence => entries.sequence(name).is_some(),
        GrantKind::Schema | GrantKind::AllRelations => entries.has_schema(name),
        GrantKind::Function => entries.functions.contains_key(name),
        GrantKind::Database => name == DATABASE,
        GrantKind::Secret => entries.systems.secrets.contains_key(name),
        GrantKind::Connection => entries.systems.connections.contains_key(name),
    }
}

impl Existing<'_> {
    fn is_superuser(&self) -> bool {
        self.by.is_none_or(|by| self.roles.is_superuser(by))
    }

    /// Fails unless whose statement it is may change other roles, which are superusers or not.
    fn check_manages(&self, of_superuser: bool, position: Position) -> Result<()> {
        if self.replays || self.is_superuser() {
            return Ok(());
        }
        if of_superuser {
            return Err(denied(
                "only a superuser may change a role that is a superuser, or a member of one or of a predefined role",
                position,
            ));
        }
        let by = self.by.and_then(|by| self.roles.get(by));
        match by.is_some_and(|by| by.can_create_roles) {
            true => Ok(()),
            false => Err(denied(
                "only a superuser, or a role with CREATEROLE, may change other roles",
                position,
            )),
        }
    }

    fn role(&self, named: &Named) -> Result<&Role> {
        self.roles.get(&named.name).ok_or_else(|| no_role(&named.name).at(named.position))
    }

    fn create(&self, definition: &RoleDefinition) -> Result<Vec<RoleEdit>> {
        let Named { name, position } = &definition.name;
        let options = &definition.options;
        self.check_manages(options.superuser == Some(true), *position)?;
        if self.roles.get(name).is_some() {
            return match definition.if_not_exists {
                true => Ok(Vec::new()),
                false => Err(Error::sql(format!("there is already a role \"{name}\""))
                    .with_sqlstate(SqlState::DUPLICATE_OBJECT)
                    .at(*position)),
            };
        }
        if name.len() > MOST_BYTES {
            let message = format!("the name of a role has at most {MOST_BYTES} bytes");
            return Err(Error::sql(message).with_sqlstate(SqlState::INVALID_VALUE).at(*position));
        }
        let role = self.with_options(Role::new(name), definition)?;
        if self.roles.is_empty() && !self.replays && !role.is_last_resort() {
            let message = "the first role has to be one that may do everything, as nobody else could: CREATE ROLE name SUPERUSER \
                           LOGIN PASSWORD 'password'";
            return Err(Error::sql(message).with_sqlstate(SqlState::NOT_IN_STATE).at(*position));
        }
        let mut edits = vec![RoleEdit::Create(role)];
        for of in &definition.member_of {
            edits.push(self.member(false, of, name)?);
        }
        for member in &definition.members {
            self.role(member)?;
            let (of, member) = (name.clone(), member.name.clone());
            edits.push(RoleEdit::Member { revokes: false, of, member });
        }
        Ok(edits)
    }

    fn alter(&self, definition: &RoleDefinition) -> Result<Vec<RoleEdit>> {
        let role = self.role(&definition.name)?;
        let (position, options) = (definition.name.position, &definition.options);
        let is_only_password = options.superuser.is_none()
            && options.create_role.is_none()
            && options.login.is_none()
            && options.connection_limit.is_none()
            && options.valid_until.is_none();
        // A role may change its own password.
        if !(is_only_password && self.by == Some(&role.name)) {
            self.check_manages(
                self.roles.is_protected(&role.name) || options.superuser.is_some(),
                position,
            )?;
        }
        let role = self.with_options(role.clone(), definition)?;
        self.check_superuser_left(
            |other| match other.name == role.name {
                true => role.is_last_resort(),
                false => other.is_last_resort(),
            },
            position,
        )?;
        Ok(vec![RoleEdit::Alter(role)])
    }

    /// A role with options.
    fn with_options(&self, mut role: Role, definition: &RoleDefinition) -> Result<Role> {
        let (options, position) = (&definition.options, definition.name.position);
        let set = |flag: &mut bool, value: Option<bool>| *flag = value.unwrap_or(*flag);
        set(&mut role.is_superuser, options.superuser);
        set(&mut role.can_create_roles, options.create_role);
        set(&mut role.can_login, options.login);
        if let Some(limit) = options.connection_limit {
            role.connection_limit = u32::try_from(limit).ok();
        }
        if let Some(password) = &options.password {
            role.verifier = match password {
                None => None,
                Some(Password(password)) => {
                    self.verifier(password).map_err(|error| error.at(position))?
                }
            };
        }
        if let Some(until) = &options.valid_until {
            role.valid_until = moment(until).map_err(|error| error.at(position))?;
        }
        Ok(role)
    }

    /// The verifier of a password, which may be one already; `None` of an empty password.
    fn verifier(&self, password: &str) -> Result<Option<String>> {
        let is_md5 = |text: &str| {
            text.strip_prefix("md5").is_some_and(|digits| {
                digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            })
        };
        if password.is_empty() {
            return Ok(None);
        }
        if password.starts_with(SCRAM) {
            return Ok(Some(password.to_owned()));
        }
        if is_md5(password) {
            let message =
                "passwords are checked by SCRAM-SHA-256, not by MD5: write the password itself";
            return Err(Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED));
        }
        match self.verifier {
            Some(verifier) => Ok(Some(verifier(password))),
            None => {
                let message = "a password is stored as its verifier, which this program cannot make: write the verifier, \
                               SCRAM-SHA-256$…, or create the role in a server";
                Err(Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED))
            }
        }
    }

    /// Fails if no superuser that can log in would be left.
    fn check_superuser_left(
        &self,
        mut stays: impl FnMut(&Role) -> bool,
        position: Position,
    ) -> Result<()> {
        match self.replays || self.roles.iter().any(&mut stays) {
            true => Ok(()),
            false => Err(Error::sql(
                "it is the last superuser that can log in, and nobody could change roles without: create another one first",
            )
            .with_sqlstate(SqlState::NOT_IN_STATE)
            .at(position)),
        }
    }

    fn drop(&self, dropped: &[Named], if_exists: bool) -> Result<Vec<RoleEdit>> {
        let mut edits = Vec::new();
        for named in dropped {
            let Some(role) = self.roles.get(&named.name) else {
                match if_exists {
                    true => continue,
                    false => return Err(no_role(&named.name).at(named.position)),
                }
            };
            self.check_manages(self.roles.is_protected(&role.name), named.position)?;
            if self.by == Some(&role.name) {
                let message = "a session cannot drop its own role";
                return Err(Error::sql(message)
                    .with_sqlstate(SqlState::OBJECT_IN_USE)
                    .at(named.position));
            }
            let owned = self
                .roles
                .objects()
                .filter(|(_, rights)| rights.owner.as_deref() == Some(&*role.name));
            let owned: Vec<String> = owned.map(|(object, _)| shown(object)).collect();
            if !owned.is_empty() && !self.replays {
                let owned = owned.join(", ");
                let message = format!(
                    "the role \"{}\" owns {owned}: give that to others first, by ALTER … OWNER TO, or drop it",
                    role.name
                );
                return Err(Error::sql(message)
                    .with_sqlstate(SqlState::DEPENDED_ON)
                    .at(named.position));
            }
            edits.push(RoleEdit::Drop(role.name.clone()));
        }
        let is_dropped = |role: &Role| dropped.iter().any(|named| named.name == role.name);
        let is_last = dropped.first().filter(|_| !edits.is_empty());
        // Without any role all is as at first.
        let all = self.roles.iter().all(&is_dropped);
        if let Some(named) = is_last.filter(|_| !all) {
            let stays = |role: &Role| role.is_last_resort() && !is_dropped(role);
            self.check_superuser_left(stays, named.position)?;
        }
        Ok(edits)
    }

    /// The edit by which a role becomes a member of another one, or no longer is.
    fn member(&self, revokes: bool, of: &Named, member: &str) -> Result<RoleEdit> {
        let is_predefined = PREDEFINED.contains(&&*of.name);
        if is_predefined {
            if !self.replays && !self.is_superuser() {
                let message = format!("only a superuser may grant \"{}\"", of.name);
                return Err(denied(&message, of.position));
            }
        } else {
            let role = self.role(of)?;
            self.check_manages(self.roles.is_protected(&role.name), of.position)?;
        }
        if !revokes && !is_predefined && self.roles.effective(&of.name).contains(member) {
            let message = format!("\"{}\" is a member of \"{member}\" itself", of.name);
            return Err(Error::sql(message).with_sqlstate(SqlState::INVALID_GRANT).at(of.position));
        }
        Ok(RoleEdit::Member { revokes, of: of.name.clone(), member: member.to_owned() })
    }

    fn grant(&self, grant: &Grant) -> Result<Vec<RoleEdit>> {
        let revokes = grant.revokes;
        let mut edits = Vec::new();
        match &grant.granted {
            Granted::Membership(roles) => {
                for member in &grant.roles {
                    self.role(member)?;
                    for of in roles {
                        edits.push(self.member(revokes, of, &member.name)?);
                    }
                }
            }
            Granted::Privileges { privileges, objects } => {
                for role in grant.roles.iter().filter(|role| role.name != PUBLIC) {
                    self.role(role)?;
                }
                for (object, position) in self.objects(objects)? {
                    self.check_owns(&object, position)?;
                    let all = Privilege::ALL.into_iter();
                    let of_kind = all.filter(|privilege| privilege.is_of(object.0));
                    let is_meant = |privilege: &Privilege| {
                        privileges.as_ref().is_none_or(|meant| meant.contains(privilege))
                    };
                    let privileges: BTreeSet<_> = of_kind.filter(is_meant).collect();
                    if privileges.is_empty() {
                        continue;
                    }
                    edits.extend(grant.roles.iter().map(|role| RoleEdit::Grant {
                        revokes,
                        privileges: privileges.clone(),
                        object: object.clone(),
                        role: role.name.clone(),
                    }));
                }
            }
        }
        Ok(edits)
    }

    /// The objects, those of schemas included, each with where it is named.
    fn objects(&self, named: &[GrantObject]) -> Result<Vec<(ObjectName, Position)>> {
        let mut found = Vec::with_capacity(named.len());
        for object in named {
            let GrantObject { kind, name, position } = object;
            if *kind == GrantKind::AllRelations {
                self.check_there(&(GrantKind::Schema, name.clone()), *position)?;
                let inside =
                    self.entries.keys().filter(|relation| name::split(relation).0 == *name);
                let inside = inside.map(|relation| (GrantKind::Relation, relation.clone()));
                found.extend(inside.map(|relation| (relation, *position)));
                continue;
            }
            let object = (*kind, name::short(name).to_owned());
            self.check_there(&object, *position)?;
            if !self.is_generated(&object) {
                found.push((object, *position));
            }
        }
        Ok(found)
    }

    fn check_there(&self, object: &ObjectName, position: Position) -> Result<()> {
        if self.replays || is_there(self.entries, object) {
            return Ok(());
        }
        let sqlstate = match object.0 {
            GrantKind::Relation | GrantKind::Sequence => SqlState::NO_RELATION,
            GrantKind::Schema | GrantKind::AllRelations => SqlState::NO_SCHEMA,
            GrantKind::Function => SqlState::NO_FUNCTION,
            GrantKind::Database | GrantKind::Secret | GrantKind::Connection => SqlState::NO_OBJECT,
        };
        let message = format!("there is no {}", shown(object));
        Err(Error::sql(message).with_sqlstate(sqlstate).at(position))
    }

    /// Whether it is the sequence of a column, which goes with its table: the rights on that count.
    fn is_generated(&self, (kind, name): &ObjectName) -> bool {
        *kind == GrantKind::Sequence && self.entries.generated(name).is_some()
    }

    fn check_owns(&self, object: &ObjectName, position: Position) -> Result<()> {
        match self.by {
            Some(by) if !owns(self.roles, by, object) => {
                let message =
                    format!("only its owner, or a superuser, may do this with {}", shown(object));
                Err(denied(&message, position))
            }
            _ => Ok(()),
        }
    }

    fn own(&self, change: &OwnerChange) -> Result<Vec<RoleEdit>> {
        let GrantObject { kind, name, position } = &change.object;
        let object = (*kind, name::short(name).to_owned());
        if change.if_exists && self.check_there(&object, *position).is_err() {
            return Ok(Vec::new());
        }
        self.check_there(&object, *position)?;
        if self.is_generated(&object) {
            return Ok(Vec::new());
        }
        let owner = self.role(&change.owner)?;
        self.check_owns(&object, *position)?;
        if let Some(by) = self.by
            && !self.replays
            && !self.roles.is_superuser(by)
        {
            if !self.roles.is_member(by, &owner.name) {
                let message = format!("\"{by}\" is no member of the role \"{}\"", owner.name);
                return Err(denied(&message, change.owner.position));
            }
            let is_in_schema = matches!(kind, GrantKind::Relation | GrantKind::Sequence);
            let schema = name::split(name).0;
            if is_in_schema && !may_create_in(self.roles, &owner.name, &schema) {
                let message = format!(
                    "the role \"{}\" may not create in the schema \"{schema}\"",
                    owner.name
                );
                return Err(denied(&message, change.owner.position));
            }
        }
        Ok(vec![RoleEdit::Own { object, owner: owner.name.clone() }])
    }
}

pub(crate) fn no_role(name: &str) -> Error {
    Error::sql(format!("there is no role \"{name}\"")).with_sqlstate(SqlState::NO_OBJECT)
}

fn denied(message: &str, position: Position) -> Error {
    Error::denied(message.to_owned()).at(position)
}

/// An object as messages name it.
fn shown((kind, name): &ObjectName) -> String {
    let kind = match kind {
        GrantKind::Relation => "table or view",
        GrantKind::AllRelations | GrantKind::Schema => "schema",
        GrantKind::Sequence => "sequence",
        GrantKind::Function => "function",
        GrantKind::Database => "database",
        GrantKind::Secret => "secret",
        GrantKind::Connection => "connection",
    };
    format!("{kind} \"{name}\"")
}

/// The moment of a text, in UTC unless it says otherwise; `None` is never.
fn moment(text: &str) -> Result<Option<Moment>> {
    if text.eq_ignore_ascii_case("infinity") {
        return Ok(None);
    }
    let moment = string_to_datetime(&chrono::Utc, text).map_err(|_| {
        Error::sql(format!("VALID UNTIL takes a time, as '2030-01-01 00:00:00', not '{text}'"))
            .with_sqlstate(SqlState::INVALID_VALUE)
    })?;
    Ok(Some(moment.timestamp_micros()))
}

//! The facts that rights are judged by: roles, memberships, grants and objects.

use std::collections::{BTreeSet, HashMap};

use alluvium::arrow::array::{ArrayRef, AsArray};
use alluvium::functions::Result;

use super::functions::quoted;
use super::lookup::Lists;
use super::privilege::failed;
use super::reference::known_as;

/// The pseudo-role that all have the privileges of.
const PUBLIC: &str = "public";

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ObjectKind {
    Table,
    Sequence,
    Schema,
    Database,
    /// A relation of `pg_catalog`, which all may read.
    Catalog,
    Role,
}

impl ObjectKind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "table" => Self::Table,
            "sequence" => Self::Sequence,
            "schema" => Self::Schema,
            "database" => Self::Database,
            "catalog" => Self::Catalog,
            _ => return None,
        })
    }

    /// Whether objects of this kind are meant where one of another kind is asked for.
    fn answers(self, asked: &str) -> bool {
        match asked {
            "table" | "column" | "one column" => {
                matches!(self, Self::Table | Self::Sequence | Self::Catalog)
            }
            "sequence" => self == Self::Sequence,
            "schema" => self == Self::Schema,
            "database" => self == Self::Database,
            _ => self == Self::Role,
        }
    }
}

/// An object that is asked about.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: ObjectKind,
    /// Empty of objects that are in none.
    pub(super) schema: String,
    pub(super) object: String,
    /// The table whose column a sequence gives values.
    pub(super) of_table: Option<String>,
}

/// A kind, a schema and a name.
type Key = (ObjectKind, String, String);

/// The facts of a row.
#[derive(Default)]
struct Known {
    /// The names of roles by OID, and whether they may do everything by name.
    roles: HashMap<String, String>,
    superusers: HashMap<String, bool>,
    members: HashMap<String, Vec<String>>,
    /// The privileges on objects, with their roles.
    grants: HashMap<Key, Vec<(String, String)>>,
    objects: HashMap<String, Found>,
}

/// Lists of facts.
pub(super) struct Facts {
    lists: Lists,
    known: Known,
}

impl Facts {
    pub(super) fn new(lists: &ArrayRef) -> Self {
        Self { lists: Lists::new(lists), known: Known::default() }
    }

    /// The facts of a row are those that questions are about.
    pub(super) fn read(&mut self, row: usize) {
        let Some(list) = self.lists.read(row) else { return };
        self.known = Known::default();
        if let Some(facts) = list.as_list_opt::<i32>() {
            for fact in facts.iter().flatten() {
                let texts: Vec<&str> = fact.as_string::<i32>().iter().flatten().collect();
                self.known.add(&texts);
            }
        }
    }

    /// The name of a role. One that is not there is an error by name, and has no rights of its own by OID.
    pub(super) fn role(&self, given: &str, is_name: bool) -> Result<String> {
        let is_known = given == PUBLIC || self.known.superusers.contains_key(given);
        match is_name {
            true if is_known => Ok(given.to_owned()),
            true => Err(failed(format!("there is no role \"{given}\""))),
            false => Ok(self.known.roles.get(given).cloned().unwrap_or_default()),
        }
    }

    /// The object that is meant. One that is not there is an error by name, and `None` by OID.
    pub(super) fn object(&self, kind: &str, given: &str, is_name: bool) -> Result<Option<Found>> {
        if kind == "role" {
            let role = Some(self.role(given, is_name)?).filter(|role| !role.is_empty());
            let of_role = |object| Found {
                kind: ObjectKind::Role,
                schema: String::new(),
                object,
                of_table: None,
            };
            return Ok(role.map(of_role));
        }
        let found = match is_name {
            false => self.known.objects.get(given).filter(|found| found.kind.answers(kind)),
            true => {
                let mut of_kind = self.known.objects.values().filter(|it| it.kind.answers(kind));
                let is_relation = !matches!(kind, "schema" | "database");
                let written = if is_relation { known_as(given) } else { given.to_owned() };
                let is_it = |found: &&Found| match (is_relation, &*found.schema) {
                    (false, _) => found.object == written,
                    (true, "public" | "pg_catalog") => quoted(&found.object) == written,
                    (true, schema) => {
                        format!("{}.{}", quoted(schema), quoted(&found.object)) == written
                    }
                };
                let found = of_kind.find(is_it);
                if found.is_none() {
                    let noun = if is_relation { "relation" } else { kind };
                    return Err(failed(format!("there is no {noun} \"{given}\"")));
                }
                found
            }
        };
        Ok(found.cloned())
    }

    pub(super) fn is_superuser(&self, role: &str) -> bool {
        self.known.superusers.get(role).copied().unwrap_or_default()
    }

    /// A role, and all that it is a member of.
    pub(super) fn effective<'a>(&'a self, role: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([role]);
        let mut left = vec![role];
        while let Some(role) = left.pop() {
            for of in self.known.members.get(role).into_iter().flatten() {
                if found.insert(of) {
                    left.push(of);
                }
            }
        }
        found
    }

    /// The owner of an object. One without belongs to the superusers.
    pub(super) fn owner(&self, kind: ObjectKind, schema: &str, object: &str) -> Option<&str> {
        let owner =
            |(role, privilege): &'_ (String, String)| privilege == "OWNER" && !role.is_empty();
        let mut grants = self.grants((kind, schema, object)).iter();
        grants.find(|grant| owner(grant)).map(|(role, _)| role.as_str())
    }

    /// Whether one of these roles, or all roles, have one of the privileges on an object.
    pub(super) fn has(
        &self,
        roles: &BTreeSet<&str>,
        object: (ObjectKind, &str, &str),
        words: &[&str],
    ) -> bool {
        let is_theirs = |role: &str| role == PUBLIC || roles.contains(role);
        let mut grants = self.grants(object).iter();
        grants.any(|(role, privilege)| words.contains(&privilege.as_str()) && is_theirs(role))
    }

    fn grants(&self, (kind, schema, object): (ObjectKind, &str, &str)) -> &[(String, String)] {
        let key = (kind, schema.to_owned(), object.to_owned());
        self.known.grants.get(&key).map_or(&[], Vec::as_slice)
    }
}

impl Known {
    /// Adds a fact, whose texts are as `pg_internal.facts` has them.
    fn add(&mut self, fact: &[&str]) {
        match fact {
            ["role", oid, name, is_superuser] => {
                self.roles.insert((*oid).to_owned(), (*name).to_owned());
                self.superusers.insert((*name).to_owned(), *is_superuser == "true");
            }
            ["member", member, role] => {
                self.members.entry((*member).to_owned()).or_default().push((*role).to_owned());
            }
            ["grant", kind, schema, object, role, privilege] => {
                if let Some(kind) = ObjectKind::named(kind) {
                    let key = (kind, (*schema).to_owned(), (*object).to_owned());
                    let grant = ((*role).to_owned(), (*privilege).to_owned());
                    self.grants.entry(key).or_default().push(grant);
                }
            }
            ["object", kind, oid, schema, object, rest @ ..] => {
                if let Some(kind) = ObjectKind::named(kind) {
                    let of_table = rest.first().filter(|table| !table.is_empty());
                    let found = Found {
                        kind,
                        schema: (*schema).to_owned(),
                        object: (*object).to_owned(),
                        of_table: of_table.map(|table| (*table).to_owned()),
                    };
                    self.objects.insert((*oid).to_owned(), found);
                }
            }
            _ => {}
        }
    }
}

//! Who may do what.

use std::sync::Arc;

use alluvium_sql::name::is_temporary;

use crate::error::{Error, Result};

/// Decides on the rights of a session to the relations that its statements name.
///
/// A [session](crate::Session::set_authorizer) asks before each execution of a statement, for each relation that the statement
/// names, before it reads or writes anything. A view is asked for by its own name: it reads what it reads with the rights of who
/// created it. So `CREATE VIEW` asks for what its query names, and later reads of the view do not ask again.
///
/// System relations are not asked for. Those that show rows, as `alluvium.errors` does, show those of relations that the session may
/// select from. Those that tell of definitions tell of the objects that it may do something with: each [action](Action) but
/// [`Action::Create`] is asked for until one is allowed.
///
/// A session without an authorizer may do everything, as may [`Engine`](crate::Engine)'s own calls.
pub trait Authorizer: Send + Sync {
    /// Whether this is allowed. It must not call the session.
    fn allows(&self, access: &Access<'_>) -> bool;
}

/// An access that a statement would make.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Access<'a> {
    /// Whose session it is.
    pub role: &'a str,
    /// The kind of access.
    pub action: Action,
    /// With what.
    pub object: Object<'a>,
    /// The columns that it would read, insert or update. There are none if a query needs only the number of rows, and for
    /// actions that are not about columns. A join that merges columns, with USING or NATURAL, reads all columns of both sides.
    pub columns: &'a [String],
}

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Action {
    /// Reading rows, and what EXPLAIN and DESCRIBE tell.
    Select,
    /// Inserting rows, also with COPY.
    Insert,
    /// Updating rows.
    Update,
    /// Deleting rows.
    Delete,
    /// Creating it.
    Create,
    /// Dropping it, or replacing it.
    Drop,
    /// Changing its definition: ALTER, LATENESS, and its indexes.
    Alter,
    /// Receiving its rows and all changes of them.
    Subscribe,
    /// Naming it where a connector or a connection does.
    Use,
}

/// The object of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object<'a> {
    /// A table or a view, by the [name](crate::name) that it goes by: `t`, or `s.t`.
    Relation(&'a str),
    /// A schema. [`Action::Select`] is naming what is in it.
    Schema(&'a str),
    /// A function.
    Function(&'a str),
    /// A sequence. Taking its values and setting them is [`Action::Update`], `currval` is [`Action::Select`]. Those of columns
    /// that are SERIAL or IDENTITY are asked for only by their own names.
    Sequence(&'a str),
    /// A secret.
    Secret(&'a str),
    /// A connection.
    Connection(&'a str),
}

impl Action {
    /// As SQL has it.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Select => "SELECT from",
            Self::Insert => "INSERT into",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE from",
            Self::Create => "CREATE",
            Self::Drop => "DROP",
            Self::Alter => "ALTER",
            Self::Subscribe => "SUBSCRIBE to",
            Self::Use => "USE",
        }
    }
}

/// Who a session is, and who decides what it may do.
#[derive(Clone)]
pub(crate) struct Rights {
    role: String,
    authorizer: Arc<dyn Authorizer>,
    /// Whether sequences of columns are asked for by their tables.
    generated_by_table: bool,
}

impl Rights {
    pub(crate) fn new(role: String, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { role, authorizer, generated_by_table: false }
    }

    /// From now on sequences of columns are asked for by their tables.
    pub(crate) fn with_generated_sequences(self) -> Self {
        Self { generated_by_table: true, ..self }
    }

    /// Fails unless a sequence may be used so, which is that of a column of `table` if there is one.
    pub(crate) fn check_sequence(
        &self,
        action: Action,
        sequence: &str,
        table: Option<&str>,
    ) -> Result<()> {
        let Some(table) = table.filter(|_| self.generated_by_table) else {
            return self.check(action, Object::Sequence(sequence), &[]);
        };
        let table = Object::Relation(table);
        let inserts = self.check(Action::Insert, table, &[]);
        match action {
            // Who inserts asks for the value that a row has got, and so may who reads.
            Action::Select => inserts.or_else(|_| self.check(Action::Select, table, &[])),
            _ => inserts,
        }
    }

    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    /// Whether the session may read a relation, or some of it.
    pub(crate) fn shows(&self, relation: &str) -> bool {
        self.allow(Action::Select, Object::Relation(relation), &[])
    }

    /// Whether the session may know that an object is there: it may do something with it.
    pub(crate) fn tells(&self, object: Object<'_>) -> bool {
        const ANY: [Action; 7] = [
            Action::Select,
            Action::Insert,
            Action::Update,
            Action::Delete,
            Action::Alter,
            Action::Drop,
            Action::Use,
        ];
        ANY.into_iter().any(|action| self.allow(action, object, &[]))
    }

    fn allow(&self, action: Action, object: Object<'_>, columns: &[String]) -> bool {
        // A session may do anything with its own temporary relations.
        if let Object::Relation(name) = object
            && is_temporary(name)
            && action != Action::Create
        {
            return true;
        }
        self.authorizer.allows(&Access { role: &self.role, action, object, columns })
    }

    pub(crate) fn check(
        &self,
        action: Action,
        object: Object<'_>,
        columns: &[String],
    ) -> Result<()> {
        if self.allow(action, object, columns) {
            return Ok(());
        }
        let (kind, name) = match object {
            Object::Relation(name) => ("", name),
            Object::Schema(name) => ("the schema ", name),
            Object::Function(name) => ("the function ", name),
            Object::Sequence(name) => ("the sequence ", name),
            Object::Secret(name) => ("the secret ", name),
            Object::Connection(name) => ("the connection ", name),
        };
        let verb = action.verb();
        Err(Error::denied(format!("the role \"{}\" may not {verb} {kind}\"{name}\"", self.role)))
    }
}

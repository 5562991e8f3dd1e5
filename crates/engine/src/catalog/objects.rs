//! System relations that tell of the parts of definitions: columns, constraints, indexes, sequences, what reads what, and the
//! settings of the session.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// The columns of all relations.
pub(crate) const COLUMNS: &str = "alluvium.columns";
/// The constraints of tables.
pub(crate) const CONSTRAINTS: &str = "alluvium.constraints";
/// The indexes of relations, but those of primary keys, by which the rows of a table are sorted themselves.
pub(crate) const INDEXES: &str = "alluvium.indexes";
/// The sequences, those of generated columns included.
pub(crate) const SEQUENCES: &str = "alluvium.sequences";
/// The relations that each view reads.
pub(crate) const DEPENDENCIES: &str = "alluvium.dependencies";
/// The settings of the session that asks.
pub(crate) const SETTINGS: &str = "alluvium.settings";

/// The roles.
pub(crate) const ROLES: &str = "alluvium.roles";
/// The owners of objects, and the privileges of roles on them.
pub(crate) const GRANTS: &str = "alluvium.grants";

/// The secrets that statements have created.
pub(crate) const SECRETS: &str = "alluvium.secrets";
/// The connections.
pub(crate) const CONNECTIONS: &str = "alluvium.connections";

/// The names of all of them.
pub(super) const OBJECTS: [&str; 10] = [
    COLUMNS,
    CONSTRAINTS,
    INDEXES,
    SEQUENCES,
    DEPENDENCIES,
    SETTINGS,
    ROLES,
    GRANTS,
    SECRETS,
    CONNECTIONS,
];

pub(super) fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, false)
}

pub(super) fn some_text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn flag(name: &str) -> Field {
    Field::new(name, DataType::Boolean, false)
}

/// Names of columns.
fn names(name: &str) -> Field {
    let element = Field::new_list_field(DataType::Utf8, true);
    Field::new(name, DataType::List(Arc::new(element)), false)
}

/// Places of columns, from 1.
fn places(name: &str) -> Field {
    let element = Field::new_list_field(DataType::Int16, true);
    Field::new(name, DataType::List(Arc::new(element)), false)
}

static COLUMNS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("schema"),
        text("relation"),
        text("name"),
        Field::new("position", DataType::Int32, false),
        text("type"),
        flag("nullable"),
        some_text("default"),
        some_text("generated"),
        some_text("sequence"),
        some_text("comment"),
    ]))
});

static CONSTRAINTS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("schema"),
        text("relation"),
        text("name"),
        text("kind"),
        names("columns"),
        places("positions"),
        some_text("condition"),
        flag("enforced"),
    ]))
});

static INDEXES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("schema"),
        text("relation"),
        text("name"),
        names("columns"),
        places("positions"),
        flag("unique"),
        some_text("comment"),
    ]))
});

static SEQUENCES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("schema"),
        text("name"),
        some_text("relation"),
        some_text("column"),
        number("start"),
        number("increment"),
        number("minimum"),
        number("maximum"),
        flag("cycles"),
    ]))
});

static DEPENDENCIES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("schema"),
        text("relation"),
        text("read_schema"),
        text("read_relation"),
    ]))
});

static SETTINGS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![text("name"), text("setting"), text("description")]))
});

static ROLES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("name"),
        flag("superuser"),
        flag("create_role"),
        flag("login"),
        Field::new("connection_limit", DataType::Int64, true),
        some_text("valid_until"),
        flag("has_password"),
        names("member_of"),
    ]))
});

static GRANTS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("kind"),
        text("name"),
        text("role"),
        text("privilege"),
        some_text("schema"),
        text("object"),
    ]))
});

static SECRETS_SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![text("name"), text("stored"), names("hosts")])));

static CONNECTIONS_SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![text("name"), text("type"), text("options")])));

/// The columns of one of them.
pub(crate) fn schema(name: &str) -> Option<&'static SchemaRef> {
    match name {
        COLUMNS => Some(&COLUMNS_SCHEMA),
        CONSTRAINTS => Some(&CONSTRAINTS_SCHEMA),
        INDEXES => Some(&INDEXES_SCHEMA),
        SEQUENCES => Some(&SEQUENCES_SCHEMA),
        DEPENDENCIES => Some(&DEPENDENCIES_SCHEMA),
        SETTINGS => Some(&SETTINGS_SCHEMA),
        ROLES => Some(&ROLES_SCHEMA),
        GRANTS => Some(&GRANTS_SCHEMA),
        SECRETS => Some(&SECRETS_SCHEMA),
        CONNECTIONS => Some(&CONNECTIONS_SCHEMA),
        _ => None,
    }
}

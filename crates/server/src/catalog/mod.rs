//! `pg_catalog`, and the parts of `information_schema` that the engine does not have: what Postgres's clients ask about
//! relations, types and settings.
//!
//! All of it is SQL over `alluvium.*`, in the files of `sql`, in which each may use those before it:
//!
//! - [`types`] are Postgres's types with their OIDs, and those that columns have;
//! - [`procedures`] lists the functions that queries can call;
//! - [`constants`] are settings that only the server has;
//! - [`empty`] lists relations without rows, of what the engine does not have;
//! - [`functions`] are those that SQL cannot write: [`object_id`] gives objects their OIDs, [`reference`](mod@reference) reads and writes names of objects,
//!   [`lookup`] finds what is said of an OID, [`privilege`] judges by [`facts`] what a role may do, [`acl`] makes lists of rights, [`vector`] marks vectors.
//!
//! OIDs are `UINTEGER`. Those of Postgres's own types, schemas and catalogs are Postgres's; that of another object follows from its kind and
//! name, so it is the same in every session and after a restart, and an object that is renamed has another one.

mod acl;
mod constants;
mod empty;
mod facts;
mod functions;
mod lookup;
mod object_id;
mod privilege;
mod procedures;
mod reference;
mod types;
mod vector;

use alluvium::Builder;

pub(crate) use self::vector::{OF_CATALOG, VECTOR};
use crate::password::password_verifier;

/// The schema that is searched without being named.
const SCHEMA: &str = "pg_catalog";

/// The definitions, in their order.
const FILES: [&str; 11] = [
    include_str!("sql/casts.sql"),
    include_str!("sql/roles.sql"),
    include_str!("sql/rights.sql"),
    include_str!("sql/objects.sql"),
    include_str!("sql/privileges.sql"),
    include_str!("sql/relations.sql"),
    include_str!("sql/server.sql"),
    include_str!("sql/names.sql"),
    include_str!("sql/descriptions.sql"),
    include_str!("sql/information_schema.sql"),
    include_str!("sql/functions.sql"),
];

/// Adds `pg_catalog`, and more of `information_schema`, to an engine that is set up: Postgres's clients ask them what there is. Passwords in
/// statements become verifiers, by [`password_verifier`].
///
/// ```
/// let builder = alluvium_server::with_catalog(alluvium::Engine::builder().workers(1));
/// let engine = builder.open_in_memory()?;
/// engine.execute("CREATE TABLE t (id INT PRIMARY KEY)")?;
/// let rows = engine.query("SELECT relname FROM pg_class WHERE oid = 't'::regclass")?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok::<(), alluvium::Error>(())
/// ```
pub fn with_catalog(builder: Builder) -> Builder {
    let builder = builder.password_verifier(password_verifier);
    let builder = functions::all().into_iter().fold(builder, Builder::function);
    let files = FILES.map(|sql| sql.replace("{version}", env!("CARGO_PKG_VERSION")));
    let own = [types::sql(), empty::sql(), constants::sql(), procedures::sql(&files)];
    let [casts, rest @ ..] = files;
    let definitions = [casts].into_iter().chain(own).chain(rest);
    let builder = definitions.fold(builder.system_path(SCHEMA), Builder::system_sql);
    let set = |builder: Builder, (name, value, _): &(&str, &str, &str)| {
        builder.system_setting(*name, *value)
    };
    constants::CONSTANTS.iter().fold(builder, set)
}

//! What there is: [`relations`], their [`keys`], [`facts`] about the server and its [`types`].

pub(super) mod facts;
pub(super) mod keys;
pub(super) mod relations;
pub(super) mod types;

/// The one catalog, as `information_schema` names it.
pub(super) const CATALOG: &str = "alluvium";

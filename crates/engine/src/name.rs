//! The names of relations.
//!
//! A relation has a name in a schema. It goes by one text: `t` in the default schema, `public`, and `s.t` in another one. A part
//! with a dot or a quote in it stands in quotes, so that `s.t` is not `"s.t"`.

pub use alluvium_sql::name::{spelled, split, written};

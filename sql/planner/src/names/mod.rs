//! Names of columns, as people write them and as plans need them.
//!
//! - `merged` are the columns of USING and NATURAL, `wildcards` those of `* RENAME` and `(e).*`;
//! - `unnested_names` names columns of UNNEST, `named_casts` casts in aggregates;
//! - `outside_names` spells names of columns of files as these have them;
//! - `repeated_names` tells columns of one name apart in results, `selected_names` in subqueries.

pub(crate) mod merged;
pub(crate) mod named_casts;
pub(crate) mod outside_names;
pub(crate) mod repeated_names;
pub(crate) mod selected_names;
pub(crate) mod unnested_names;
pub(crate) mod wildcards;

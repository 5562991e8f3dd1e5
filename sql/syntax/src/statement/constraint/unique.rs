//! `UNIQUE` of columns and tables.

use sqlparser::ast::{Ident, NullsDistinctOption, UniqueConstraint};

use super::{Unnamed, names};
use crate::error::{Error, Position, Result};
use crate::name;
use crate::name::fold;

/// Columns of a table that no two rows have the same values in, unless one of them is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    /// Its name, without a schema, if it was given one.
    pub name: Option<String>,
    /// The columns, each once.
    pub columns: Vec<usize>,
}

impl Unique {
    /// A constraint on these columns.
    pub(in crate::statement) fn read(
        unique: &UniqueConstraint,
        name: Option<&Ident>,
        columns: Vec<usize>,
        position: Option<Position>,
    ) -> Result<Self> {
        if unique.nulls_distinct == NullsDistinctOption::NotDistinct {
            return Err(Error::not_supported("UNIQUE NULLS NOT DISTINCT", position));
        }
        let characteristics = unique.characteristics.unwrap_or_default();
        if characteristics.enforced == Some(false) {
            return Err(Error::not_supported("UNIQUE … NOT ENFORCED", position));
        }
        if characteristics.deferrable == Some(true) {
            return Err(Error::not_supported("UNIQUE … DEFERRABLE", position));
        }
        let name = unique.name.as_ref().or(name).map(fold);
        Ok(Self { name, columns })
    }
}

/// The name of each of the unique constraints of a table, which is that of its index, with the table's schema: those without one
/// get Postgres's, `table_column_key`, with a number if that is taken.
///
/// # Errors
/// If two were given the same name.
pub fn unique_names(table: &str, columns: &[&str], uniques: &[Unique]) -> Result<Vec<String>> {
    let (schema, table) = name::split(table);
    let uniques = uniques.iter().map(|unique| {
        let named = unique.columns.iter().filter_map(|column| columns.get(*column).copied());
        let plain = format!("{table}_{}_key", named.collect::<Vec<_>>().join("_"));
        Unnamed { name: unique.name.as_deref(), plain, position: None }
    });
    let names = names(&uniques.collect::<Vec<_>>())?;
    Ok(names.iter().map(|name| name::qualified(Some(&schema), name)).collect())
}

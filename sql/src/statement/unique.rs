//! `UNIQUE` of columns and tables.

use sqlparser::ast::{Ident, NullsDistinctOption, UniqueConstraint};

use super::kind::fold;
use crate::error::{Error, Position, Result, SqlState};
use crate::name;

/// Columns of a table that no two rows have the same values in, unless one of them is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    /// Its name, without a schema, if it was given one.
    pub name: Option<String>,
    /// The columns, each once.
    pub columns: Vec<usize>,
}

impl Unique {
    /// Of these columns.
    pub(super) fn read(
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
    let mut given: Vec<&str> = Vec::new();
    for name in uniques.iter().filter_map(|unique| unique.name.as_deref()) {
        if given.contains(&name) {
            let error = Error::new(format!("there is a constraint \"{name}\" already"), None);
            return Err(error.with_sqlstate(SqlState::DUPLICATE_OBJECT));
        }
        given.push(name);
    }
    let (schema, table) = name::split(table);
    let mut names: Vec<String> = Vec::with_capacity(uniques.len());
    for unique in uniques {
        let own = unique.name.clone().unwrap_or_else(|| {
            let named = unique.columns.iter().filter_map(|column| columns.get(*column).copied());
            let named: Vec<&str> = named.collect();
            let plain = format!("{table}_{}_key", named.join("_"));
            let is_free = |name: &String| {
                !given.contains(&name.as_str())
                    && !names.contains(&name::qualified(Some(&schema), name))
            };
            let numbered = (1..).map(|number: u32| format!("{plain}{number}"));
            std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or_default()
        });
        names.push(name::qualified(Some(&schema), &own));
    }
    Ok(names)
}

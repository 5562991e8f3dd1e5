//! The constraints of a table, [`check`] and [`unique`], and their names.

pub(super) mod check;
pub(super) mod unique;

use crate::error::{Error, Position, Result, SqlState};

/// A constraint that is to have a name.
pub(super) struct Unnamed<'a> {
    /// The name that it was given.
    pub(super) name: Option<&'a str>,
    /// Its default name, unless that is taken.
    pub(super) plain: String,
    pub(super) position: Option<Position>,
}

/// The name of each constraint: those without one get a plain one, as in Postgres with a number if that is taken.
///
/// # Errors
/// If two were given the same name.
pub(super) fn names(constraints: &[Unnamed<'_>]) -> Result<Vec<String>> {
    let mut given: Vec<&str> = Vec::new();
    for Unnamed { name, position, .. } in constraints {
        let Some(name) = name else { continue };
        if given.contains(name) {
            let error = Error::new(format!("there is a constraint \"{name}\" already"), *position);
            return Err(error.with_sqlstate(SqlState::DUPLICATE_OBJECT));
        }
        given.push(name);
    }
    let mut names: Vec<String> = Vec::with_capacity(constraints.len());
    for Unnamed { name, plain, .. } in constraints {
        let name = name.map(str::to_owned).unwrap_or_else(|| {
            let is_free = |name: &String| !given.contains(&name.as_str()) && !names.contains(name);
            let numbered = (1..).map(|number: u32| format!("{plain}{number}"));
            std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or_default()
        });
        names.push(name);
    }
    Ok(names)
}

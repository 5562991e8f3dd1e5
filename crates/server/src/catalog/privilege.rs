//! `has_table_privilege` and its like: what a role may do with an object.
//!
//! A function of SQL passes the facts, a list of lists of texts: roles, memberships, grants and objects, each with its kind first. They are
//! those that `alluvium.roles` and `alluvium.grants` show, so a role that knows nothing of an object gets no answer about it.

use std::sync::Arc;

use alluvium::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::DataType;
use alluvium::functions::{
    ColumnarValue, DataFusionError, Result, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};

use super::facts::{Facts, Found, ObjectKind};
use super::reference::is_name;

/// `has_privilege(kind, facts, role, arguments…)`: four arguments, as a client has written them, of which those at the end may be
/// missing: a role, unless it is that of the session; an object, and the column if it is about one; and privileges.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct HasPrivilege {
    signature: Signature,
}

impl HasPrivilege {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(7, Volatility::Immutable) }
    }
}

/// An argument: a name or an OID, as text, for each row.
struct Argument {
    texts: ArrayRef,
    is_name: bool,
}

impl Argument {
    fn of(values: &ArrayRef) -> Result<Self> {
        let is_name = is_name(values.data_type());
        Ok(Self { texts: cast(values, &DataType::Utf8)?, is_name })
    }

    fn get(&self, row: usize) -> Option<&str> {
        let texts: &StringArray = self.texts.as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row))
    }
}

impl ScalarUDFImpl for HasPrivilege {
    fn name(&self) -> &str {
        "has_privilege"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [kinds, facts, roles, given @ ..] = &columns[..] else {
            return Err(failed("has_privilege() takes seven arguments".to_owned()));
        };
        let kinds = cast(kinds, &DataType::Utf8)?;
        let (kinds, roles) = (kinds.as_string::<i32>(), Argument::of(roles)?);
        // What a client has left out has no type.
        let given = given.iter().filter(|it| !matches!(it.data_type(), DataType::Null));
        let given: Vec<Argument> = given.map(Argument::of).collect::<Result<_>>()?;
        let mut facts = Facts::new(facts);
        let answer = |row| {
            let kind = kinds.value(row);
            let (of, rest) = match (given.len(), kind == "one column") {
                (2, false) | (3, true) => (&roles, &given[..]),
                (3, false) | (4, true) => (&given[0], &given[1..]),
                // A NULL that is written has no type either.
                _ => return Ok(None),
            };
            let [object, .., privileges] = rest else { return Ok(None) };
            let texts = (of.get(row), object.get(row), privileges.get(row));
            let (Some(role), Some(name), Some(privileges)) = texts else { return Ok(None) };
            let asked = asked(kind, privileges)?;
            facts.read(row);
            let role = facts.role(role, of.is_name)?;
            let found = facts.object(kind, name, object.is_name)?;
            Ok(found.map(|found| asked.iter().any(|it| may(&facts, &role, &found, it))))
        };
        let answers: BooleanArray = (0..roles.texts.len()).map(answer).collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

/// A privilege that is asked for.
struct Asked {
    word: String,
    /// Whether the role has to be able to give it to others.
    with_grant: bool,
}

/// The privileges of a text: one of them is enough.
fn asked(kind: &str, text: &str) -> Result<Vec<Asked>> {
    let known: &[&str] = match kind {
        "table" => &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"],
        "column" | "one column" => &["SELECT", "INSERT", "UPDATE", "REFERENCES"],
        "sequence" => &["SELECT", "UPDATE", "USAGE"],
        "schema" => &["CREATE", "USAGE"],
        "database" => &["CREATE", "CONNECT", "TEMPORARY", "TEMP"],
        _ => &["MEMBER", "USAGE", "SET"],
    };
    let read = |part: &str| {
        let upper = part.trim().to_ascii_uppercase();
        let bare = upper.strip_suffix(" WITH GRANT OPTION");
        let bare = bare.or_else(|| upper.strip_suffix(" WITH ADMIN OPTION"));
        let (word, with_grant) = bare.map_or((&*upper, false), |word| (word.trim(), true));
        match known.contains(&word) {
            true => Ok(Asked { word: word.to_owned(), with_grant }),
            false => Err(failed(format!(
                "\"{}\" is no privilege that is asked for here: there are {}",
                part.trim(),
                known.join(", ")
            ))),
        }
    };
    text.split(',').map(read).collect()
}

/// Whether a role has a privilege. It is judged as the engine judges statements; as in Postgres, a right to an object does not depend on the
/// right to name what is in its schema.
fn may(facts: &Facts, role: &str, found: &Found, Asked { word, with_grant }: &Asked) -> bool {
    let Found { kind, schema, object, of_table } = found;
    if facts.is_superuser(role) {
        return true;
    }
    let (kind, object) = match of_table {
        // The sequence of a column goes with its table.
        Some(table) => (ObjectKind::Table, &**table),
        None => (*kind, &**object),
    };
    let roles = facts.effective(role);
    match kind {
        ObjectKind::Role => return !with_grant && roles.contains(object),
        ObjectKind::Catalog => return word == "SELECT" && !with_grant,
        _ => {}
    }
    if facts.owner(kind, schema, object).is_some_and(|owner| roles.contains(owner)) {
        return true;
    }
    let has = |kind, schema: &str, object: &str, words: &[&str]| {
        !with_grant && facts.has(&roles, (kind, schema, object), words)
    };
    match (kind, word.as_str()) {
        (ObjectKind::Table, "SELECT") if of_table.is_some() => {
            has(kind, schema, object, &["SELECT", "INSERT"])
                || has(ObjectKind::Schema, "", schema, &["SELECT", "INSERT"])
        }
        (ObjectKind::Table, word) => {
            let word = match word {
                "TRUNCATE" => "DELETE",
                _ if of_table.is_some() => "INSERT",
                word => word,
            };
            has(kind, schema, object, &[word]) || has(ObjectKind::Schema, "", schema, &[word])
        }
        (ObjectKind::Schema, "USAGE") => {
            let own = ["pg_catalog", "information_schema", "alluvium"];
            own.contains(&object) && !with_grant
                || has(
                    kind,
                    "",
                    object,
                    &["USAGE", "CREATE", "SELECT", "INSERT", "UPDATE", "DELETE"],
                )
        }
        (_, "TEMP") => has(kind, schema, object, &["TEMPORARY"]),
        (_, word) => has(kind, schema, object, &[word]),
    }
}

pub(super) fn failed(message: String) -> DataFusionError {
    DataFusionError::Execution(message)
}

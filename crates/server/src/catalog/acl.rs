//! Lists of rights as Postgres has them: `{ada=arwdDxt/ada,readers=r/ada,=r/ada}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::arrow::array::{
    ArrayRef, AsArray, ListArray, ListBuilder, StringArray, StringBuilder,
};
use alluvium::functions::{ColumnarValue, Result};

/// The role that owns what belongs to the superusers.
const SUPERUSER: &str = "alluvium";
/// All roles.
const PUBLIC: &str = "public";
/// The privileges with their letters, in Postgres's order.
const LETTERS: [(&str, char); 8] = [
    ("INSERT", 'a'),
    ("SELECT", 'r'),
    ("UPDATE", 'w'),
    ("DELETE", 'd'),
    ("USAGE", 'U'),
    ("CREATE", 'C'),
    ("TEMPORARY", 'T'),
    ("CONNECT", 'c'),
];

/// The letters of who owns an object of a kind.
fn of_owner(kind: &str) -> &'static str {
    match kind {
        "table" => "arwdDxt",
        "schema" => "UC",
        "sequence" => "rwU",
        "database" => "CTc",
        _ => "X",
    }
}

/// The name of a role in a list.
fn named(role: &str) -> String {
    let is_word = role.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match role {
        PUBLIC => String::new(),
        _ if is_word => role.to_owned(),
        _ => format!("\"{}\"", role.replace('"', "\"\"")),
    }
}

/// The grants on an object: pairs of a role and a privilege, of which one may be `OWNER`.
struct Grants {
    owner: String,
    letters: BTreeMap<String, Vec<char>>,
}

impl Grants {
    fn of(list: &ArrayRef) -> Self {
        let mut grants = Self { owner: SUPERUSER.to_owned(), letters: BTreeMap::new() };
        for pair in list.as_list_opt::<i32>().into_iter().flat_map(ListArray::iter).flatten() {
            let pair: Vec<&str> = pair.as_string::<i32>().iter().flatten().collect();
            let [role, privilege] = pair[..] else { continue };
            if privilege == "OWNER" {
                role.clone_into(&mut grants.owner);
            }
            let letter = LETTERS.iter().find(|(word, _)| *word == privilege);
            if let Some((_, letter)) = letter {
                grants.letters.entry(role.to_owned()).or_default().push(*letter);
            }
        }
        grants.letters.remove(&grants.owner);
        grants
    }

    /// The list; `None` as long as nobody but the owner has a privilege.
    fn list(&self, kind: &str) -> Option<Vec<String>> {
        if self.letters.is_empty() {
            return None;
        }
        let owner = named(&self.owner);
        let mut items = vec![format!("{owner}={}/{owner}", of_owner(kind))];
        // All roles come first.
        let all = self.letters.iter().filter(|(role, _)| *role == PUBLIC);
        let others = self.letters.iter().filter(|(role, _)| *role != PUBLIC);
        for (role, letters) in all.chain(others) {
            let ordered = LETTERS.iter().map(|(_, letter)| letter);
            let letters: String = ordered.filter(|it| letters.contains(it)).collect();
            items.push(format!("{}={letters}/{owner}", named(role)));
        }
        Some(items)
    }
}

/// `owner_of(grants)`
pub(super) fn owner_of(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let lists = columns[0].as_list::<i32>().iter();
    let owners =
        lists.map(|list| Some(list.map_or(SUPERUSER.to_owned(), |it| Grants::of(&it).owner)));
    Ok(ColumnarValue::Array(Arc::new(owners.collect::<StringArray>())))
}

/// `acl_of(kind, grants)`
pub(super) fn acl_of(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let (kinds, lists) = (columns[0].as_string::<i32>(), columns[1].as_list::<i32>());
    let mut all = ListBuilder::new(StringBuilder::new());
    for (row, list) in lists.iter().enumerate() {
        let items = list.and_then(|list| Grants::of(&list).list(kinds.value(row)));
        items.iter().flatten().for_each(|item| all.values().append_value(item));
        all.append(items.is_some());
    }
    Ok(ColumnarValue::Array(Arc::new(all.finish())))
}

/// `acl_of_owner(kind, owner)`: the list once nobody else has a privilege that all had at first.
pub(super) fn acl_of_owner(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let (kinds, owners) = (columns[0].as_string::<i32>(), columns[1].as_string::<i32>());
    let mut all = ListBuilder::new(StringBuilder::new());
    for (kind, owner) in kinds.iter().zip(owners) {
        let item = kind
            .zip(owner.map(named))
            .map(|(kind, owner)| format!("{owner}={}/{owner}", of_owner(kind)));
        item.iter().for_each(|item| all.values().append_value(item));
        all.append(item.is_some());
    }
    Ok(ColumnarValue::Array(Arc::new(all.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_as_postgres_has_them() {
        let mut all = ListBuilder::new(StringBuilder::new());
        for (role, privilege) in [
            ("ada", "OWNER"),
            ("public", "SELECT"),
            ("a b", "DELETE"),
            ("a b", "INSERT"),
            ("ada", "SELECT"),
        ] {
            [role, privilege].iter().for_each(|text| all.values().append_value(text));
            all.append(true);
        }
        let grants = Grants::of(&(Arc::new(all.finish()) as ArrayRef));
        assert_eq!(grants.owner, "ada");
        let list = grants.list("table").expect("a list");
        assert_eq!(list, ["ada=arwdDxt/ada", "=r/ada", "\"a b\"=ad/ada"]);
        let nothing =
            ListBuilder::new(ListBuilder::new(StringBuilder::new())).finish().values().clone();
        assert_eq!(Grants::of(&nothing).list("table"), None);
    }
}

//! The keys and values of folders named `key=value`, as Hive, Spark and DuckDB write them.

use std::path::{Component, Path};

/// The value that a NULL has in the name of a folder.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A key, and its value in one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// `None` is NULL.
    pub value: Option<String>,
}

/// The keys of the folders of a file below `base`, from the outermost one. Of two that have one name, the first counts.
pub fn keys(path: &Path, base: &Path) -> Vec<Key> {
    let below = path.strip_prefix(base).unwrap_or(path);
    let mut keys: Vec<Key> = Vec::new();
    for folder in below.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(folder) = folder else { continue };
        let Some((name, value)) = folder.to_str().and_then(|folder| folder.split_once('=')) else {
            continue;
        };
        let name = decoded(name);
        if !name.is_empty() && !keys.iter().any(|key| key.name.eq_ignore_ascii_case(&name)) {
            let is_null = value == NULL || value.eq_ignore_ascii_case("NULL");
            keys.push(Key { name, value: (!is_null).then(|| decoded(value)) });
        }
    }
    keys
}

/// A text in which `%` and two hexadecimal digits are a byte; as it stands if that is no text.
fn decoded(written: &str) -> String {
    let bytes = written.as_bytes();
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let (mut found, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let byte = digit(at + 1).zip(digit(at + 2)).filter(|_| bytes[at] == b'%');
        match byte {
            Some((high, low)) => {
                found.push((high * 16 + low) as u8);
                at += 3;
            }
            None => {
                found.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(found).unwrap_or_else(|_| written.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_folders_below_the_base() {
        let found = |path: &str| -> Vec<String> {
            let keys = keys(Path::new(path), Path::new("/x=1"));
            let shown =
                |key: Key| format!("{}:{}", key.name, key.value.as_deref().unwrap_or("NULL"));
            keys.into_iter().map(shown).collect()
        };
        assert_eq!(found("/x=1/a=1/b=%C3%A9%2F=/c=d.csv"), ["a:1", "b:\u{e9}/="]);
        assert_eq!(found("/y=1/a=__HIVE_DEFAULT_PARTITION__/A=2/f"), ["y:1", "a:NULL"]);
        assert_eq!(found("/x=1/=1/%FF=%/b%3d=/f"), ["%FF:%", "b=:"]);
        assert_eq!(found("/x=1/f"), Vec::<String>::new());
    }
}

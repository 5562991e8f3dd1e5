//! Relations and keys in paths.

use alluvium::name::split;
use axum::http::Uri;
use percent_encoding::percent_decode_str;

use super::problem::Problem;

/// What stands before the name of a relation in a path.
const BEFORE: &str = "/v1/relations/";

/// The parts of a path after the name of a relation, and the relation.
pub(super) struct Path {
    pub(super) relation: Relation,
    /// Decoded.
    pub(super) parts: Vec<String>,
}

/// A relation that a path names, as `alluvium.relations` has its name: `t`, `s.t`, `"a.b"`.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The text by which it goes.
    pub(super) name: String,
    /// As SQL names it.
    pub(super) sql: String,
}

impl Path {
    /// Reads a path. A slash in a name or a key is written as `%2F`.
    pub(super) fn of(uri: &Uri) -> Result<Self, Problem> {
        let path = uri.path().strip_prefix(BEFORE).unwrap_or_default();
        let decoded = path.split('/').map(|part| {
            let text = percent_decode_str(part).decode_utf8();
            text.map(|text| text.into_owned())
                .map_err(|_| Problem::bad("the path is not UTF-8, percent-encoded"))
        });
        let mut parts = decoded.collect::<Result<Vec<_>, _>>()?;
        let name = parts.remove(0);
        Ok(Self { relation: Relation::named(name), parts })
    }
}

impl Relation {
    fn named(name: String) -> Self {
        let (schema, table) = split(&name);
        Self { sql: format!("{}.{}", quoted(&schema), quoted(&table)), name }
    }
}

/// A name as SQL writes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_relations_and_keys() {
        let read = |path: &str| {
            let path = Path::of(&path.parse().expect("a path")).expect("a relation");
            (path.relation.sql, path.parts)
        };
        let parts =
            |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        assert_eq!(read("/v1/relations/t"), ("\"public\".\"t\"".to_owned(), parts(&[])));
        assert_eq!(read("/v1/relations/s.t/changes").0, "\"s\".\"t\"");
        assert_eq!(read("/v1/relations/%22a.b%22/1/x%2Fy").0, "\"public\".\"a.b\"");
        assert_eq!(read("/v1/relations/%22a.b%22/1/x%2Fy").1, parts(&["1", "x/y"]));
        assert_eq!(read("/v1/relations/%22a%22%22b%22/+").0, "\"public\".\"a\"\"b\"");
        assert_eq!(read("/v1/relations/%C3%A4/+").1, parts(&["+"]));
        assert!(Path::of(&"/v1/relations/%FF".parse().expect("a path")).is_err());
    }
}

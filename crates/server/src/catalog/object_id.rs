//! The OIDs of objects.

use alluvium::arrow::array::{Array, AsArray, UInt32Array};
use alluvium::functions::{ColumnarValue, Result};

/// The first OID that Postgres gives to objects of users.
const FIRST: u32 = 16_384;

/// Postgres's OIDs of schemas, roles and the like.
const KNOWN: [(&str, &str, u32); 9] = [
    ("schema", "pg_catalog", 11),
    ("schema", "public", 2200),
    ("schema", "information_schema", 13_000),
    ("database", "alluvium", 5),
    ("role", "alluvium", 10),
    ("role", "pg_read_server_files", 4569),
    ("role", "pg_write_server_files", 4570),
    ("access method", "heap", 2),
    ("access method", "btree", 403),
];

/// The OID of an object of a kind, which has a name in a schema; that of a schema is empty.
pub(super) fn of(kind: &str, schema: &str, name: &str) -> u32 {
    let known = KNOWN.iter().find(|known| (known.0, known.1) == (kind, name));
    if let Some((.., oid)) = known.filter(|_| schema.is_empty()) {
        return *oid;
    }
    // FNV-1a: it has to be the same after a restart, and in other versions.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [kind, schema, name] {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // Clients take OIDs for signed numbers, too.
    let range = u64::from(i32::MAX.unsigned_abs() - FIRST);
    FIRST + u32::try_from((hash ^ (hash >> 32)) % range).unwrap_or_default()
}

/// `object_id(kind, schema, name)`
pub(super) fn object_id(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let texts: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
    let [kinds, schemas, names] = &texts[..] else { unreachable!("three are declared") };
    let ids = (0..names.len()).map(|row| {
        let is_null = [kinds, schemas, names].iter().any(|column| column.is_null(row));
        (!is_null).then(|| of(kinds.value(row), schemas.value(row), names.value(row)))
    });
    Ok(ColumnarValue::Array(std::sync::Arc::new(ids.collect::<UInt32Array>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_do_not_change_and_are_beyond_those_of_postgres() {
        assert_eq!(of("schema", "", "public"), 2200);
        assert_eq!(of("relation", "public", "t"), of("relation", "public", "t"));
        let names = (0..1000).map(|number| of("relation", "public", &format!("t{number}")));
        let distinct: std::collections::BTreeSet<u32> = names.collect();
        assert_eq!(distinct.len(), 1000);
        assert!(distinct.iter().all(|oid| (FIRST..=i32::MAX.unsigned_abs()).contains(oid)));
    }
}

//! Postgres's types: their rows in `pg_type`, their names, and those that columns have.

use std::sync::Arc;

use alluvium::arrow::array::{AsArray, Int32Array, StringArray, UInt32Array};
use alluvium::arrow::datatypes::Int64Type;
use alluvium::functions::{ColumnarValue, Result};

/// A type.
struct Type {
    oid: u32,
    /// That of its arrays, or zero.
    array: u32,
    name: &'static str,
    /// Its name as SQL spells it.
    shown: &'static str,
    /// The bytes of a value, or -1.
    length: i16,
    category: char,
    /// The name of its functions for input and output, without `in` and `out`.
    functions: &'static str,
}

const fn base(
    (oid, array): (u32, u32),
    (name, shown): (&'static str, &'static str),
    length: i16,
    category: char,
    functions: &'static str,
) -> Type {
    Type { oid, array, name, shown, length, category, functions }
}

/// Those that exist without a definition.
const TYPES: [Type; 34] = [
    base((16, 1000), ("bool", "boolean"), 1, 'B', "bool"),
    base((17, 1001), ("bytea", "bytea"), -1, 'U', "bytea"),
    base((18, 1002), ("char", "\"char\""), 1, 'Z', "char"),
    base((19, 1003), ("name", "name"), 64, 'S', "name"),
    base((20, 1016), ("int8", "bigint"), 8, 'N', "int8"),
    base((21, 1005), ("int2", "smallint"), 2, 'N', "int2"),
    base((22, 1006), ("int2vector", "int2vector"), -1, 'A', "int2vector"),
    base((23, 1007), ("int4", "integer"), 4, 'N', "int4"),
    base((24, 1008), ("regproc", "regproc"), 4, 'N', "regproc"),
    base((25, 1009), ("text", "text"), -1, 'S', "text"),
    base((26, 1028), ("oid", "oid"), 4, 'N', "oid"),
    base((30, 1013), ("oidvector", "oidvector"), -1, 'A', "oidvector"),
    base((114, 199), ("json", "json"), -1, 'U', "json_"),
    base((194, 0), ("pg_node_tree", "pg_node_tree"), -1, 'Z', "pg_node_tree_"),
    base((700, 1021), ("float4", "real"), 4, 'N', "float4"),
    base((701, 1022), ("float8", "double precision"), 8, 'N', "float8"),
    base((705, 0), ("unknown", "unknown"), -2, 'X', "unknown"),
    base((1042, 1014), ("bpchar", "character"), -1, 'S', "bpchar"),
    base((1043, 1015), ("varchar", "character varying"), -1, 'S', "varchar"),
    base((1082, 1182), ("date", "date"), 4, 'D', "date_"),
    base((1083, 1183), ("time", "time without time zone"), 8, 'D', "time_"),
    base((1114, 1115), ("timestamp", "timestamp without time zone"), 8, 'D', "timestamp_"),
    base((1184, 1185), ("timestamptz", "timestamp with time zone"), 8, 'D', "timestamptz_"),
    base((1186, 1187), ("interval", "interval"), 16, 'T', "interval_"),
    base((1700, 1231), ("numeric", "numeric"), -1, 'N', "numeric_"),
    base((2205, 2210), ("regclass", "regclass"), 4, 'N', "regclass"),
    base((2206, 2211), ("regtype", "regtype"), 4, 'N', "regtype"),
    base((2249, 2287), ("record", "record"), -1, 'P', "record_"),
    base((2276, 0), ("any", "\"any\""), 4, 'P', "any_"),
    base((2283, 0), ("anyelement", "anyelement"), 4, 'P', "anyelement_"),
    base((2279, 0), ("trigger", "trigger"), 4, 'P', "trigger_"),
    base((2278, 0), ("void", "void"), 4, 'P', "void_"),
    base((2950, 2951), ("uuid", "uuid"), 16, 'U', "uuid_"),
    base((3802, 3807), ("jsonb", "jsonb"), -1, 'U', "jsonb_"),
];

/// Types that columns can have, with Postgres's: as the wire has them.
const COLUMN_TYPES: [(&str, u32); 17] = [
    ("BOOLEAN", 16),
    ("TINYINT", 21),
    ("UTINYINT", 21),
    ("SMALLINT", 21),
    ("USMALLINT", 23),
    ("INTEGER", 23),
    ("UINTEGER", 20),
    ("BIGINT", 20),
    ("UBIGINT", 1700),
    ("FLOAT", 700),
    ("DOUBLE", 701),
    ("BLOB", 17),
    ("DATE", 1082),
    ("TIME", 1083),
    ("TIMESTAMP", 1114),
    ("TIMESTAMP WITH TIME ZONE", 1184),
    ("INTERVAL", 1186),
];

/// The OID of text.
const TEXT: u32 = 25;

/// The OID of numbers of exact digits.
const NUMERIC: u32 = 1700;

fn of_oid(oid: u32) -> Option<(&'static Type, bool)> {
    if oid == 0 {
        return None;
    }
    let of_elements = TYPES.iter().find(|it| it.oid == oid).map(|it| (it, false));
    of_elements.or_else(|| TYPES.iter().find(|it| it.array == oid).map(|it| (it, true)))
}

/// `pg_type` without the types of rows of relations, which `objects.sql` adds.
pub(super) fn sql() -> String {
    let row = |it: &Type, is_array: bool| {
        let (oid, name) = match is_array {
            true => (it.array, format!("_{}", it.name)),
            false => (it.oid, it.name.to_owned()),
        };
        let (functions, length, category) = match is_array {
            true => ("array_", -1, 'A'),
            false => (it.functions, it.length, it.category),
        };
        let (element, array) = if is_array { (it.oid, 0) } else { (0, it.array) };
        let element = match oid {
            22 => 21,
            30 => 26,
            _ => element,
        };
        let kind = if category == 'P' || it.category == 'P' { 'p' } else { 'b' };
        let collation = if it.category == 'S' { 100 } else { 0 };
        let by_value = matches!(length, 1 | 2 | 4 | 8);
        format!(
            "({oid}, '{name}', {length}, {by_value}, '{kind}', '{category}', {element}, {array}, '{functions}', {collation})"
        )
    };
    let all = TYPES.iter().map(|it| row(it, false));
    let arrays = TYPES.iter().filter(|it| it.array != 0).map(|it| row(it, true));
    let shown = TYPES.iter().flat_map(|it| {
        let own = format!("({}, '{}')", it.oid, it.shown);
        let array = (it.array != 0).then(|| format!("({}, '{}[]')", it.array, it.shown));
        [own].into_iter().chain(array)
    });
    let rows: Vec<String> = all.chain(arrays).collect();
    let shown: Vec<String> = shown.collect();
    format!(
        "CREATE VIEW pg_internal.types (oid, name, length, by_value, kind, category, element, array_oid, functions, collation) AS \
         SELECT * FROM (VALUES {}) AS known;\n\
         CREATE VIEW pg_internal.shown_types (oid, name) AS SELECT * FROM (VALUES {}) AS known;\n",
        rows.join(", "),
        shown.join(", ")
    )
}

/// The OID of a type that a column has, by its name in `alluvium.columns`.
fn of_column(name: &str) -> u32 {
    if let Some(element) = name.strip_suffix(']').and_then(|it| it.rsplit_once('[')) {
        // A list of lists is an array of the innermost elements.
        let element = of_column(element.0);
        let known = of_oid(element);
        return known.map_or(TEXT, |(of, is_array)| if is_array { element } else { of.array });
    }
    if name.starts_with("DECIMAL") {
        return NUMERIC;
    }
    COLUMN_TYPES.iter().find(|(known, _)| *known == name).map_or(TEXT, |(_, oid)| *oid)
}

/// The modifier of the type of a column: that of `DECIMAL(p, s)`, or -1.
fn modifier(name: &str) -> i32 {
    let digits = match name {
        "UBIGINT" => Some((20, 0)),
        _ => name.strip_prefix("DECIMAL(").and_then(|digits| {
            let (precision, scale) = digits.split_once(')')?.0.split_once(',')?;
            Some((precision.trim().parse::<i32>().ok()?, scale.trim().parse::<i32>().ok()?))
        }),
    };
    digits.map_or(-1, |(precision, scale)| ((precision << 16) | (scale & 0x7ff)) + 4)
}

/// `column_type_id(type)`
pub(super) fn column_type_id(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let names = columns[0].as_string::<i32>().iter();
    let oids = names.map(|name| name.map(of_column)).collect::<UInt32Array>();
    Ok(ColumnarValue::Array(Arc::new(oids)))
}

/// `column_type_modifier(type)`
pub(super) fn column_type_modifier(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let names = columns[0].as_string::<i32>().iter();
    let modifiers = names.map(|name| name.map(modifier)).collect::<Int32Array>();
    Ok(ColumnarValue::Array(Arc::new(modifiers)))
}

/// `shown_type(oid, modifier)`: as `format_type` shows a type.
pub(super) fn shown_type(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let (oids, modifiers) =
        (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int64Type>());
    let names = oids.iter().zip(modifiers.iter()).map(|(oid, modifier)| {
        let oid = u32::try_from(oid?).unwrap_or(u32::MAX);
        Some(match of_oid(oid) {
            None if oid == 0 => "-".to_owned(),
            None => "???".to_owned(),
            Some((of, is_array)) => {
                let list = if is_array { "[]" } else { "" };
                match modifier.filter(|it| *it >= 4 && of.oid == NUMERIC) {
                    Some(modifier) => {
                        let (precision, scale) = ((modifier - 4) >> 16, (modifier - 4) & 0x7ff);
                        format!("{}({precision},{scale}){list}", of.shown)
                    }
                    None => format!("{}{list}", of.shown),
                }
            }
        })
    });
    Ok(ColumnarValue::Array(Arc::new(names.collect::<StringArray>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_of_postgres() {
        assert_eq!((of_column("INTEGER"), of_column("INTEGER[][]")), (23, 1007));
        assert_eq!((of_column("STRUCT(a INTEGER)"), of_column("VARCHAR[]")), (25, 1009));
        assert_eq!((of_column("DECIMAL(10,2)"), modifier("DECIMAL(10,2)")), (1700, 655_366));
    }
}

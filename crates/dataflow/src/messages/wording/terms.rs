//! Types and constants.

use arrow::datatypes::DataType;

/// The text with types and constants of Arrow as SQL writes them: `Int32` is INTEGER, and `Utf8("x")` is `'x'`. Quoted
/// text stays.
pub fn in_sql_terms(text: &str) -> String {
    let mut terms = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let is_inside = before.is_some_and(is_of_word);
        let length = match first {
            '\'' | '"' if !is_inside => rest[1..].find(first).map_or(1, |end| end + 2),
            _ if is_of_word(first) && !is_inside => {
                let (length, term) = word(rest);
                if let Some(term) = term {
                    terms.push_str(&term);
                    before = terms.chars().next_back();
                    rest = &rest[length..];
                    continue;
                }
                length
            }
            _ => first.len_utf8(),
        };
        terms.push_str(&rest[..length]);
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    terms
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The word that a text begins with, how long it is, and what SQL calls it if it is a type or a constant.
fn word(text: &str) -> (usize, Option<String>) {
    let length = text.find(|character| !is_of_word(character)).unwrap_or(text.len());
    let name = &text[..length];
    if !name.starts_with(|first: char| first.is_ascii_uppercase()) {
        return (length, None);
    }
    let Some(inside) = text[length..].strip_prefix('(').and_then(enclosed) else {
        return (length, name.parse().ok().as_ref().map(type_name));
    };
    let whole = length + inside.len() + 2;
    if let Ok(data_type) = text[..whole].parse::<DataType>() {
        return (whole, Some(type_name(&data_type)));
    }
    match constant(name, inside) {
        Some(constant) => (whole, Some(constant)),
        None => (length, None),
    }
}

/// The text up to the bracket that closes it.
fn enclosed(text: &str) -> Option<&str> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth == 0 => return Some(&text[..at]),
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A constant of a type of this name, as DataFusion prints it.
fn constant(name: &str, inside: &str) -> Option<String> {
    const TYPES: [&str; 14] = [
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float32",
        "Float64",
        "Utf8",
        "Date32",
        "IntervalMonthDayNano",
    ];
    if name == "Decimal128" {
        let (digits, rest) = inside.strip_prefix("Some(")?.split_once(')')?;
        return decimal(digits, rest.rsplit(',').next()?.parse().ok()?);
    }
    if !TYPES.contains(&name) {
        return None;
    }
    match inside.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Some(format!("'{text}'")),
        None => Some(inside.to_owned()),
    }
}

/// A number with so many digits after its point.
fn decimal(digits: &str, scale: usize) -> Option<String> {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits = format!("{digits:0>width$}", width = scale.min(38) + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(scale)?)?;
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// A type as DuckDB writes it.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "\"NULL\"".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "UTINYINT".to_owned(),
        DataType::UInt16 => "USMALLINT".to_owned(),
        DataType::UInt32 => "UINTEGER".to_owned(),
        DataType::UInt64 => "UBIGINT".to_owned(),
        DataType::Float16 | DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BLOB".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => format!("{}[]", type_name(element.data_type())),
        DataType::FixedSizeList(element, length) => {
            format!("{}[{length}]", type_name(element.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), type_name(field.data_type())))
                .collect();
            format!("STRUCT({})", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<String> =
                    fields.iter().map(|field| type_name(field.data_type())).collect();
                format!("MAP({})", types.join(", "))
            }
            other => type_name(other),
        },
        DataType::Dictionary(_, values) => type_name(values),
        DataType::RunEndEncoded(_, values) => type_name(values.data_type()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_constants_are_those_of_sql() {
        for (text, expected) in [
            ("Int32 + Utf8", "INTEGER + VARCHAR"),
            (
                "of type Timestamp(µs), not Timestamp(µs, \"+00:00\")",
                "of type TIMESTAMP, not TIMESTAMP WITH TIME ZONE",
            ),
            ("[List(Int64), Decimal128(2, 1)]", "[BIGINT[], DECIMAL(2,1)]"),
            ("Struct(\"f\": Int32, \"g\": Utf8)", "STRUCT(f INTEGER, g VARCHAR)"),
            (
                "Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": Int32), unsorted)",
                "MAP(VARCHAR, INTEGER)",
            ),
            ("t.a > Int64(-1) AND s = Utf8(\"x (y\")", "t.a > -1 AND s = 'x (y'"),
            ("Decimal128(Some(-15),3,1), Decimal128(Some(5),3,2)", "-1.5, 0.05"),
            ("\"Int32\" 'Utf8' it's Int8", "\"Int32\" 'Utf8' it's TINYINT"),
            ("Struct, Map, or a List(", "Struct, Map, or a List("),
            ("MyInt32 Int32x Int32(", "MyInt32 Int32x INTEGER("),
            ("", ""),
        ] {
            assert_eq!(in_sql_terms(text), expected);
        }
    }
}

//! The types of SQL, as clients of ODBC and JDBC ask for them: GetXdbcTypeInfo.

use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};
use tonic::Status;

/// The digits of a DECIMAL, and the bytes of a text, at most.
const DIGITS: i32 = 38;

/// A type: its name, its kind, the digits or letters that its values have, and whether these are in quotes.
type Row = (&'static str, XdbcDataType, Option<i32>, bool);

/// The types, in the order of their kinds, as clients expect them.
const TYPES: [Row; 17] = [
    ("TINYINT", XdbcDataType::XdbcTinyint, Some(3), false),
    ("BOOLEAN", XdbcDataType::XdbcBit, Some(1), false),
    ("BIGINT", XdbcDataType::XdbcBigint, Some(19), false),
    ("UBIGINT", XdbcDataType::XdbcBigint, Some(20), false),
    ("BYTEA", XdbcDataType::XdbcVarbinary, None, true),
    ("CHAR", XdbcDataType::XdbcChar, None, true),
    ("DECIMAL", XdbcDataType::XdbcDecimal, Some(DIGITS), false),
    ("INTEGER", XdbcDataType::XdbcInteger, Some(10), false),
    ("UINTEGER", XdbcDataType::XdbcInteger, Some(10), false),
    ("SMALLINT", XdbcDataType::XdbcSmallint, Some(5), false),
    ("REAL", XdbcDataType::XdbcReal, Some(24), false),
    ("DOUBLE", XdbcDataType::XdbcDouble, Some(53), false),
    ("VARCHAR", XdbcDataType::XdbcVarchar, None, true),
    ("DATE", XdbcDataType::XdbcDate, Some(10), true),
    ("TIME", XdbcDataType::XdbcTime, Some(15), true),
    ("TIMESTAMP", XdbcDataType::XdbcTimestamp, Some(26), true),
    ("TIMESTAMP WITH TIME ZONE", XdbcDataType::XdbcTimestamp, Some(32), true),
];

/// What is known of the types.
pub(in crate::flight) fn types() -> Result<XdbcTypeInfoData, Status> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    TYPES.iter().for_each(|row| types.append(info(*row)));
    types.build().map_err(Status::from)
}

fn info((name, kind, column_size, is_quoted): Row) -> XdbcTypeInfo {
    let quote = is_quoted.then(|| "'".to_owned());
    let is_decimal = kind == XdbcDataType::XdbcDecimal;
    let is_moment = matches!(
        kind,
        XdbcDataType::XdbcDate | XdbcDataType::XdbcTime | XdbcDataType::XdbcTimestamp
    );
    let (sql_data_type, datetime_subcode) = match kind {
        XdbcDataType::XdbcDate => {
            // 1, which is also that of dates.
            (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeYear))
        }
        XdbcDataType::XdbcTime => {
            (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeTime))
        }
        XdbcDataType::XdbcTimestamp => {
            (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp))
        }
        other => (other, None),
    };
    let is_text = matches!(kind, XdbcDataType::XdbcVarchar | XdbcDataType::XdbcChar);
    let is_number = !is_quoted && kind != XdbcDataType::XdbcBit;
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type: kind,
        column_size,
        literal_prefix: quote.clone(),
        literal_suffix: quote,
        create_params: is_decimal.then(|| vec!["precision".to_owned(), "scale".to_owned()]),
        nullable: Nullable::NullabilityNullable,
        case_sensitive: is_text,
        searchable: if is_text { Searchable::Full } else { Searchable::Basic },
        unsigned_attribute: is_number.then(|| name.starts_with('U')),
        fixed_prec_scale: false,
        auto_increment: is_number.then_some(false),
        local_type_name: Some(name.to_owned()),
        minimum_scale: is_decimal.then_some(0),
        maximum_scale: match is_decimal {
            true => Some(DIGITS),
            false => is_moment.then_some(6),
        },
        sql_data_type,
        datetime_subcode,
        num_prec_radix: is_number.then_some(match kind {
            XdbcDataType::XdbcReal | XdbcDataType::XdbcDouble => 2,
            _ => 10,
        }),
        interval_precision: None,
    }
}

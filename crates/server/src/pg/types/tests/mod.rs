//! Values against those of Postgres, and random ones.

mod golden;
mod messages;
mod random;

use arrow::array::{ArrayRef, RecordBatch};
use bytes::BytesMut;

use super::{Format, Rejected, RowEncoder};
use crate::pg::types::time::zone::Zone;

/// The OIDs of types by their names.
const OIDS: [(&str, u32); 34] = [
    ("bool", 16),
    ("bytea", 17),
    ("int8", 20),
    ("int2", 21),
    ("int4", 23),
    ("text", 25),
    ("oid", 26),
    ("json", 114),
    ("float4", 700),
    ("float8", 701),
    ("varchar", 1043),
    ("date", 1082),
    ("time", 1083),
    ("timestamp", 1114),
    ("timestamptz", 1184),
    ("interval", 1186),
    ("numeric", 1700),
    ("uuid", 2950),
    ("bool[]", 1000),
    ("bytea[]", 1001),
    ("int2[]", 1005),
    ("int4[]", 1007),
    ("text[]", 1009),
    ("varchar[]", 1015),
    ("int8[]", 1016),
    ("float4[]", 1021),
    ("float8[]", 1022),
    ("timestamp[]", 1115),
    ("date[]", 1182),
    ("time[]", 1183),
    ("timestamptz[]", 1185),
    ("interval[]", 1187),
    ("numeric[]", 1231),
    ("uuid[]", 2951),
];

/// The OID of a name.
fn oid(name: &str) -> u32 {
    OIDS.iter().find(|(known, _)| *known == name).expect(name).1
}

/// The fields of each row of an array, as messages have them.
fn encoded(array: &ArrayRef, format: Format, zone: Zone) -> Result<Vec<Option<Vec<u8>>>, Rejected> {
    let batch = RecordBatch::try_from_iter_with_nullable([("x", array.clone(), true)]).unwrap();
    let mut encoder = RowEncoder::new(&batch.schema(), &[format])?.in_zone(zone);
    let mut out = BytesMut::new();
    encoder.encode(&batch, 0..batch.num_rows(), &mut out)?;
    let mut rest = &out[..];
    let mut rows = Vec::new();
    while !rest.is_empty() {
        assert_eq!((rest[0], &rest[5..7]), (b'D', &[0, 1][..]));
        let whole = 1 + u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        let length = i32::from_be_bytes(rest[7..11].try_into().unwrap());
        assert_eq!(whole, 11 + usize::try_from(length).unwrap_or(0));
        rows.push(usize::try_from(length).ok().map(|_| rest[11..whole].to_vec()));
        rest = &rest[whole..];
    }
    Ok(rows)
}

//! Values that Postgres has written, by the scripts in `tests/it/values`.

use super::super::time::zone::Zone;
use super::super::{Format, decode};
use super::{encoded, oid};

const VALUES: &str = include_str!("../../../../tests/it/values/values.tsv");
const REFUSED: &str = include_str!("../../../../tests/it/values/refused.tsv");

/// A value: the name of its type, the zone in which it is shown, its text and its bytes.
pub(super) struct Golden {
    pub(super) kind: &'static str,
    pub(super) zone: &'static str,
    pub(super) text: String,
    pub(super) bytes: Vec<u8>,
}

/// All values.
pub(super) fn values() -> Vec<Golden> {
    let row = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, zone, text, hex] = fields[..] else { panic!("{line}") };
        let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes = digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect();
        Golden { kind, zone, text: unescaped(text), bytes }
    };
    VALUES.lines().map(row).collect()
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        out.push(match character {
            '\\' => match rest.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            other => other,
        });
    }
    out
}

#[test]
fn values_are_written_and_read_as_postgres_does() {
    let values = values();
    assert!(values.len() > 500, "{}", values.len());
    for Golden { kind, zone, text, bytes } in values {
        let zone = Zone::parse(zone).unwrap();
        for (format, given) in [(Format::Text, text.as_bytes()), (Format::Binary, &bytes)] {
            let value = decode(oid(kind), None, format, given);
            let array = value.unwrap_or_else(|error| panic!("{kind} {text} {format:?}: {error}"));
            let array = array.to_array().unwrap();
            let shown = encoded(&array, Format::Text, zone).unwrap();
            let shown = String::from_utf8(shown[0].clone().unwrap()).unwrap();
            assert_eq!(shown, text, "{kind} in {format:?}");
            // These are texts here.
            if kind.starts_with("uuid") || kind.starts_with("varchar[]") || kind == "oid" {
                continue;
            }
            let binary = encoded(&array, Format::Binary, zone).unwrap();
            assert_eq!(binary[0].as_ref().unwrap(), &bytes, "{kind} {text} in {format:?}");
        }
    }
}

#[test]
fn texts_are_refused_with_the_codes_of_postgres() {
    for line in REFUSED.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, text, code] = fields[..] else { panic!("{line}") };
        let read = decode(oid(kind), None, Format::Text, text.as_bytes());
        let found = read.as_ref().map_or_else(|error| error.code(), |_| "00000");
        assert_eq!(found, code, "{kind} {text:?}: {read:?}");
    }
}

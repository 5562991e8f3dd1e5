//! Shapes of JSON values: as much of them as their types depend on.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value with other numbers and texts of the same kinds, and with one element of each shape in its arrays, where it occurs
/// first. A value takes many times as much memory as its text: an array of millions of numbers becomes one of one number.
pub struct Shape(pub Value);

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shapes).map(Self)
    }
}

struct Shapes;

impl<'de> Visitor<'de> for Shapes {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::from(true))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::from(1))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        // Larger integers are of no integer type.
        Ok(if i64::try_from(number).is_ok() { Value::from(1) } else { Value::from(1.5) })
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::from(1.5))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        Ok(Value::from(""))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let (mut shapes, mut known) = (Vec::new(), HashSet::new());
        while let Some(Shape(shape)) = elements.next_element()? {
            if !known.contains(&shape) {
                known.insert(shape.clone());
                shapes.push(shape);
            }
        }
        Ok(Value::Array(shapes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut shapes = Map::new();
        while let Some((name, Shape(shape))) = members.next_entry::<String, Shape>()? {
            shapes.insert(name, shape);
        }
        Ok(Value::Object(shapes))
    }
}

#[cfg(test)]
mod tests {
    use arrow::error::ArrowError;
    use arrow::json::reader::infer_json_schema_from_iterator;

    use super::*;

    fn shape(text: &str) -> String {
        serde_json::from_str::<Shape>(text)
            .map_or_else(|error| error.to_string(), |shape| shape.0.to_string())
    }

    #[test]
    fn an_array_has_one_element_of_each_shape() {
        assert_eq!(
            shape(&format!("[{}null]", "1, -7, 2.5, \"x\", true, ".repeat(1_000))),
            r#"[1,1.5,"",true,null]"#
        );
        assert_eq!(
            shape(&format!("[{}[[]]]", "[], [1], [2], [\"x\", 1], ".repeat(1_000))),
            r#"[[],[1],["",1],[[]]]"#
        );
        assert_eq!(
            shape(
                r#"[{"a": 1}, {"a": 18446744073709551615}, {"b": [1, 2]}, {"b": [3]}, {"a": 2}]"#
            ),
            r#"[{"a":1},{"a":1.5},{"b":[1]}]"#
        );
        assert_eq!(shape("[1,"), "EOF while parsing a value at line 1 column 3");
    }

    #[test]
    fn a_shape_has_the_type_of_its_value() {
        let schema = |value: Value| {
            let values = std::iter::once(Ok::<Value, ArrowError>(value));
            infer_json_schema_from_iterator(values).map_err(|_| "none")
        };
        for text in [
            r#"{"a": 1, "b": [1, 2.5, null], "c": {"d": ["x", "y"], "e": null}, "f": true, "a": 1.5}"#,
            r#"{"a": [null, 1, 1, "x"], "b": [[], [1], [2.5], []], "c": [[[true]], [[]]], "d": 9223372036854775808}"#,
            r#"{"a": [{"x": 1}, {"x": [2.5]}, {"x": 1}, {"y": {"z": ["t"]}}, {}], "b": [], "c": [{}]}"#,
            r#"{"a": [1, [2]]}"#,
            r#"{"a": [[1], {"b": 1}]}"#,
            r#"{"a": [{"b": 1}, 1]}"#,
            r#"{"a": [{"b": {}}, {"b": 1}]}"#,
        ] {
            let Shape(shape) = serde_json::from_str(text).unwrap();
            assert_eq!(schema(shape), schema(serde_json::from_str(text).unwrap()), "{text}");
        }
    }
}

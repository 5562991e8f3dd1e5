//! Maps made of entries, and of other maps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, Fields};
use arrow_row::{OwnedRow, RowConverter, SortField};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::list::as_list;
use super::plain::{Plain, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let first = |types: &[DataType]| types[0].clone();
    let of_entries = |types: &[DataType]| match &types[0] {
        DataType::List(entry) => map_of(entry.data_type()).unwrap_or(DataType::Null),
        _ => DataType::Null,
    };
    vec![
        Plain::function(&["map_from_entries"], entries, of_entries, from_entries),
        Plain::function(&["map_concat"], maps, first, concatenated),
    ]
}

/// The type of a map with these entries, which are structs of two fields.
fn map_of(entry: &DataType) -> Option<DataType> {
    let DataType::Struct(fields) = entry else { return None };
    let [key, value] = &fields[..] else { return None };
    let fields: Fields = vec![
        Field::new("key", key.data_type().clone(), false),
        Field::new("value", value.data_type().clone(), true),
    ]
    .into();
    let entries = Field::new("entries", DataType::Struct(fields), false);
    Some(DataType::Map(Arc::new(entries), false))
}

fn entries(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [list] = arguments else { return wrong_number(1, 1, arguments.len()) };
    let list = as_list(list)?;
    match &list {
        DataType::List(entry) if map_of(entry.data_type()).is_some() => Ok(vec![list]),
        _ => plan_err!("a list of structs with a key and a value is expected"),
    }
}

fn maps(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let Some(first) = arguments.iter().find(|kind| matches!(kind, DataType::Map(..))) else {
        return plan_err!("a map is expected");
    };
    Ok(vec![first.clone(); arguments.len()])
}

/// The keys and values of rows that are entries.
struct Entries {
    keys: ArrayRef,
    values: ArrayRef,
}

/// The map of each row, of those entries, by place, that stay of the ones that belong to it. Of a key that comes again the last
/// value counts, if that is `allowed`.
fn made(
    kind: &DataType,
    entries: &Entries,
    rows: impl Iterator<Item = Option<Vec<usize>>>,
    allowed: bool,
) -> Result<ArrayRef> {
    let DataType::Map(field, is_sorted) = kind else { return plan_err!("a map is expected") };
    let converter = RowConverter::new(vec![SortField::new(entries.keys.data_type().clone())])?;
    let keys = converter.convert_columns(&[Arc::clone(&entries.keys)])?;
    let (mut places, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: HashMap<OwnedRow, usize> = HashMap::new();
    for row in rows {
        known.clear();
        let start = places.len();
        for place in row.iter().flatten().copied() {
            if entries.keys.is_null(place) {
                return exec_err!("a key of a map is NULL");
            }
            match known.get(&keys.row(place).owned()) {
                Some(_) if !allowed => return exec_err!("a key of a map comes twice"),
                Some(known) => places[*known] = place as u64,
                None => {
                    known.insert(keys.row(place).owned(), places.len());
                    places.push(place as u64);
                }
            }
        }
        lengths.push(places.len() - start);
        valid.push(row.is_some());
    }
    let DataType::Struct(fields) = field.data_type() else { return plan_err!("no entries") };
    let places = UInt64Array::from(places);
    let columns = vec![take(&entries.keys, &places, None)?, take(&entries.values, &places, None)?];
    let columns = StructArray::try_new_with_length(fields.clone(), columns, None, places.len())?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, columns, nulls, *is_sorted)?))
}

fn from_entries(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = arguments[0].as_list::<i32>();
    let Some(kind) = map_of(&lists.value_type()) else { return plan_err!("no entries") };
    let entries = lists.values().as_struct();
    let columns =
        Entries { keys: Arc::clone(entries.column(0)), values: Arc::clone(entries.column(1)) };
    let offsets = lists.value_offsets();
    let rows = (0..lists.len()).map(|row| {
        let places = offsets[row] as usize..offsets[row + 1] as usize;
        lists.is_valid(row).then(|| places.filter(|place| entries.is_valid(*place)).collect())
    });
    made(&kind, &columns, rows, false)
}

/// The entries of all maps; NULL for a map is none, and for all of them NULL.
fn concatenated(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let maps: Vec<&MapArray> = arguments.iter().map(|map| map.as_map()).collect();
    let keys: Vec<&dyn Array> = maps.iter().map(|map| map.keys().as_ref()).collect();
    let values: Vec<&dyn Array> = maps.iter().map(|map| map.values().as_ref()).collect();
    let columns = Entries { keys: concat(&keys)?, values: concat(&values)? };
    let starts = maps.iter().scan(0, |start, map| {
        let here = *start;
        *start += map.keys().len();
        Some(here)
    });
    let starts: Vec<usize> = starts.collect();
    let rows = (0..arguments[0].len()).map(|row| {
        let of_map = maps.iter().zip(&starts).filter(|(map, _)| map.is_valid(row));
        let places = of_map.flat_map(|(map, start)| {
            let offsets = map.value_offsets();
            (offsets[row] as usize..offsets[row + 1] as usize).map(move |at| start + at)
        });
        maps.iter().any(|map| map.is_valid(row)).then(|| places.collect())
    });
    made(arguments[0].data_type(), &columns, rows, true)
}

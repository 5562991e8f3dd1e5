//! Generating tables.

use super::Maker;
use crate::program::{Column, Table};
use crate::query::Kind;

impl Maker {
    /// Three tables, two of which have columns that some queries need.
    pub(super) fn tables(&mut self, number: u64) -> Vec<Table> {
        let key = self.one_of(&[Kind::Integer, Kind::Integer, Kind::Big, Kind::Text]);
        let needed: [&[(&str, Kind)]; 3] = [
            &[("a", Kind::Integer), ("s", Kind::Text), ("t", Kind::Moment)],
            &[("b", Kind::Big), ("x", Kind::Real), ("l", Kind::List), ("o", Kind::Struct)],
            &[("a", Kind::Integer), ("m", Kind::Map), ("z", Kind::Zoned), ("d", Kind::Date)],
        ];
        let mut tables = Vec::new();
        for (place, needed) in needed.into_iter().enumerate() {
            let mut columns = vec![Column { name: "k".to_owned(), kind: key, not_null: false }];
            columns.extend(needed.iter().map(|(name, kind)| Column {
                name: (*name).to_owned(),
                kind: *kind,
                not_null: false,
            }));
            for extra in 0..[1, 1, 4][place] {
                let kind = self.one_of(&Kind::ALL);
                columns.push(Column { name: format!("e{extra}"), kind, not_null: false });
            }
            for column in &mut columns {
                column.not_null = self.once_in(6);
            }
            // A key of one column, or of two, or none.
            let key = [0, 0, 1, 2][self.below(4)];
            columns[..key].iter_mut().for_each(|column| column.not_null = true);
            let lateness = self.once_in(3).then(|| self.lateness(&columns)).flatten();
            tables.push(Table {
                lateness,
                name: format!("t{place}"),
                columns,
                key,
                replaces: key > 0 && (number + place as u64).is_multiple_of(2),
                // Where rows are only inserted, more of them is forgotten.
                append_only: key == 0 && self.once_in(if lateness.is_some() { 2 } else { 6 }),
            });
        }
        tables
    }

    /// How late the rows of a table with such columns may come, by its first column that can have lateness.
    fn lateness(&mut self, columns: &[Column]) -> Option<(usize, i64)> {
        let kinds = [Kind::Integer, Kind::Big, Kind::Moment];
        let places: Vec<usize> =
            (1..columns.len()).filter(|place| kinds.contains(&columns[*place].kind)).collect();
        let place = *places.first()?;
        let most = if columns[place].kind == Kind::Moment { 60 } else { 4 };
        Some((place, self.below(most) as i64))
    }
}

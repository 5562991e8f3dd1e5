//! Which column the member of a name belongs to.

use std::collections::HashMap;

use arrow::datatypes::Fields;

use super::records::name;

/// How many names are remembered.
const REMEMBERED: usize = 4096;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// The column of this name.
    Column(usize),
    /// The column whose name differs in case, as no other one does.
    Folded(usize),
    /// No column.
    Other,
}

/// The columns by the names of members. Each name is looked up once; it is compared with the one that was at the same place
/// in the object before, as objects mostly have the same members.
pub struct Names {
    exact: HashMap<String, usize>,
    /// By names in lower case; none if several columns differ only in case.
    folded: HashMap<String, Option<usize>>,
    known: HashMap<Vec<u8>, Meaning>,
    last: Vec<(Vec<u8>, Meaning)>,
}

impl Names {
    pub fn new(columns: &Fields) -> Self {
        let (mut exact, mut folded) = (HashMap::new(), HashMap::new());
        for (index, field) in columns.iter().enumerate() {
            exact.insert(field.name().clone(), index);
            let column = folded.entry(field.name().to_ascii_lowercase());
            column.and_modify(|column| *column = None).or_insert(Some(index));
        }
        Self { exact, folded, known: HashMap::new(), last: Vec::new() }
    }

    /// What a name means that is in quotes at this place of an object.
    pub fn meaning(&mut self, place: usize, quoted: &[u8]) -> Meaning {
        if let Some((last, meaning)) = self.last.get(place)
            && last == quoted
        {
            return *meaning;
        }
        let meaning = match self.known.get(quoted) {
            Some(meaning) => *meaning,
            None => self.learn(quoted),
        };
        if place < REMEMBERED {
            let missing = || (Vec::new(), Meaning::Other);
            self.last.resize_with(self.last.len().max(place + 1), missing);
            let (last, of_last) = &mut self.last[place];
            last.clear();
            last.extend_from_slice(quoted);
            *of_last = meaning;
        }
        meaning
    }

    /// Looks a name up, and remembers what it means.
    fn learn(&mut self, quoted: &[u8]) -> Meaning {
        let meaning = self.find(quoted);
        if self.known.len() < REMEMBERED {
            self.known.insert(quoted.to_owned(), meaning);
        }
        meaning
    }

    fn find(&self, quoted: &[u8]) -> Meaning {
        let Some(name) = name(quoted) else { return Meaning::Other };
        match self.exact.get(&*name) {
            Some(column) => Meaning::Column(*column),
            None => match self.folded.get(&name.to_ascii_lowercase()) {
                Some(Some(column)) => Meaning::Folded(*column),
                _ => Meaning::Other,
            },
        }
    }
}

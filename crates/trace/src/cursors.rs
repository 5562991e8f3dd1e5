//! Reading several batches as if they were one.

use crate::batch::Batch;
use crate::cursor::Cursor;
use crate::time::PageTime;

/// A place in several batches: a key that one or more of them have, and a value.
///
/// It moves as a [`Cursor`] does. The number of batches is taken to be small, as it is in a spine: each move
/// to another key looks at all of them. A key that only one batch has costs no more than it does there.
pub struct Cursors<T> {
    cursors: Vec<Cursor<T>>,
    /// The cursors that are at the current key, the smallest.
    at_key: Vec<usize>,
    /// Those of them that are at the current value, the smallest; where one cursor has the key it is here
    /// even past its last value.
    at_val: Vec<usize>,
}

impl<T: PageTime> Cursors<T> {
    /// A cursor at the first key of all these batches.
    pub fn new(batches: impl IntoIterator<Item = Batch<T>>) -> Self {
        let batches = batches.into_iter().filter(|batch| !batch.is_empty());
        let mut cursors = Cursors {
            cursors: batches.map(Cursor::new).collect(),
            at_key: Vec::new(),
            at_val: Vec::new(),
        };
        cursors.find_key();
        cursors
    }

    /// The current key; `None` past the last one.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.cursors[*self.at_key.first()?].key()
    }

    /// Moves to the next key.
    pub fn step_key(&mut self) {
        for &at in &self.at_key {
            self.cursors[at].step_key();
        }
        self.find_key();
    }

    /// Moves forward to the first key that is not below `key`; stays when the current key is not.
    pub fn seek_key(&mut self, key: &[u8]) {
        match self.key() {
            Some(current) if current < key => {}
            _ => return,
        }
        for cursor in &mut self.cursors {
            cursor.seek_key(key);
        }
        self.find_key();
    }

    /// The current value; `None` past the last one of the current key.
    #[inline]
    pub fn val(&self) -> Option<&[u8]> {
        self.cursors[*self.at_val.first()?].val()
    }

    /// Moves to the next value of the current key.
    #[inline]
    pub fn step_val(&mut self) {
        for &at in &self.at_val {
            self.cursors[at].step_val();
        }
        self.find_val();
    }

    /// Moves forward to the first value of the current key that is not below `val`; stays when the current
    /// value is not.
    pub fn seek_val(&mut self, val: &[u8]) {
        for &at in &self.at_key {
            self.cursors[at].seek_val(val);
        }
        self.find_val();
    }

    /// Moves back to the first value of the current key.
    pub fn rewind_vals(&mut self) {
        for &at in &self.at_key {
            self.cursors[at].rewind_vals();
        }
        self.find_val();
    }

    /// Calls `visit` with all updates of the current key and value, of all batches, in no promised order; a
    /// time may come up more than once.
    #[inline]
    pub fn updates(&self, mut visit: impl FnMut(T, i64)) {
        for &at in &self.at_val {
            for (time, weight) in self.cursors[at].updates() {
                visit(time, weight);
            }
        }
    }

    /// Finds the smallest key and the cursors that have it.
    fn find_key(&mut self) {
        let cursors = &self.cursors;
        let keys = cursors.iter().enumerate();
        smallest(
            keys.map(|(at, cursor)| (at, cursor.key())),
            &mut self.at_key,
        );
        self.find_val();
    }

    /// Finds the smallest value of the current key and the cursors that have it.
    #[inline]
    fn find_val(&mut self) {
        if let [only] = self.at_key[..] {
            self.at_val.clear();
            self.at_val.push(only);
            return;
        }
        let (cursors, keys) = (&self.cursors, self.at_key.iter());
        smallest(keys.map(|&at| (at, cursors[at].val())), &mut self.at_val);
    }
}

/// Collects into `found` those that have the smallest of the strings.
#[inline]
fn smallest<'a>(strings: impl Iterator<Item = (usize, Option<&'a [u8]>)>, found: &mut Vec<usize>) {
    found.clear();
    let mut least: Option<&[u8]> = None;
    for (at, string) in strings {
        let Some(string) = string else {
            continue;
        };
        match least.map_or(std::cmp::Ordering::Less, |least| string.cmp(least)) {
            std::cmp::Ordering::Less => {
                least = Some(string);
                found.clear();
                found.push(at);
            }
            std::cmp::Ordering::Equal => found.push(at),
            std::cmp::Ordering::Greater => {}
        }
    }
}

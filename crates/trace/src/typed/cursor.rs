//! Reading a batch of typed rows, as differential-dataflow does.

use std::marker::PhantomData;

use differential_dataflow::trace;

use super::Types;
use super::batch::TypedBatch;
use super::codec::Codec;
use super::encoded::{Encoded, EncodedList};
use super::weight::Weight;
use crate::cursor::Cursor;
use crate::time::PageTime;

/// A position in a [`TypedBatch`]: a key, and one of its values.
///
/// Keys and values are shown as they lie in the batch, [`Encoded`]. All methods must be given the batch that the cursor
/// was made of.
pub struct TypedCursor<K, V, T, R = isize> {
    rows: Cursor<T>,
    types: Types<K, V, R>,
}

impl<K, V, T: PageTime, R> TypedCursor<K, V, T, R> {
    /// A cursor at the first key.
    pub fn new(batch: &TypedBatch<K, V, T, R>) -> Self {
        TypedCursor { rows: batch.rows().cursor(), types: PhantomData }
    }
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> trace::Cursor for TypedCursor<K, V, T, R> {
    type Storage = TypedBatch<K, V, T, R>;

    type Key<'a> = Encoded<'a, K>;
    type ValOwn = V;
    type Val<'a> = Encoded<'a, V>;
    type Time = T;
    type TimeGat<'a> = &'a T;
    type Diff = R;
    type DiffGat<'a> = &'a R;

    type KeyContainer = EncodedList<K>;
    type ValContainer = EncodedList<V>;
    type TimeContainer = Vec<T>;
    type DiffContainer = Vec<R>;

    #[inline]
    fn key_valid(&self, _batch: &Self::Storage) -> bool {
        self.rows.key_place().is_some()
    }

    #[inline]
    fn val_valid(&self, _batch: &Self::Storage) -> bool {
        self.rows.val_place().is_some()
    }

    #[inline]
    fn key<'a>(&self, batch: &'a Self::Storage) -> Encoded<'a, K> {
        self.get_key(batch).expect("a key is read where there is one")
    }

    #[inline]
    fn val<'a>(&self, batch: &'a Self::Storage) -> Encoded<'a, V> {
        self.get_val(batch).expect("a value is read where there is one")
    }

    #[inline]
    fn get_key<'a>(&self, batch: &'a Self::Storage) -> Option<Encoded<'a, K>> {
        let (page, key) = self.rows.key_place()?;
        Some(Encoded::new(batch.rows().page(page).key(key)))
    }

    #[inline]
    fn get_val<'a>(&self, batch: &'a Self::Storage) -> Option<Encoded<'a, V>> {
        let (page, value) = self.rows.val_place()?;
        Some(Encoded::new(batch.rows().page(page).value(value)))
    }

    #[inline]
    fn map_times<L: FnMut(&T, &R)>(&mut self, _batch: &Self::Storage, mut logic: L) {
        self.rows.visit_updates(&mut |time, weight| logic(&time, &R::load(weight)));
    }

    #[inline]
    fn step_key(&mut self, _batch: &Self::Storage) {
        self.rows.step_key();
    }

    #[inline]
    fn seek_key(&mut self, _batch: &Self::Storage, key: Encoded<'_, K>) {
        self.rows.seek_key(key.bytes());
        // Operators expect the first value, also of a key where the cursor was before.
        self.rows.rewind_vals();
    }

    #[inline]
    fn step_val(&mut self, _batch: &Self::Storage) {
        self.rows.step_val();
    }

    #[inline]
    fn seek_val(&mut self, _batch: &Self::Storage, value: Encoded<'_, V>) {
        self.rows.seek_val(value.bytes());
    }

    fn rewind_keys(&mut self, _batch: &Self::Storage) {
        self.rows.rewind_keys();
    }

    #[inline]
    fn rewind_vals(&mut self, _batch: &Self::Storage) {
        self.rows.rewind_vals();
    }
}

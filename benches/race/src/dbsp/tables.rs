//! The tables as inputs of a circuit.

use std::collections::VecDeque;

use alluvium_nexmark::source::Events;
use alluvium_nexmark::tables::{self, Keeping};
use dbsp::dynamic::DynData;
use dbsp::operator::Update;
use dbsp::operator::input::StagedBuffers;
use dbsp::utils::Tup2;
use dbsp::{
    DBData, MapHandle, OrdIndexedZSet, OrdZSet, RootCircuit, Stream, TypedBox, ZSetHandle, ZWeight,
};

use crate::Result;
use crate::model::{Auction, Bid, Epoch, Person};

/// The number of keys of the side input of q13.
const SIDE_KEYS: i64 = 10_000;

/// Changes of a set of rows.
pub type Rows<T> = Stream<RootCircuit, OrdZSet<T>>;

/// Changes of rows by key.
pub type Indexed<K, V> = Stream<RootCircuit, OrdIndexedZSet<K, V>>;

/// The time that no later row is before.
pub type Waterline = Stream<RootCircuit, TypedBox<i64, DynData>>;

/// The changes of a table.
pub enum Table<T: DBData> {
    /// Without a primary key.
    Set(Rows<T>),
    /// With one; DBSP keeps the rows.
    Map(Indexed<i64, T>),
}

impl<T: DBData> Table<T> {
    /// The rows that `map` makes of each of its rows.
    pub fn flat_map<K: DBData, I: IntoIterator<Item = K> + 'static>(
        &self,
        map: impl Fn(&T) -> I + 'static,
    ) -> Rows<K> {
        match self {
            Self::Set(rows) => rows.flat_map(map),
            Self::Map(rows) => rows.flat_map(move |(_, row)| map(row)),
        }
    }

    /// The keys and values that `map` makes of each of its rows.
    pub fn index<K: DBData, V: DBData, I: IntoIterator<Item = (K, V)> + 'static>(
        &self,
        map: impl Fn(&T) -> I + 'static,
    ) -> Indexed<K, V> {
        match self {
            Self::Set(rows) => rows.flat_map_index(map),
            Self::Map(rows) => rows.flat_map_index(move |(_, row)| map(row)),
        }
    }

    /// The greatest of these times so far, less the lateness.
    fn waterline(&self, time: fn(&T) -> i64, lateness: i64) -> Waterline {
        match self {
            Self::Set(rows) => {
                rows.waterline(|| i64::MIN, move |row, ()| time(row) - lateness, |a, b| *a.max(b))
            }
            Self::Map(rows) => {
                rows.waterline(|| i64::MIN, move |_, row| time(row) - lateness, |a, b| *a.max(b))
            }
        }
    }
}

/// The tables of a circuit.
pub struct Tables {
    /// Sellers and bidders.
    pub person: Table<Person>,
    /// Auctions.
    pub auction: Table<Auction>,
    /// Bids.
    pub bid: Table<Bid>,
    /// The side input of q13: keys with themselves as text.
    pub side_input: Rows<Tup2<i64, String>>,
    /// How late rows may come in microseconds, if that is known.
    lateness: Option<i64>,
}

impl Tables {
    /// Adds the inputs to a circuit.
    pub fn new(circuit: &mut RootCircuit, tables: tables::Tables) -> (Self, Handles) {
        let (person, person_handle) = input(circuit, tables.keeping, true);
        let (auction, auction_handle) = input(circuit, tables.keeping, true);
        let (bid, bid_handle) = input(circuit, tables.keeping, false);
        let (side_input, side_input_handle) = circuit.add_input_zset();
        let lateness = tables.lateness.map(|lateness| lateness.as_micros() as i64);
        let tables = Self { person, auction, bid, side_input, lateness };
        let handles = Handles {
            person: person_handle,
            auction: auction_handle,
            bid: bid_handle,
            side_input: side_input_handle,
        };
        (tables, handles)
    }

    /// The waterline of persons' times, if a lateness is known.
    pub fn waterline_of_persons(&self) -> Option<Waterline> {
        self.lateness.map(|lateness| self.person.waterline(|person| person.date_time, lateness))
    }

    /// The waterline of auctions' times, if a lateness is known.
    pub fn waterline_of_auctions(&self) -> Option<Waterline> {
        self.lateness.map(|lateness| self.auction.waterline(|auction| auction.date_time, lateness))
    }

    /// The waterline of bids' times, if a lateness is known.
    pub fn waterline_of_bids(&self) -> Option<Waterline> {
        self.lateness.map(|lateness| self.bid.waterline(|bid| bid.date_time, lateness))
    }

    /// The waterline of the times at which bids arrive, if a lateness is known.
    pub fn waterline_of_arrivals(&self) -> Option<Waterline> {
        self.lateness.map(|lateness| self.bid.waterline(|bid| bid.p_time, lateness))
    }
}

/// Has everything that keeps these changes by key forget the keys that are not `needed` at the waterline.
pub fn forget<K: DBData, V: DBData>(
    rows: &Indexed<K, V>,
    waterline: Option<&Waterline>,
    needed: fn(&K, &i64) -> bool,
) {
    if let Some(waterline) = waterline {
        rows.shard().accumulate_integrate_trace_retain_keys(waterline, needed);
    }
}

/// The same for a set of rows.
pub fn forget_rows<T: DBData>(
    rows: &Rows<T>,
    waterline: Option<&Waterline>,
    needed: fn(&T, &i64) -> bool,
) {
    if let Some(waterline) = waterline {
        rows.shard().accumulate_integrate_trace_retain_keys(waterline, needed);
    }
}

fn input<T: DBData>(
    circuit: &mut RootCircuit,
    keeping: Keeping,
    has_key: bool,
) -> (Table<T>, Handle<T>) {
    if keeping == Keeping::Keyed && has_key {
        let (rows, handle) = circuit.add_input_map::<i64, T, T, _>(|row, new| *row = new.clone());
        return (Table::Map(rows), Handle::Map(handle));
    }
    let (rows, handle) = circuit.add_input_zset::<T>();
    if matches!(keeping, Keeping::Kept | Keeping::Keyed) {
        // As Feldera's tables that are materialized.
        rows.accumulate_integrate_trace();
    }
    (Table::Set(rows), Handle::Set(handle))
}

/// Where rows of a table come in.
enum Handle<T: DBData> {
    Set(ZSetHandle<T>),
    Map(MapHandle<i64, T, T>),
}

impl<T: DBData> Handle<T> {
    fn stage(
        &self,
        rows: impl Iterator<Item = (T, ZWeight)>,
        key: fn(&T) -> i64,
    ) -> Box<dyn StagedBuffers> {
        match self {
            Self::Set(handle) => {
                let rows: VecDeque<_> = rows.map(|(row, weight)| Tup2(row, weight)).collect();
                Box::new(handle.stage([rows]))
            }
            Self::Map(handle) => {
                let rows: VecDeque<_> =
                    rows.map(|(row, _)| Tup2(key(&row), Update::Insert(row))).collect();
                Box::new(handle.stage([rows]))
            }
        }
    }
}

/// Where rows come in.
pub struct Handles {
    person: Handle<Person>,
    auction: Handle<Auction>,
    bid: Handle<Bid>,
    side_input: ZSetHandle<Tup2<i64, String>>,
}

impl Handles {
    /// Puts an epoch into the buffers of the workers, which take it when it is flushed.
    pub fn stage(&self, events: &Events) -> Result<Staged> {
        let Epoch { persons, auctions, bids } = Epoch::of(events)?;
        Ok(Staged(vec![
            self.person.stage(persons.into_iter().map(|row| (row, 1)), |row| row.id),
            self.auction.stage(auctions.into_iter().map(|row| (row, 1)), |row| row.id),
            self.bid.stage(bids.into_iter(), |row| row.auction),
        ]))
    }

    /// The same for the side input.
    pub fn stage_side_input(&self) -> Staged {
        let rows: VecDeque<_> =
            (0..SIDE_KEYS).map(|key| Tup2(Tup2(key, key.to_string()), 1)).collect();
        Staged(vec![Box::new(self.side_input.stage([rows]))])
    }
}

/// Rows in the buffers of the workers.
pub struct Staged(Vec<Box<dyn StagedBuffers>>);

impl Staged {
    /// Hands them to the workers, which take them in the next transaction.
    pub fn flush(self) {
        let Self(buffers) = self;
        for mut buffer in buffers {
            buffer.flush();
        }
    }
}

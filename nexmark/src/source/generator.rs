//! Events as crate `nexmark` makes them, as columns.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringBuilder, TimestampNanosecondArray,
};
use arrow::datatypes::DataType;
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Auction, Bid, Event, Person};

use super::{Events, Extent};
use crate::error::Result;
use crate::stream::Stream;

/// How many events happen in a second of event time, unless another rate is asked for.
pub const RATE: u32 = 10_000;

/// When the first event happens: 2015-07-15 00:00:00, in milliseconds.
const FIRST: u64 = 1_436_918_400_000;

/// Makes events, an epoch at a time.
pub struct Generator {
    events: EventGenerator,
    epochs: Box<dyn Iterator<Item = Range<u64>>>,
    /// Bytes of text in each column of the last epoch.
    sizes: [Vec<usize>; 3],
}

impl Generator {
    /// Begins with the first event.
    pub fn new(extent: Extent) -> Self {
        let rate = extent.rate as usize;
        let config = NexmarkConfig {
            base_time: FIRST,
            first_rate: rate,
            next_rate: rate,
            ..NexmarkConfig::default()
        };
        Self {
            events: EventGenerator::new(config),
            epochs: Box::new(extent.epochs()),
            sizes: Default::default(),
        }
    }
}

impl Iterator for Generator {
    type Item = Result<Events>;

    fn next(&mut self) -> Option<Self::Item> {
        let numbers = self.epochs.next()?;
        let [persons, auctions, bids] = &mut self.sizes;
        let columns = |stream: Stream, sizes: &[usize]| {
            let rows = stream.rows(numbers.end) - stream.rows(numbers.start);
            Columns::new(stream, rows as usize, sizes)
        };
        let mut person = columns(Stream::Person, persons);
        let mut auction = columns(Stream::Auction, auctions);
        let mut bid = columns(Stream::Bid, bids);
        for event in self.events.by_ref().take((numbers.end - numbers.start) as usize) {
            match event {
                Event::Person(event) => person.push_person(&event),
                Event::Auction(event) => auction.push_auction(&event),
                Event::Bid(event) => bid.push_bid(&event),
            }
        }
        let batches =
            || Ok([person.finish(persons)?, auction.finish(auctions)?, bid.finish(bids)?]);
        Some(batches().map(|batches| Events { batches }))
    }
}

/// The columns of one stream as they grow. Numbers, times and texts are held apart; their order among
/// each other is that of the schema.
struct Columns {
    stream: Stream,
    numbers: Vec<Vec<i64>>,
    times: Vec<Vec<i64>>,
    texts: Vec<StringBuilder>,
}

impl Columns {
    /// Room for so many rows, and so many bytes in each text column, as far as that is known.
    fn new(stream: Stream, rows: usize, sizes: &[usize]) -> Self {
        let (numbers, times, texts) = match stream {
            Stream::Person => (1, 1, 6),
            Stream::Auction => (5, 2, 3),
            Stream::Bid => (3, 1, 3),
        };
        let text = |column: usize| {
            // A little more than the last time: to grow is to copy.
            let bytes = sizes.get(column).map_or(0, |size| size + size / 16);
            StringBuilder::with_capacity(rows, bytes)
        };
        let column = |_| Vec::with_capacity(rows);
        Self {
            stream,
            numbers: (0..numbers).map(column).collect(),
            times: (0..times).map(column).collect(),
            texts: (0..texts).map(text).collect(),
        }
    }

    fn push_person(&mut self, person: &Person) {
        self.numbers([person.id]);
        self.times([person.date_time]);
        self.texts([
            &person.name,
            &person.email_address,
            &person.credit_card,
            &person.city,
            &person.state,
            &person.extra,
        ]);
    }

    fn push_auction(&mut self, auction: &Auction) {
        let Auction { id, initial_bid, reserve, seller, category, .. } = *auction;
        self.numbers([id, initial_bid, reserve, seller, category]);
        self.times([auction.date_time, auction.expires]);
        self.texts([&auction.item_name, &auction.description, &auction.extra]);
    }

    fn push_bid(&mut self, bid: &Bid) {
        self.numbers([bid.auction, bid.bidder, bid.price]);
        self.times([bid.date_time]);
        self.texts([&bid.channel, &bid.url, &bid.extra]);
    }

    fn numbers<const N: usize>(&mut self, values: [usize; N]) {
        for (column, value) in self.numbers.iter_mut().zip(values) {
            column.push(value as i64);
        }
    }

    fn times<const N: usize>(&mut self, milliseconds: [u64; N]) {
        for (column, milliseconds) in self.times.iter_mut().zip(milliseconds) {
            column.push(milliseconds as i64 * 1_000_000);
        }
    }

    fn texts<const N: usize>(&mut self, values: [&str; N]) {
        for (column, value) in self.texts.iter_mut().zip(values) {
            column.append_value(value);
        }
    }

    /// The batch; notes how much text each column held.
    fn finish(self, sizes: &mut Vec<usize>) -> Result<RecordBatch> {
        let Self { stream, numbers, times, mut texts } = self;
        sizes.clear();
        sizes.extend(texts.iter().map(|text| text.values_slice().len()));
        let mut numbers = numbers.into_iter().map(Int64Array::from);
        let mut times = times.into_iter().map(TimestampNanosecondArray::from);
        let mut texts = texts.iter_mut().map(StringBuilder::finish);
        let schema = stream.schema();
        let columns = schema.fields().iter().filter_map(|field| match field.data_type() {
            DataType::Int64 => numbers.next().map(shrunk),
            DataType::Utf8 => texts.next().map(shrunk),
            _ => times.next().map(shrunk),
        });
        let columns = columns.collect();
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// Without room to grow: events may stay in memory for long.
fn shrunk<A: Array + 'static>(mut array: A) -> ArrayRef {
    array.shrink_to_fit();
    Arc::new(array)
}

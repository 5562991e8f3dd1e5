//! Events do not depend on their source or on the division into epochs.

use std::fs;
use std::path::PathBuf;

use alluvium_nexmark::Stream;
use alluvium_nexmark::source::{Events, Extent, Input, RATE, Source};
use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

const EVENTS: u64 = 3_030;

fn extent(epoch_rows: u64) -> Extent {
    Extent { events: EVENTS, epoch_rows, rate: RATE }
}

fn epochs(source: &Source, epoch_rows: u64) -> Vec<Events> {
    let input = Input::prepare(source, extent(epoch_rows), false).unwrap();
    input.epochs().collect::<Result<_, _>>().unwrap()
}

/// All rows of a stream.
fn rows(epochs: &[Events], stream: Stream) -> RecordBatch {
    concat_batches(&stream.schema(), epochs.iter().map(|events| events.of(stream))).unwrap()
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("alluvium-nexmark-test-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn events_are_the_same_from_every_source_and_for_any_epoch_size() {
    let whole = epochs(&Source::Memory, EVENTS);
    for epoch_rows in [1, 7, 50, 333, 1000] {
        let folder = Folder::new(&format!("same-{epoch_rows}"));
        for source in [Source::Memory, Source::Generator, Source::Parquet(folder.0.clone())] {
            let cut = epochs(&source, epoch_rows);
            assert_eq!(cut.len() as u64, EVENTS.div_ceil(epoch_rows));
            for stream in Stream::ALL {
                assert_eq!(rows(&cut, stream), rows(&whole, stream), "{source:?} {epoch_rows}");
            }
            for events in &cut[..cut.len() - 1] {
                let rows: usize = events.batches.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(rows as u64, epoch_rows);
            }
        }
    }
}

#[test]
fn existing_parquet_files_are_not_rewritten() {
    let folder = Folder::new("kept");
    let source = Source::Parquet(folder.0.clone());
    let first = epochs(&source, 500);
    let times = |folder: &PathBuf| {
        let time = |file: std::io::Result<fs::DirEntry>| {
            let file = file.unwrap();
            (file.file_name(), file.metadata().unwrap().modified().unwrap())
        };
        let mut times: Vec<_> = fs::read_dir(folder).unwrap().map(time).collect();
        times.sort();
        times
    };
    let written = times(&folder.0);
    assert_eq!(written.len(), 3);
    let again = epochs(&source, 500);
    assert_eq!(times(&folder.0), written);
    for stream in Stream::ALL {
        assert_eq!(rows(&first, stream), rows(&again, stream));
    }
}

#[test]
fn of_fifty_events_one_is_a_person_and_three_are_auctions() {
    let whole = epochs(&Source::Memory, EVENTS);
    for stream in Stream::ALL {
        assert_eq!(rows(&whole, stream).num_rows() as u64, stream.rows(EVENTS), "{stream:?}");
    }
    assert_eq!(Stream::ALL.map(|stream| stream.rows(3)), [1, 2, 0]);
    assert_eq!(Stream::ALL.map(|stream| stream.rows(55)), [2, 6, 47]);
}

#[test]
fn columns_have_plausible_values() {
    let whole = epochs(&Source::Memory, EVENTS);
    let [person, auction, bid] = Stream::ALL.map(|stream| rows(&whole, stream));
    let number = |rows: &RecordBatch, name: &str, row: usize| {
        rows.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(row)
    };
    let text = |rows: &RecordBatch, name: &str, row: usize| {
        rows.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned()
    };
    assert_eq!(number(&person, "id", 0), 1000);
    assert_eq!(text(&person, "name", 0), "vicky noris");
    assert_eq!(text(&person, "email_address", 0), "yplkvgz@qbxfg.com");
    assert_eq!(text(&person, "credit_card", 0), "7878 5821 1864 2539");
    assert_eq!(
        (text(&person, "city", 0), text(&person, "state", 0)),
        ("cheyenne".into(), "az".into())
    );
    for row in 0..auction.num_rows() {
        assert_eq!(number(&auction, "id", row), 1000 + row as i64);
        assert!((10..15).contains(&number(&auction, "category", row)));
        assert!(number(&auction, "reserve", row) > number(&auction, "initial_bid", row));
    }
    let times = |name: &str| {
        let column = auction.column_by_name(name).unwrap();
        column.as_primitive::<TimestampMicrosecondType>().values().to_vec()
    };
    assert!(times("date_time").iter().zip(times("expires")).all(|(start, end)| *start < end));
    let url = text(&bid, "url", 0);
    assert!(url.starts_with("https://www.nexmark.com/"), "{url}");
}

#[test]
fn bids_arrive_when_the_last_event_of_their_epoch_happens() {
    for events in epochs(&Source::Memory, 1000) {
        let [_, _, bid] = events.arrive().unwrap();
        assert_eq!(bid.schema(), Stream::Bid.table_schema());
        let column = |name: &str| {
            let column = bid.column_by_name(name).unwrap();
            column.as_primitive::<TimestampMicrosecondType>().values().to_vec()
        };
        assert!(column("p_time").iter().all(|time| *time == events.last()));
        assert!(column("date_time").iter().all(|time| *time <= events.last()));
    }
}

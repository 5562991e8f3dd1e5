//! Records of a kilobyte, each durable before its committer continues, beside a bare log.
//!
//! The *bare log* shows the rate that the disk allows: one thread writes to a file of zeros and calls `fdatasync`. With several
//! committers, it writes as many records at once. It has no checksums, and no thread to wake.
//!
//! The journal is also measured on a server of the same machine, which is one hop more. The journal and the bare log are measured as
//! well where nothing is written ahead of the records, and the bare log where the file's blocks are only allocated.

use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alluvium_remote::{JournalPlace, JournalServer};
use alluvium_state_benches::Folder;
use alluvium_storage::{Expected, FileJournal, FileJournalOptions, Journal, LocalDisk};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rustix::fs::{FallocateFlags, fallocate};

const RECORD: usize = 1000;

/// The bytes of the bare log. It is written again from its beginning.
const LENGTH: u64 = 64 << 20;

/// The time in which so many threads commit this many records.
fn commit(journal: &dyn Journal, committers: u64, records: u64) -> Duration {
    let left = AtomicU64::new(records);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..committers {
            let left = &left;
            scope.spawn(move || {
                let record = [thread as u8; RECORD];
                let take = |left: u64| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    let position = journal.append(&record).expect("a record is queued");
                    journal.sync(position).expect("it is synced");
                }
            });
        }
    });
    start.elapsed()
}

/// How the file of a bare log is made.
#[derive(Clone, Copy, Debug)]
enum Made {
    Zeros,
    Allocated,
    Growing,
}

fn bare_log(folder: &Folder, made: Made) -> File {
    let path = folder.path().join(format!("bare-{made:?}"));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(path);
    let file = file.expect("a file is made");
    match made {
        Made::Zeros => {
            let zeros = vec![0; 1 << 20];
            for offset in (0..LENGTH).step_by(zeros.len()) {
                file.write_all_at(&zeros, offset).expect("zeros are written");
            }
        }
        Made::Allocated => {
            fallocate(&file, FallocateFlags::empty(), 0, LENGTH).expect("blocks are allocated");
        }
        Made::Growing => {}
    }
    file.sync_all().expect("it is synced");
    file
}

/// Writes and syncs groups of records, until there are this many, and returns the time for them.
fn write(file: &File, end: &mut u64, group: u64, records: u64, wraps: bool) -> Duration {
    let bytes = vec![7; RECORD * group as usize];
    let start = Instant::now();
    for _ in 0..records.div_ceil(group) {
        if wraps && *end + bytes.len() as u64 > LENGTH {
            *end = 0;
        }
        file.write_all_at(&bytes, *end).expect("a group is written");
        file.sync_data().expect("it is synced");
        *end += bytes.len() as u64;
    }
    start.elapsed().mul_f64(records as f64 / records.next_multiple_of(group) as f64)
}

fn commits(criterion: &mut Criterion) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"));
    let mut group = criterion.benchmark_group("commit 1 KB");
    group.sample_size(10).throughput(Throughput::Elements(1));
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for committers in [1, 16, 64] {
        for (name, write_ahead) in [("journal", 4 << 20), ("journal, nothing ahead", 0)] {
            let path = folder.path().join(format!("{name}-{committers}"));
            let disk = Arc::new(LocalDisk::open(path).expect("a folder is made"));
            let options = FileJournalOptions { write_ahead, ..FileJournalOptions::default() };
            let journal = FileJournal::open_with(disk, options).expect("a journal is opened");
            group.bench_function(BenchmarkId::new(name, committers), |bencher| {
                bencher.iter_custom(|records| commit(&journal, committers, records));
            });
            // The disk is not for keeping what was measured.
            journal.release(journal.range().end).expect("segments are deleted");
        }
        let server = JournalServer::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = server.start(folder.path().join(format!("server-{committers}")));
        let server = server.expect("a server starts");
        let url = format!("http://{}/records", server.address());
        let place = JournalPlace::new(&url, None).expect("it is a place");
        let journal = place.open(&Expected::default()).expect("a journal is opened");
        group.bench_function(BenchmarkId::new("journal on a server", committers), |bencher| {
            bencher.iter_custom(|records| commit(&journal, committers, records));
        });
        journal.release(journal.range().end).expect("segments are deleted");
        for made in [Made::Zeros, Made::Allocated, Made::Growing] {
            if committers > 1 && !matches!(made, Made::Zeros) {
                continue;
            }
            let (file, mut end) = (bare_log(&folder, made), 0);
            // Blocks that were written once are no longer only allocated.
            let wraps = matches!(made, Made::Zeros);
            group.bench_function(
                BenchmarkId::new(format!("bare log, {made:?}"), committers),
                |bencher| {
                    bencher
                        .iter_custom(|records| write(&file, &mut end, committers, records, wraps));
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, commits);
criterion_main!(benches);

//! Transactions of one row of a kilobyte, each on the disk before it returns, beside other stores and a bare log.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use alluvium_peers::Result;
use alluvium_peers::alluvium::Alluvium;
use alluvium_peers::fjall::Fjall;
use alluvium_peers::folder::Folder;
use alluvium_peers::log::Log;
use alluvium_peers::measured::{self, Measured};
use alluvium_peers::redb::Redb;
use alluvium_peers::round;
use alluvium_peers::row::{Values, key};
use alluvium_peers::store::{Store, Wait};
use clap::Parser;

/// The cache of each other store.
const CACHE: usize = 256 << 20;

/// Measures transactions of one row of 1 KB that are on the disk before they return.
#[derive(Parser)]
struct Arguments {
    /// A directory on a disk; what is made there is removed at the end.
    directory: PathBuf,
    /// How many threads commit at a time; several numbers, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    threads: Vec<usize>,
    /// How often each store is measured.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Alluvium's workers.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Only stores whose names contain this, besides Alluvium.
    #[arg(long, default_value = "")]
    only: String,
}

fn open(folder: &Folder, arguments: &Arguments) -> Result<Vec<Box<dyn Store>>> {
    let disk = Wait::Disk;
    let mut stores: Vec<Box<dyn Store>> = vec![
        Box::new(Alluvium::open(&folder.of("alluvium"), disk, arguments.workers, false)?),
        Box::new(Fjall::open(&folder.of("fjall"), disk, CACHE)?),
        Box::new(Redb::open(&folder.of("redb"), disk, CACHE)?),
        #[cfg(feature = "rocksdb")]
        Box::new(alluvium_peers::rocksdb::RocksDb::open(&folder.of("rocksdb"), disk, CACHE)?),
        Box::new(Log::open(&folder.of("log"))?),
    ];
    let is_wanted = |store: &dyn Store| {
        let name = store.name();
        name == "Alluvium" || name.to_lowercase().contains(&arguments.only)
    };
    stores.retain(|store| is_wanted(&**store));
    Ok(stores)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = Folder::new(&arguments.directory)?;
    println!("{}", folder.machine()?);
    let stores = open(&folder, &arguments)?;
    let (values, next) = (Values::new(), AtomicU64::new(0));
    let time = Duration::from_secs_f64(arguments.seconds);
    for &threads in &arguments.threads {
        let mut measured: Vec<_> = stores.iter().map(|store| Measured::new(store.name())).collect();
        for number in 0..arguments.rounds {
            // There and back again: no store always follows the same one.
            let mut order: Vec<usize> = (0..stores.len()).collect();
            if number % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let store = &stores[index];
                let (next, values) = (&next, &values);
                let steps = |_| {
                    move || {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        store.put(key(number), values.get(number))
                    }
                };
                measured[index].add(round::run(threads, time, steps)?);
                // Background work ends, or begins.
                sleep(time / 10);
            }
        }
        println!("\ncommitters: {threads}; rounds: {}, of {time:?}", arguments.rounds);
        measured::print(&mut measured, "commits");
    }
    Ok(())
}

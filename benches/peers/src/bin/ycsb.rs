//! The workloads of YCSB over a table of rows of a kilobyte, beside other stores; none syncs the disk for a write.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium_peers::Result;
use alluvium_peers::alluvium::Alluvium;
use alluvium_peers::fjall::Fjall;
use alluvium_peers::folder::Folder;
use alluvium_peers::measured::{self, Measured};
use alluvium_peers::redb::Redb;
use alluvium_peers::round;
use alluvium_peers::store::{Table, Wait};
use alluvium_peers::workload::{Records, Requests, Workload};
use clap::Parser;

/// Measures reads and writes by key. No store syncs the disk for a write.
#[derive(Parser)]
struct Arguments {
    /// A directory on a disk; what is made there is removed at the end.
    directory: PathBuf,
    /// How many records are loaded before.
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// The workloads, in this order; E is last because it is the slowest.
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        default_value = "a,b,c,f,d,e"
    )]
    workloads: Vec<Workload>,
    /// How many threads are clients at a time; several numbers, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    threads: Vec<usize>,
    /// How often each store is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long, in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Alluvium's workers.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Alluvium's reads do not wait for the newest commits.
    #[arg(long)]
    stale: bool,
    /// Only stores whose names contain this, besides Alluvium.
    #[arg(long, default_value = "")]
    only: String,
}

fn open(folder: &Folder, arguments: &Arguments) -> Result<Vec<Box<dyn Table>>> {
    let Arguments { records, workers, stale, .. } = *arguments;
    // Everything fits.
    let cache = (records as usize * 4096).max(256 << 20);
    let system = Wait::System;
    let mut stores: Vec<Box<dyn Table>> = vec![
        Box::new(Alluvium::open(&folder.of("alluvium"), system, workers, stale)?),
        Box::new(Fjall::open(&folder.of("fjall"), system, cache)?),
        Box::new(Redb::open(&folder.of("redb"), system, cache)?),
        #[cfg(feature = "rocksdb")]
        Box::new(alluvium_peers::rocksdb::RocksDb::open(&folder.of("rocksdb"), system, cache)?),
    ];
    let is_wanted = |store: &dyn Table| {
        let name = store.name();
        name == "Alluvium" || name.to_lowercase().contains(&arguments.only)
    };
    stores.retain(|store| is_wanted(&**store));
    Ok(stores)
}

/// Prints how much faster each store is with more threads.
fn print_scaling(all: &[(usize, Vec<Measured>)]) {
    let Some(((few, alone), more)) = all.split_first() else { return };
    for (threads, measured) in more {
        let faster = measured.iter().zip(alone).filter_map(|(now, alone)| {
            let faster = now.rate()?.median / alone.rate()?.median;
            Some(format!("{} {faster:.2}", now.name))
        });
        let faster: Vec<String> = faster.collect();
        println!("{threads} clients are so many times as fast as {few}: {}", faster.join(", "));
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = Folder::new(&arguments.directory)?;
    println!("{}", folder.machine()?);
    let stores = open(&folder, &arguments)?;
    let requests = Requests::new(arguments.records)?;
    for store in &stores {
        let start = Instant::now();
        requests.load(&**store)?;
        let rate = arguments.records as f64 / start.elapsed().as_secs_f64();
        println!("{}: {} records loaded, {rate:.0}/s", store.name(), arguments.records);
    }
    // Merges and flushes continue for a while.
    sleep(Duration::from_secs(3));
    let records: Vec<Records> =
        stores.iter().map(|store| Records::new(&**store, &requests)).collect();
    for &workload in &arguments.workloads {
        let mut all = Vec::new();
        for &threads in &arguments.threads {
            let mut measured = measure(&arguments, workload, threads, &stores, &records)?;
            println!("\n{workload:?}: {}; clients: {threads}", workload.mix());
            measured::print(&mut measured, "operations");
            all.push((threads, measured));
        }
        print_scaling(&all);
    }
    Ok(())
}

fn measure(
    arguments: &Arguments,
    workload: Workload,
    threads: usize,
    stores: &[Box<dyn Table>],
    records: &[Records<'_>],
) -> Result<Vec<Measured>> {
    let mut measured: Vec<_> = stores.iter().map(|store| Measured::new(store.name())).collect();
    let time = Duration::from_secs_f64(arguments.seconds);
    for number in 0..arguments.rounds {
        // There and back again: no store always follows the same one.
        let mut order: Vec<usize> = (0..stores.len()).collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let steps = |thread| {
                let mut client = records[index].client(workload, thread + number * threads);
                move || client.step()
            };
            measured[index].add(round::run(threads, time, steps)?);
            sleep(time / 10);
        }
    }
    Ok(measured)
}

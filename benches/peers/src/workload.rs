//! The workloads of YCSB, the Yahoo! Cloud Serving Benchmark, and the keys they ask for.
//!
//! Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010. Records are asked for with a zipfian distribution
//! (exponent 0.99) and popular ones are scattered over all keys; D asks for the newest ones most. Other than there, a
//! record has one value instead of ten fields, which is read and written as a whole.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use fastrand::Rng;
use rand_distr::{Distribution, Zipf};

use crate::Result;
use crate::row::{LOADED, Values, key};
use crate::store::Table;

/// How many ranks are drawn before the benchmark, so that drawing them is no part of it.
const RANKS: usize = 1 << 20;

/// The most rows of a scan; the least is one.
const SCAN: usize = 100;

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, the rest updates.
    B,
    /// Reads.
    C,
    /// 95 % reads, most of them of what was inserted last, the rest inserts.
    D,
    /// 95 % scans of 1 to 100 rows, the rest inserts.
    E,
    /// Half reads, half updates of what was just read.
    F,
}

enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    Modify,
}

impl Workload {
    /// Its operations.
    pub fn mix(self) -> &'static str {
        match self {
            Self::A => "50 % reads, 50 % updates",
            Self::B => "95 % reads, 5 % updates",
            Self::C => "reads",
            Self::D => "95 % reads of the newest, 5 % inserts",
            Self::E => "95 % scans of 1 to 100 rows, 5 % inserts",
            Self::F => "50 % reads, 50 % reads and updates",
        }
    }

    fn operation(self, random: &mut Rng) -> Operation {
        let is_often = random.u8(..100) < 95;
        match self {
            Self::A if random.bool() => Operation::Update,
            Self::F if random.bool() => Operation::Modify,
            Self::A | Self::C | Self::F => Operation::Read,
            Self::B | Self::D if is_often => Operation::Read,
            Self::E if is_often => Operation::Scan,
            Self::B => Operation::Update,
            Self::D | Self::E => Operation::Insert,
        }
    }
}

/// Which records are asked for, and what is written: the same for all stores.
pub struct Requests {
    values: Values,
    /// The number of records that were loaded.
    records: u64,
    /// Ranks from 0 on, of which the first are drawn most.
    ranks: Vec<u32>,
}

impl Requests {
    /// Requests for so many records, at most 2³².
    pub fn new(records: u64) -> Result<Self> {
        let zipf = Zipf::new(records as f64, 0.99)?;
        let mut random = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(1);
        let mut rank = || (zipf.sample(&mut random) as u64).clamp(1, records) - 1;
        let ranks = (0..RANKS).map(|_| rank() as u32).collect();
        Ok(Self { values: Values::new(), records, ranks })
    }

    /// Fills a store with the records.
    pub fn load(&self, table: &dyn Table) -> Result<()> {
        let all = 0..self.records;
        for start in all.clone().step_by(LOADED * 10) {
            let numbers = start..all.end.min(start + LOADED as u64 * 10);
            table.load(&mut numbers.map(|number| (key(number), self.values.get(number))))?;
        }
        Ok(())
    }
}

/// The records of one store.
pub struct Records<'a> {
    table: &'a dyn Table,
    requests: &'a Requests,
    /// How many there are, with those that are being inserted.
    count: AtomicU64,
}

impl<'a> Records<'a> {
    /// The records that were loaded into a store.
    pub fn new(table: &'a dyn Table, requests: &'a Requests) -> Self {
        Self { table, requests, count: AtomicU64::new(requests.records) }
    }

    /// A client of a workload.
    pub fn client(&self, workload: Workload, thread: usize) -> Client<'_> {
        let mut random = Rng::with_seed(thread as u64);
        let next = random.usize(..RANKS);
        Client { records: self, workload, random, next, value: Vec::new() }
    }
}

/// A thread that sends operations to a store, one after the other.
pub struct Client<'a> {
    records: &'a Records<'a>,
    workload: Workload,
    random: Rng,
    /// The next rank.
    next: usize,
    /// The value that was read last.
    value: Vec<u8>,
}

impl Client<'_> {
    /// Sends one operation. Fails if it finds nothing.
    pub fn step(&mut self) -> Result<()> {
        let &Records { table, requests, ref count } = self.records;
        match self.workload.operation(&mut self.random) {
            Operation::Read => self.read(),
            Operation::Update => table.put(self.key(), requests.values.get(self.random.u64(..))),
            Operation::Insert => {
                let number = count.fetch_add(1, Ordering::Relaxed);
                table.put(key(number), requests.values.get(number))
            }
            Operation::Scan => {
                let rows = self.random.usize(1..=SCAN);
                let found = table.scan(self.key(), rows, &mut self.value)?;
                if found == 0 { Err(missing(table)) } else { Ok(()) }
            }
            Operation::Modify => {
                let key = self.key();
                if !table.get(key, &mut self.value)? {
                    return Err(missing(table));
                }
                self.value.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                table.put(key, &self.value)
            }
        }
    }

    fn read(&mut self) -> Result<()> {
        let table = self.records.table;
        let key = self.key();
        // In D it may be one that another thread is inserting.
        match table.get(key, &mut self.value)? || self.workload == Workload::D {
            true => Ok(()),
            false => Err(missing(table)),
        }
    }

    /// The next key to ask for.
    fn key(&mut self) -> u64 {
        let Requests { ranks, records, .. } = self.records.requests;
        let rank = u64::from(ranks[self.next]);
        self.next = (self.next + 1) % RANKS;
        key(match self.workload {
            Workload::D => self.records.count.load(Ordering::Relaxed) - 1 - rank,
            // The same records are popular in all workloads.
            _ => (rank.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 20) % records,
        })
    }
}

fn missing(table: &dyn Table) -> Box<dyn std::error::Error + Send + Sync> {
    format!("{} does not have a record that was loaded", table.name()).into()
}

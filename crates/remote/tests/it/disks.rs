//! Simulated disks for a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use alluvium_remote::server::Disks;
use alluvium_storage::{Disk, Result, SimulatedDisk};

/// A disk for each journal.
#[derive(Debug)]
pub struct SimulatedDisks {
    seed: u64,
    disks: Mutex<HashMap<String, SimulatedDisk>>,
}

impl SimulatedDisks {
    pub fn new(seed: u64) -> Arc<SimulatedDisks> {
        Arc::new(SimulatedDisks { seed, disks: Mutex::default() })
    }

    /// The disk of a journal that was opened.
    pub fn of(&self, name: &str) -> SimulatedDisk {
        self.disks.lock().unwrap()[name].clone()
    }
}

impl Disks for SimulatedDisks {
    fn disk(&self, name: &str, make: bool) -> Result<Option<Arc<dyn Disk>>> {
        let mut disks = self.disks.lock().unwrap();
        if make {
            disks.entry(name.to_owned()).or_insert_with(|| SimulatedDisk::new(self.seed));
        }
        Ok(disks.get(name).map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>))
    }
}

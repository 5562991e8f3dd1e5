//! Manifests whose computer crashes at any call. `ALLUVIUM_CRASHES` sets the number of crashes.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, FileManifests, Manifests, Published, SimulatedDisk};
use fastrand::Rng;

use super::current;
use crate::journal::crashes;

/// How many crashes a computer has.
const ROUNDS: u64 = 25;

/// The manifest that must be current.
struct Model {
    random: Rng,
    /// The current manifest, and the one that was being published.
    current: Option<(u64, Vec<u8>)>,
    attempted: Option<(u64, Vec<u8>)>,
}

impl Model {
    fn check(&mut self, manifests: &FileManifests) {
        let found = current(manifests);
        assert!(
            found == self.current || (self.attempted.is_some() && found == self.attempted),
            "{found:?} is neither {:?} nor {:?}",
            self.current,
            self.attempted
        );
        (self.current, self.attempted) = (found, None);
        // All that are kept can be read.
        for number in manifests.list().unwrap() {
            manifests.read(number).unwrap();
        }
    }

    fn run(&mut self, manifests: &FileManifests) -> Result<(), Error> {
        for _ in 0..self.random.u64(1..6) {
            let next = self.current.as_ref().map_or(0, |(number, _)| *number) + 1;
            let mut bytes = vec![0; self.random.usize(..3000)];
            self.random.fill(&mut bytes);
            self.attempted = Some((next, bytes.clone()));
            assert_eq!(manifests.publish(next, &bytes)?, Published::Done);
            self.current = self.attempted.take();
            assert_eq!(current(manifests), self.current);
            if self.random.bool() {
                manifests.retain(2)?;
            }
        }
        Ok(())
    }
}

fn run(seed: u64) {
    println!("seed {seed}");
    let simulated = SimulatedDisk::new(seed);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let mut model = Model { random: Rng::with_seed(seed), current: None, attempted: None };
    for _ in 0..ROUNDS {
        let call = simulated.calls() + model.random.u64(1..40);
        match model.random.bool() {
            true => simulated.fail_from(call),
            false => simulated.fail_at(call),
        }
        // Opening may fail, too.
        if let Ok(manifests) = FileManifests::open_on(disk.clone()) {
            model.check(&manifests);
            let _ = model.run(&manifests);
        }
        match model.random.u8(..4) {
            // Only the process has ended.
            0 => simulated.mend(),
            _ => simulated.crash(),
        }
    }
    model.check(&FileManifests::open_on(disk).unwrap());
}

#[test]
fn after_every_crash_the_published_one_is_current_or_the_next() {
    for seed in 0..crashes().div_ceil(ROUNDS) {
        run(seed);
    }
}

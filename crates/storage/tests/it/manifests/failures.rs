//! Calls of the disk that fail while a manifest is published.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, FileManifests, Manifests, SimulatedDisk};

use super::{current, publish};

#[test]
fn a_publication_that_fails_has_changed_nothing_or_is_final() {
    // Create, two writes, sync, rename, sync; then create, write, sync, rename, sync.
    let can_be_repeated = [true, true, true, true, false, false, true, true, true, false, false];
    for (call, can_be_repeated) in (1..).zip(can_be_repeated) {
        let simulated = SimulatedDisk::new(call);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let manifests = FileManifests::open_on(disk.clone()).unwrap();
        publish(&manifests, 1, b"first");
        simulated.fail_at(simulated.calls() + call);
        let error = manifests.publish(2, b"second").unwrap_err().to_string();
        assert!(error.ends_with("fails on command"), "{error}");
        match can_be_repeated {
            true => {
                assert_eq!(current(&manifests), Some((1, b"first".to_vec())));
                publish(&manifests, 2, b"other");
                simulated.crash();
                let manifests = FileManifests::open_on(disk).unwrap();
                assert_eq!(current(&manifests), Some((2, b"other".to_vec())));
            }
            false => {
                assert_eq!(manifests.publish(2, b"other").unwrap_err().to_string(), error);
                assert_eq!(manifests.retain(1).unwrap_err().to_string(), error);
                let manifests = FileManifests::open_on(disk).unwrap();
                assert!(current(&manifests).is_some());
            }
        }
    }
}

#[test]
fn on_a_full_disk_the_current_one_stays() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let manifests = FileManifests::open_on(disk.clone()).unwrap();
    publish(&manifests, 1, b"first");
    simulated.limit(1000);
    let error = manifests.publish(2, &[2; 2000]).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(current(&manifests), Some((1, b"first".to_vec())));
    // The written bytes are gone.
    assert_eq!(disk.list().unwrap(), ["00000000000000000001.manifest", "current"]);
    simulated.mend();
    publish(&manifests, 2, &[2; 2000]);
}

/// The system shows a `current` that is not on the disk. It is written once more before anything relies on it.
#[test]
fn what_is_current_after_a_failed_sync_of_the_directory_is_durable() {
    for seed in 0..50 {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let manifests = FileManifests::open_on(disk.clone()).unwrap();
        publish(&manifests, 1, b"first");
        simulated.fail_at(simulated.calls() + 11);
        manifests.publish(2, b"second").unwrap_err();
        let manifests = FileManifests::open_on(disk.clone()).unwrap();
        assert_eq!(current(&manifests), Some((2, b"second".to_vec())));
        simulated.crash();
        let manifests = FileManifests::open_on(disk).unwrap();
        assert_eq!(current(&manifests), Some((2, b"second".to_vec())));
    }
}

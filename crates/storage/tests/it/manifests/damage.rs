//! Damaged and missing files of manifests.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, FileManifests, Manifests, SimulatedDisk};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::{current, publish};

const FIRST: &str = "00000000000000000001.manifest";
const SECOND: &str = "00000000000000000002.manifest";

fn written() -> (SimulatedDisk, Arc<dyn Disk>) {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let manifests = FileManifests::open_on(disk.clone()).unwrap();
    publish(&manifests, 1, b"the first manifest");
    publish(&manifests, 2, b"the second manifest");
    (simulated, disk)
}

fn says(disk: &Arc<dyn Disk>) -> String {
    FileManifests::open_on(disk.clone()).err().unwrap().to_string()
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_file() {
    let (simulated, disk) = written();
    for name in [SECOND, "current"] {
        let bytes = simulated.bytes(name).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            simulated.replace(name, &damaged);
            let error = FileManifests::open_on(disk.clone()).err().unwrap();
            let Error::Corrupt { place, .. } = &error else { panic!("{error}") };
            assert_eq!(place, &format!("simulated:{name}"));
            assert_eq!(simulated.bytes(name).unwrap(), damaged, "it is left as it is");
        }
        simulated.replace(name, &bytes);
    }
}

#[test]
fn without_the_file_current_manifests_are_refused() {
    let (simulated, disk) = written();
    simulated.lose("current");
    assert_eq!(
        says(&disk),
        format!(
            "simulated:current is missing, and simulated:{SECOND} needs it; put it back, or restore \
             the directory from a backup"
        )
    );
    assert_eq!(disk.list().unwrap(), [FIRST, SECOND]);
}

#[test]
fn a_current_manifest_that_is_missing_is_named() {
    let (simulated, disk) = written();
    simulated.lose(SECOND);
    assert_eq!(
        says(&disk),
        format!(
            "simulated:{SECOND} is missing, and simulated:current needs it; put it back, or restore \
             the directory from a backup"
        )
    );
}

#[test]
fn a_manifest_in_the_place_of_the_current_one_is_refused() {
    let (simulated, disk) = written();
    let other = SimulatedDisk::new(2);
    let manifests = FileManifests::open_on(Arc::new(other.clone())).unwrap();
    publish(&manifests, 1, b"x");
    publish(&manifests, 2, b"another manifest");
    simulated.replace(SECOND, &other.bytes(SECOND).unwrap());
    assert!(says(&disk).contains("it is not the manifest that was published"));
    simulated.replace(SECOND, &simulated.bytes(FIRST).unwrap());
    assert!(says(&disk).contains("it has another number than its name says"));
}

#[test]
fn files_of_a_later_version_are_refused() {
    let (simulated, disk) = written();
    let bytes = simulated.bytes("current").unwrap();
    let mut newer = bytes.clone();
    newer[8] = 2;
    let checksum = xxh3_64(&newer[..32]);
    newer[32..].copy_from_slice(&checksum.to_le_bytes());
    simulated.replace("current", &newer);
    let newer = "has version 2 of its format, and this program reads versions up to 1; open it \
                 with the program that has written it, or a later one";
    assert_eq!(says(&disk), format!("simulated:current {newer}"));
    simulated.replace("current", &bytes);

    let mut manifest = simulated.bytes(SECOND).unwrap();
    let trailer = manifest.len() - 40;
    manifest[trailer + 16] = 2;
    let mut checked = manifest[trailer..trailer + 24].to_vec();
    checked.extend_from_slice(&xxh3_64(&manifest[..trailer]).to_le_bytes());
    manifest[trailer + 24..trailer + 32].copy_from_slice(&xxh3_64(&checked).to_le_bytes());
    simulated.replace(SECOND, &manifest);
    assert_eq!(says(&disk), format!("simulated:{SECOND} {newer}"));
}

#[test]
fn other_files_stay_and_what_a_publication_has_left_is_deleted() {
    let (simulated, disk) = written();
    let left =
        [".00000000000000000003.manifest.new", ".current.new", "00000000000000000003.manifest"];
    let others = [".hidden.new", "3.manifest", "notes"];
    for name in left.iter().chain(&others) {
        simulated.replace(name, b"bytes");
    }
    let manifests = FileManifests::open_on(disk.clone()).unwrap();
    assert_eq!(current(&manifests), Some((2, b"the second manifest".to_vec())));
    let names = disk.list().unwrap();
    assert!(others.iter().all(|other| names.contains(&other.to_string())));
    assert!(!left.iter().any(|left| names.contains(&left.to_string())));
    assert_eq!(manifests.list().unwrap(), [1, 2]);
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..2) {
        let (simulated, disk) = written();
        let name = ["current", SECOND][which as usize];
        simulated.replace(name, &bytes);
        let error = FileManifests::open_on(disk).err().unwrap();
        prop_assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

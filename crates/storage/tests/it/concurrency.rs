//! Several threads that write.

use std::sync::atomic::{AtomicUsize, Ordering};

use alluvium_storage::Error;

use crate::twins::{MIB, assert_reads, bytes, each};

#[test]
fn writers_of_different_names_do_not_disturb_each_other() {
    each(|storage| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let storage = &storage;
                scope.spawn(move || {
                    for round in 0..8 {
                        let name = format!("{thread}-{round}");
                        let all = bytes(MIB / 2 * round + thread, thread as u64);
                        let mut writer = storage.create(&name).unwrap();
                        for piece in all.chunks(100_003) {
                            writer.append(piece).unwrap();
                        }
                        let blob = writer.seal().unwrap();
                        assert_reads(&*blob, &all);
                        if round % 2 == 0 {
                            storage.delete(&name).unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(storage.list("").unwrap().len(), 16);
    });
}

#[test]
fn of_several_writers_of_one_name_one_wins() {
    each(|storage| {
        for round in 0..50 {
            let name = format!("r{round}");
            let won = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (storage, name, won) = (&storage, &name, &won);
                    scope.spawn(move || match storage.create(name) {
                        Ok(mut writer) => {
                            won.fetch_add(1, Ordering::Relaxed);
                            writer.append(&[thread; 3]).unwrap();
                            writer.seal().unwrap();
                        }
                        Err(error) => assert!(matches!(error, Error::Exists { .. }), "{error}"),
                    });
                }
            });
            assert_eq!(won.into_inner(), 1);
            assert_eq!(storage.open(&name).unwrap().len(), 3);
        }
    });
}

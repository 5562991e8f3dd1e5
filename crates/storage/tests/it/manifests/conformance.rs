//! The behaviour of all manifests.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::{Error, Published};

use super::{current, each, publish};

#[test]
fn at_first_none_is_current() {
    each(|open| {
        for _ in 0..2 {
            let manifests = open();
            assert_eq!(current(&*manifests), None);
            assert!(manifests.list().unwrap().is_empty());
            manifests.retain(2).unwrap();
        }
    });
}

#[test]
fn the_last_one_published_is_current_also_when_opened_again() {
    each(|open| {
        for number in 1..6_u64 {
            let manifests = open();
            let bytes = vec![number as u8; 1000 * (number as usize - 1)];
            publish(&*manifests, number, &bytes);
            assert_eq!(current(&*manifests), Some((number, bytes.clone())));
            assert_eq!(current(&*open()), Some((number, bytes)));
        }
        assert_eq!(open().list().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(open().read(2).unwrap(), vec![2; 1000]);
    });
}

#[test]
fn only_the_next_number_can_be_published() {
    each(|open| {
        let manifests = open();
        for next in [0, 2, u64::MAX] {
            let refused = manifests.publish(next, b"x").unwrap();
            assert_eq!(refused, Published::Conflict { current: 0 });
        }
        publish(&*manifests, 1, b"first");
        for next in [0, 1, 3] {
            let refused = manifests.publish(next, b"x").unwrap();
            assert_eq!(refused, Published::Conflict { current: 1 });
        }
        assert_eq!(current(&*manifests), Some((1, b"first".to_vec())));
    });
}

#[test]
fn of_several_publishers_of_a_number_one_wins() {
    each(|open| {
        let manifests = open();
        for next in 1..10 {
            let winner = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for thread in 1..=4_u8 {
                    let (manifests, winner) = (&manifests, &winner);
                    scope.spawn(move || match manifests.publish(next, &[thread]).unwrap() {
                        Published::Done => drop(winner.fetch_add(thread.into(), Ordering::Relaxed)),
                        Published::Conflict { current } => assert_eq!(current, next),
                    });
                }
            });
            let winner = winner.into_inner() as u8;
            assert_eq!(current(&*manifests), Some((next, vec![winner])));
        }
    });
}

#[test]
fn old_ones_are_deleted_but_never_the_current_one() {
    each(|open| {
        let manifests = open();
        for number in 1..=6 {
            publish(&*manifests, number, &[number as u8]);
        }
        manifests.retain(10).unwrap();
        assert_eq!(manifests.list().unwrap(), [1, 2, 3, 4, 5, 6]);
        manifests.retain(2).unwrap();
        assert_eq!(manifests.list().unwrap(), [5, 6]);
        assert!(matches!(manifests.read(4), Err(Error::Missing { .. })));
        manifests.retain(0).unwrap();
        assert_eq!(open().list().unwrap(), [6]);
        publish(&*manifests, 7, b"7");
        assert_eq!(current(&*open()), Some((7, b"7".to_vec())));
    });
}

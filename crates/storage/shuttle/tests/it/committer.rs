//! Threads that commit records to a journal's log.

use std::io;
use std::sync::{Arc, Mutex};

use alluvium_storage_shuttle::error::Failure;
use alluvium_storage_shuttle::journal::{Committer, Group, Log};
use shuttle::thread;

use crate::model::in_many_orders;

/// The records of a log. It is no place where threads are switched.
#[derive(Default)]
struct Written {
    /// The position after the last record that was written, and after the last that was synced.
    end: u64,
    synced: u64,
    syncs: u64,
    /// The sync that fails, counted from 1.
    fails: Option<u64>,
    failed: bool,
}

#[derive(Clone, Default)]
struct Model(Arc<Mutex<Written>>);

impl Model {
    fn failing(sync: u64) -> Model {
        let model = Model::default();
        model.0.lock().unwrap().fails = Some(sync);
        model
    }

    fn synced(&self) -> u64 {
        self.0.lock().unwrap().synced
    }
}

impl Log for Model {
    fn write(&mut self, group: &mut Group, _: &[u8], durable: u64) -> Result<(), Failure> {
        // Here another thread may append, or want to write.
        thread::yield_now();
        let mut written = self.0.lock().unwrap();
        assert!(!written.failed, "a failure is final");
        assert_eq!(group.first(), written.end, "groups follow on one another");
        assert!(!group.is_empty() && durable <= written.synced);
        written.end = group.end();
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        thread::yield_now();
        let mut written = self.0.lock().unwrap();
        assert!(!written.failed, "a failure is final");
        written.syncs += 1;
        if written.fails == Some(written.syncs) {
            written.failed = true;
            return Err(Failure::new("sync", "model", io::Error::other("on command")));
        }
        written.synced = written.end;
        Ok(())
    }
}

/// Threads that append and sync some records each.
fn commit(
    committer: &Arc<Committer<Model>>,
    model: &Model,
    records: [usize; 3],
) -> thread::JoinHandle<u64> {
    let (committer, model) = (Arc::clone(committer), model.clone());
    thread::spawn(move || {
        let mut committed = 0;
        for length in records {
            let synced = committer.append(&vec![0; length]).and_then(|position| {
                assert!(committer.sync(position)?);
                assert!(model.synced() > position, "what is acknowledged is synced");
                Ok(())
            });
            committed += u64::from(synced.is_ok());
        }
        committed
    })
}

#[test]
fn each_record_is_written_once_and_synced_before_it_is_acknowledged() {
    in_many_orders(|| {
        let model = Model::default();
        // The queue has room for one small record, and the large one is written at once.
        let committer = Arc::new(Committer::new(model.clone(), 0, 100, 0));
        let threads =
            [[1, 1, 1], [1, 200, 1], [30, 1, 60]].map(|one| commit(&committer, &model, one));
        for thread in threads {
            // All threads waiting at once would be a failure.
            assert_eq!(thread.join().unwrap(), 3);
        }
        let written = model.0.lock().unwrap();
        assert_eq!((written.end, written.synced), (9, 9));
        assert!(written.syncs <= 9);
        assert_eq!(committer.ends(), (9, 9));
    });
}

#[test]
fn after_a_failure_every_thread_gets_the_error_and_nothing_is_written() {
    in_many_orders(|| {
        let model = Model::failing(2);
        let committer = Arc::new(Committer::new(model.clone(), 0, 100, 0));
        let threads =
            [[1, 1, 1], [1, 1, 50], [200, 1, 1]].map(|one| commit(&committer, &model, one));
        let committed: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        let written = model.0.lock().unwrap();
        assert!(committed <= written.synced);
        // Unless two syncs were enough for all, the others know.
        if written.failed {
            assert!(committed < 9);
            drop(written);
            assert!(committer.append(b"").is_err() && committer.sync(0).is_err());
        }
    });
}

#[test]
fn what_is_said_to_be_written_is_written_beside_those_who_sync() {
    in_many_orders(|| {
        let model = Model::default();
        let committer = Arc::new(Committer::new(model.clone(), 0, 100, 0));
        let syncs = [[1, 1, 1], [30, 200, 60]].map(|one| commit(&committer, &model, one));
        let writes = {
            let (committer, model) = (Arc::clone(&committer), model.clone());
            thread::spawn(move || {
                for length in [1, 60, 200] {
                    let position = committer.append(&vec![0; length]).unwrap();
                    assert!(committer.write_queue(position).unwrap());
                    assert!(model.0.lock().unwrap().end > position, "it is written");
                }
            })
        };
        writes.join().unwrap();
        for thread in syncs {
            assert_eq!(thread.join().unwrap(), 3);
        }
        assert_eq!(model.0.lock().unwrap().end, 9);
        assert_eq!(committer.write_queue(9).ok(), Some(false));
    });
}

//! Crashes at the calls of a disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::Engine;
use alluvium_storage::SimulatedDisk;

use crate::checkpoints::on_with;

/// Statements after which a crash is survived.
pub struct Crashes<'a> {
    pub workers: usize,
    /// What is there before them.
    pub before: &'a str,
    pub statements: &'a [&'a str],
    /// Of so many calls of the disk one fails; each does if `ALLUVIUM_CRASHES` is set.
    pub step: usize,
}

impl Crashes<'_> {
    fn prepared(&self, seed: u64) -> (SimulatedDisk, Engine) {
        let disk = SimulatedDisk::new(seed);
        let engine = on_with(&disk, self.workers).unwrap();
        engine.execute(self.before).unwrap();
        (disk, engine)
    }

    /// Runs the statements until a call of the disk fails, and the machine loses power, again and again with later calls. Calls `after` with the
    /// number of the call, the disk, and how many statements were acknowledged. Returns how many calls there are.
    pub fn each(&self, mut after: impl FnMut(u64, &SimulatedDisk, usize)) -> u64 {
        let (disk, engine) = self.prepared(0);
        let first = disk.calls();
        let mut session = engine.session();
        self.statements.iter().for_each(|sql| drop(session.execute(sql).unwrap()));
        let calls = disk.calls() - first;
        drop((session, engine));
        let step = if std::env::var_os("ALLUVIUM_CRASHES").is_some() { 1 } else { self.step };
        for call in (1..=calls).step_by(step) {
            let (disk, engine) = self.prepared(call);
            disk.fail_from(disk.calls() + call);
            let mut session = engine.session();
            let is_done = |sql: &&&str| session.execute(sql).is_ok();
            let done = self.statements.iter().take_while(is_done).count();
            drop((session, engine));
            disk.crash();
            disk.mend();
            after(call, &disk, done);
        }
        calls
    }

    /// As [`Crashes::each`]: what is there then is what there was after the acknowledged statements, or one more, and the others run. Calls
    /// `after` at the end.
    pub fn each_in_a_state(
        &self,
        is_in: impl Fn(&Engine, usize) -> bool,
        after: impl Fn(&Engine, u64),
    ) -> u64 {
        self.each(|call, disk, done| {
            let engine = on_with(disk, 1).unwrap_or_else(|error| panic!("call {call}: {error}"));
            // One more may have reached the disk.
            let last = (done + 1).min(self.statements.len());
            let state = (done..=last).rev().find(|state| is_in(&engine, *state));
            let state = state.unwrap_or_else(|| panic!("call {call}, behind {done} statements"));
            self.statements[state..].iter().for_each(|sql| drop(engine.execute(sql).unwrap()));
            assert!(is_in(&engine, self.statements.len()), "call {call}");
            after(&engine, call);
        })
    }
}

//! Row groups of a file that several threads decode at once.

use alluvium::{Portion, Result, SourcePosition, SourceReader};

use super::read::Plan;
use crate::blocks::{Work, Workers};
use crate::input::failed;

/// Reads the row groups of a file, in their order.
pub struct GroupReader {
    workers: Workers<usize, Result<Portion>>,
    /// The next one to be read.
    next: usize,
    groups: usize,
}

impl GroupReader {
    pub fn new(plan: &Plan, threads: usize) -> Result<Self> {
        let groups = plan.groups();
        let work = |_| -> Work<usize, Result<Portion>> {
            let plan = plan.clone();
            Box::new(move |group, give| {
                let read = plan.group(group).and_then(|mut reader| {
                    while let Some(portion) = reader.next()? {
                        if !give(Ok(portion)) {
                            break;
                        }
                    }
                    Ok(())
                });
                if let Err(error) = read {
                    give(Err(error));
                }
            })
        };
        let workers = Workers::new((0..threads.min(groups)).map(work));
        let workers = workers.map_err(|error| failed("read", plan.path(), &error))?;
        Ok(Self { workers, next: 0, groups })
    }
}

impl SourceReader for GroupReader {
    fn next(&mut self) -> Result<Option<Portion>> {
        while self.next < self.groups && self.workers.want_jobs() {
            self.workers.add(self.next);
            self.next += 1;
        }
        self.workers.next().transpose()
    }

    /// Rows come from several places at once.
    fn position(&self) -> Option<SourcePosition> {
        None
    }
}

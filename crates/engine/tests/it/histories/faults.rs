//! The judge notices seeded faults of the engine.

use std::time::Duration;

use alluvium::unstable::fault::Fault;

use super::Run;
use crate::armed::each_is_noticed;

/// How long a call may take before it counts as one that hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// A short history, in memory.
fn problems(seed: u64) -> Vec<String> {
    Run { seed, plans: 300, patience: PATIENCE, state: None }.problems()
}

#[test]
fn histories_notice_faults() {
    let faults = Fault::TRANSACTIONS.map(|fault| (format!("{fault:?}"), fault.into()));
    each_is_noticed("histories::faults::histories_notice_faults", &faults, problems);
}

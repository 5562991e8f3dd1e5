//! Adding up the changes that a subscription delivers.

use std::collections::BTreeMap;

use alluvium::{Change, Subscription};

use super::row::{Row, line, rows_of};

/// The sum of the changes so far, and a log of them.
#[derive(Default)]
pub(crate) struct Sum {
    sum: BTreeMap<Row, i64>,
    /// The changes by epoch.
    log: Vec<(u64, BTreeMap<Row, i64>)>,
    epoch: Option<u64>,
}

impl Sum {
    /// Adds a change. Fails if the change breaks the contract of subscriptions.
    pub(crate) fn add(&mut self, change: &Change) -> Result<(), String> {
        let epoch = change.epoch;
        match self.epoch {
            Some(last) if epoch <= last => {
                return Err(format!("epoch {epoch} comes after epoch {last}"));
            }
            Some(_) if change.rows.num_rows() == 0 => {
                return Err(format!("epoch {epoch} changes nothing"));
            }
            _ => self.epoch = Some(epoch),
        }
        let rows = rows_of(&change.rows);
        if rows.len() != change.weights.len() {
            return Err(format!("{} rows have {} weights", rows.len(), change.weights.len()));
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut changes = BTreeMap::new();
        for (row, &weight) in rows.into_iter().zip(change.weights.iter()) {
            if weight == 0 {
                return Err(format!("[{}] has a change of weight 0 in epoch {epoch}", line(&row)));
            }
            if !seen.insert(row.clone()) {
                return Err(format!(
                    "[{}] occurs twice in the change of epoch {epoch}",
                    line(&row)
                ));
            }
            changes.insert(row.clone(), weight);
            let sum = self.sum.entry(row).or_default();
            *sum += weight;
        }
        self.log.push((epoch, changes));
        // Checked at the end, because changes within an epoch have no order.
        if let Some((row, weight)) = self.sum.iter().find(|(_, weight)| **weight < 0) {
            return Err(format!("[{}] has weight {weight} in epoch {epoch}", line(row)));
        }
        self.sum.retain(|_, weight| *weight != 0);
        Ok(())
    }

    /// The changes by epoch; the first entry is the initial snapshot.
    pub(crate) fn log(&self) -> &[(u64, BTreeMap<Row, i64>)] {
        &self.log
    }

    /// The last epoch that was added.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// The rows, each repeated by its weight.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let copies =
            |(row, weight): (&Row, &i64)| std::iter::repeat_n(row.clone(), *weight as usize);
        self.sum.iter().flat_map(copies).collect()
    }
}

/// A subscription and the sum of the changes it has delivered.
pub(crate) struct Watch {
    subscription: Subscription,
    pub(crate) sum: Sum,
}

impl Watch {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self { subscription, sum: Sum::default() }
    }

    /// Adds the changes delivered so far, which must be all through `epoch` and none later.
    pub(crate) fn catch_up(&mut self, epoch: u64) -> Result<(), String> {
        while let Some(change) = self.subscription.try_next().map_err(|error| error.to_string())? {
            self.sum.add(&change)?;
        }
        match self.sum.epoch() {
            None => Err("no initial snapshot was delivered".to_owned()),
            Some(last) if last > epoch => {
                Err(format!("epoch {last} was delivered before it was complete"))
            }
            Some(_) => Ok(()),
        }
    }
}

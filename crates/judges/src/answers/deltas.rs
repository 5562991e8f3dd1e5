//! The changes a subscription delivers, added up.

use std::collections::BTreeMap;

use alluvium::{Change, Subscription};

use super::row::{Row, line, rows_of};

/// The sum of the changes so far.
#[derive(Default)]
pub(crate) struct Sum {
    sum: BTreeMap<Row, i64>,
    /// What has changed, epoch by epoch.
    log: Vec<(u64, BTreeMap<Row, i64>)>,
    epoch: Option<u64>,
}

impl Sum {
    /// Adds a change, and says what is wrong with it.
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
                return Err(format!("[{}] changes by nothing in epoch {epoch}", line(&row)));
            }
            if !seen.insert(row.clone()) {
                return Err(format!("[{}] is twice in the change of epoch {epoch}", line(&row)));
            }
            changes.insert(row.clone(), weight);
            let sum = self.sum.entry(row).or_default();
            *sum += weight;
        }
        self.log.push((epoch, changes));
        // Only now: within an epoch there is no order.
        if let Some((row, weight)) = self.sum.iter().find(|(_, weight)| **weight < 0) {
            return Err(format!("[{}] is there {weight} times in epoch {epoch}", line(row)));
        }
        self.sum.retain(|_, weight| *weight != 0);
        Ok(())
    }

    /// What has changed, epoch by epoch; first comes what there was.
    pub(crate) fn log(&self) -> &[(u64, BTreeMap<Row, i64>)] {
        &self.log
    }

    /// The last epoch that was entered.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Each row as often as its weight says.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let copies =
            |(row, weight): (&Row, &i64)| std::iter::repeat_n(row.clone(), *weight as usize);
        self.sum.iter().flat_map(copies).collect()
    }
}

/// A subscription and the sum of what it has delivered.
pub(crate) struct Watch {
    subscription: Subscription,
    pub(crate) sum: Sum,
}

impl Watch {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self { subscription, sum: Sum::default() }
    }

    /// Enters what has been delivered. All of `epoch` has been, and nothing later.
    pub(crate) fn catch_up(&mut self, epoch: u64) -> Result<(), String> {
        while let Some(change) = self.subscription.try_next().map_err(|error| error.to_string())? {
            self.sum.add(&change)?;
        }
        match self.sum.epoch() {
            None => Err("there is no first change".to_owned()),
            Some(last) if last > epoch => {
                Err(format!("epoch {last} was delivered before it was made"))
            }
            Some(_) => Ok(()),
        }
    }
}

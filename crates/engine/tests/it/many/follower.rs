//! A client that follows the changes of a relation for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium::{Change, Error, Outcome, Policy, Result, SubscribeOptions, Subscription};

use super::client::{Client, NAMES};
use super::history::{Followed, Seen};
use super::model::{Relation, STEADY};
use super::query::Answer;
use crate::support::batch_lines;

/// The knowledge of a subscriber.
#[derive(Default)]
struct Replica {
    rows: BTreeMap<String, i64>,
    seen: Vec<Seen>,
}

impl Replica {
    /// Takes a change. Fails if it cannot be one.
    fn apply(&mut self, change: &Change) -> std::result::Result<(), String> {
        let last = self.seen.last().map(|seen| seen.epoch);
        if change.is_snapshot {
            self.rows.clear();
        } else if last.is_none_or(|last| change.epoch <= last) {
            let seen = self.seen.iter().rev().take(6).map(|it| (it.epoch, it.is_snapshot));
            let seen: Vec<_> = seen.collect();
            return Err(format!("a change of epoch {} comes after {seen:?}", change.epoch));
        }
        for (row, weight) in batch_lines(&change.rows).into_iter().zip(change.weights.iter()) {
            *self.rows.entry(row).or_default() += weight;
        }
        self.rows.retain(|_, weight| *weight != 0);
        if let Some((row, weight)) = self.rows.iter().find(|(_, weight)| **weight < 0) {
            return Err(format!("{row} is there {weight} times as of {}", change.epoch));
        }
        let copies = |(row, weight): (&String, &i64)| vec![row.clone(); *weight as usize];
        let rows: Vec<String> = self.rows.iter().flat_map(copies).collect();
        let (epoch, is_snapshot) = (change.epoch, change.is_snapshot);
        self.seen.push(Seen { epoch, is_snapshot, contents: Answer::of(&rows) });
        Ok(())
    }

    /// The view of a name that comes and goes says in its rows which it is.
    fn variant(&self) -> Option<Relation> {
        let row = self.rows.keys().next()?;
        row.split(' ').next()?.parse().ok().map(Relation::Variant)
    }
}

/// Subscribes to a relation, takes changes for a while, and sometimes resumes after an epoch.
pub fn follow(client: &mut Client) {
    let (name, relation) = match client.random.below(8) {
        0 => (format!("c{}", client.random.below(NAMES)), None),
        1 => ("worse".to_owned(), Some(Relation::Worse)),
        _ => {
            let relation = STEADY[client.random.below(STEADY.len() as u64) as usize];
            (relation.name().to_owned(), Some(relation))
        }
    };
    let policy = match client.random.below(4) {
        0 => Policy::Disconnect,
        // A plain view keeps no rows to begin with again.
        1 if relation != Some(Relation::Rich) => Policy::Resync,
        _ => Policy::Block,
    };
    let options = SubscribeOptions::new().policy(policy).epochs(client.random.below(40) + 1);
    let mut replica = Replica::default();
    let after = client.committed();
    client.does(format!("subscribe to {name}, {policy:?}"));
    let subscribed = match client.random.below(3) {
        0 => client.engine.session().execute(&format!("SUBSCRIBE {name}")).map(|mut outcomes| {
            match outcomes.pop() {
                Some(Outcome::Subscribed(subscription)) => subscription,
                other => panic!("{other:?}"),
            }
        }),
        _ => client.engine.subscribe_with(&name, options),
    };
    let mut subscription = match subscribed {
        Ok(subscription) => subscription,
        Err(error) => return excuse(client, relation, &error),
    };
    let mut until = None;
    let goes_on = relation.is_some_and(|it| it != Relation::Rich && it != Relation::Worse)
        && client.random.below(2) == 0;
    loop {
        let what = format!("{name}, {policy:?}, begun behind {until:?}");
        let ended = take(client, &mut subscription, &mut replica, &what);
        until = ended.unwrap_or_else(|error| {
            excuse(client, relation, &error);
            None
        });
        // It must have had a change to know where it is.
        let (true, Some(complete)) = (goes_on, until) else { break };
        if client.random.below(2) == 0 || replica.seen.is_empty() {
            break;
        }
        client.does(format!("subscribe to {name} behind {complete}"));
        drop(subscription);
        subscription = match client.engine.subscribe_with(&name, options.after(complete)) {
            Ok(subscription) => subscription,
            Err(error) => {
                excuse(client, relation, &error);
                break;
            }
        };
        client.history.count("subscriptions that go on");
    }
    let Some(relation) = relation.or_else(|| replica.variant()) else { return };
    client.history.count("subscriptions");
    client.history.followed.push(Followed { relation, after, seen: replica.seen, until });
}

/// Takes changes for a while. Returns the epoch up to which all have come, if the subscription has not ended.
fn take(
    client: &mut Client,
    subscription: &mut Subscription,
    replica: &mut Replica,
    name: &str,
) -> Result<Option<u64>> {
    for _ in 0..client.random.below(12) {
        let pause = Duration::from_millis(client.random.below(8));
        client.does(format!("take changes of {name}"));
        if let Some(change) = subscription.next_timeout(pause)? {
            apply(client, replica, &change, name);
        }
        if subscription.is_over() {
            return Ok(None);
        }
        if client.random.below(3) == 0 {
            client.does("be slow");
            std::thread::sleep(pause);
        }
    }
    // A client that has waited for an epoch finds all of its changes.
    let complete = client.committed();
    client.does(format!("wait for {complete}"));
    client.engine.wait(complete)?;
    while let Some(change) = subscription.try_next()? {
        apply(client, replica, &change, name);
    }
    let last = replica.seen.last().map_or(0, |seen| seen.epoch);
    Ok((!subscription.is_over()).then_some(complete.max(last)))
}

fn apply(client: &mut Client, replica: &mut Replica, change: &Change, name: &str) {
    client.history.count("changes");
    if let Err(problem) = replica.apply(change) {
        client.problem(format!("a subscription to {name}: {problem}"));
    }
}

/// Counts why a subscription ended or could not begin, if that can be.
fn excuse(client: &mut Client, relation: Option<Relation>, error: &Error) {
    match error {
        Error::Behind { .. } => client.history.count("Behind"),
        Error::Gone { .. } => client.history.count("Gone"),
        Error::Failed { .. } if relation == Some(Relation::Worse) => client.history.count("Failed"),
        // It has begun, and its dataflow reads one that has failed.
        Error::Data { message, .. }
            if relation == Some(Relation::Worse) && message.contains("has failed") =>
        {
            client.history.count("Failed");
        }
        Error::Sql { message, .. } if relation.is_none() || relation == Some(Relation::Worse) => {
            client.excuse(message);
        }
        error => client.fail("a subscription", error),
    }
}

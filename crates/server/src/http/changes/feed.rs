//! Changes of a relation, part by part.

use std::sync::Arc;

use alluvium::{Change, Subscription};
use futures::StreamExt;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::HEARTBEAT;
use super::part::{Part, Parts};
use crate::http::authenticate::{is_known, unknown};
use crate::http::problem::Problem;
use crate::http::service::Http;
use crate::identity::Identity;
use crate::traffic::{Protocol, Subscribed};

/// The changes of a relation, until it is dropped, its client does not keep up or is not known any more, or the server stops.
pub(super) struct Feed {
    subscription: Subscription,
    /// Those of the last change that were not sent.
    parts: Option<Parts>,
    http: Arc<Http>,
    stops: watch::Receiver<bool>,
    /// Whose they are, and when that is looked at again.
    identity: Identity,
    checks: Interval,
    is_over: bool,
    _counted: Subscribed,
}

impl Feed {
    /// The changes of a subscription, of which the first is there, if there is one.
    pub(super) fn new(
        subscription: Subscription,
        first: Option<Change>,
        http: Arc<Http>,
        identity: Identity,
    ) -> Self {
        let mut checks = interval(HEARTBEAT);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (parts, stops) = (first.map(Parts::new), http.stops.clone());
        let _counted = http.shared.traffic(Protocol::Http).subscribe();
        Self { subscription, parts, http, stops, identity, checks, is_over: false, _counted }
    }

    /// The next part; waits for it. After an error there is none.
    ///
    /// It may be dropped while it waits, and called again.
    pub(super) async fn next(&mut self) -> Option<Result<Part, Problem>> {
        loop {
            if self.is_over || *self.stops.borrow() {
                return None;
            }
            if self.parts.is_some() && !is_known(&self.http, &self.identity) {
                self.is_over = true;
                return Some(Err(unknown(&self.http)));
            }
            if let Some(part) = self.parts.as_mut().and_then(Parts::next) {
                self.is_over = part.is_err();
                return Some(part);
            }
            self.parts = None;
            let next = tokio::select! {
                next = StreamExt::next(&mut self.subscription) => next,
                _ = self.stops.wait_for(|stops| *stops) => None,
                _ = self.checks.tick() => match is_known(&self.http, &self.identity) {
                    true => continue,
                    false => {
                        self.is_over = true;
                        return Some(Err(unknown(&self.http)));
                    }
                },
            };
            match next {
                Some(Ok(change)) => self.parts = Some(Parts::new(change)),
                Some(Err(error)) => {
                    self.is_over = true;
                    return Some(Err(Problem::of(&error)));
                }
                None => self.is_over = true,
            }
        }
    }
}

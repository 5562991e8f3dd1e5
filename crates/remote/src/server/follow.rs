//! The call of who follows.

use std::time::Duration;

use alluvium_storage::journal::Group;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;
use tonic::Status;

use super::journals::Journals;
use super::tail::Watching;
use crate::messages::{From, News, PIECE, Records, framed, pieces};
use crate::refusal::failed;

/// How often a follower hears of a journal to which nothing is written.
const PULSE: Duration = Duration::from_secs(1);

/// Sends the records that are asked for, and then those that become durable, until the follower has gone or the server ends. Runs on a thread
/// that may block.
pub(super) fn serve(
    journals: &Journals,
    runtime: &Handle,
    from: &From,
    to: &Sender<Result<Records, Status>>,
) {
    if let Err(refused) = send(journals, runtime, from, to) {
        // Who has asked may have gone.
        let _ = to.blocking_send(Err(refused));
    }
}

fn send(
    journals: &Journals,
    runtime: &Handle,
    from: &From,
    to: &Sender<Result<Records, Status>>,
) -> Result<(), Status> {
    let mut watching = journals.watch(&from.name, &from.identity)?;
    let mut sending = Sending { to, next: from.first };
    // The follower hears at once where the journal is.
    let mut is_due = true;
    loop {
        let told = *watching.told.borrow_and_update();
        if told.is_last || to.is_closed() {
            return Ok(());
        }
        if sending.next < told.news.end {
            sending.send_upto(&watching, (journals, from), told.news)?;
        } else if is_due {
            sending.send(None, told.news);
        }
        if sending.next < told.news.end {
            is_due = false;
            continue;
        }
        let changed = runtime.block_on(async { timeout(PULSE, watching.told.changed()).await });
        is_due = match changed {
            // The journal is gone with its server.
            Ok(Err(_)) => return Ok(()),
            Ok(Ok(())) => false,
            Err(_) => true,
        };
    }
}

/// Records on their way to a follower.
struct Sending<'a> {
    to: &'a Sender<Result<Records, Status>>,
    /// The position of the next one.
    next: u64,
}

impl Sending<'_> {
    /// Sends records up to the end that the news tell of, or some of them.
    fn send_upto(
        &mut self,
        watching: &Watching,
        (journals, from): (&Journals, &From),
        news: News,
    ) -> Result<(), Status> {
        if let Some(group) = watching.group(self.next, news.end) {
            self.send(Some(group), news);
            return Ok(());
        }
        let mut group = Group::new(self.next);
        for record in journals.replay(&from.name, &from.identity, self.next)? {
            let (position, record) = record.map_err(|error| failed(&error))?;
            if position.0 >= news.end {
                break;
            }
            group.add(&record, 0);
            if group.records().len() >= PIECE / 2 {
                let next = group.end();
                if !self.send(Some(group), news) {
                    return Ok(());
                }
                group = Group::new(next);
            }
        }
        if !group.is_empty() {
            self.send(Some(group), news);
        }
        Ok(())
    }

    /// Sends a group, or only news. False once nobody takes it.
    fn send(&mut self, group: Option<Group>, news: News) -> bool {
        let Some(group) = group else {
            let records = Records { piece: None, news: Some(news) };
            return self.to.blocking_send(Ok(records)).is_ok();
        };
        self.next = group.end();
        let (header, bytes) = framed(&group);
        let mut news = Some(news);
        pieces(header, bytes).all(|piece| {
            let records = Records { piece: Some(piece), news: news.take() };
            self.to.blocking_send(Ok(records)).is_ok()
        })
    }
}

//! The call of who reads.

use alluvium_storage::journal::Group;
use tokio::sync::mpsc::Sender;
use tonic::Status;

use super::journals::Journals;
use crate::messages::{From, PIECE, Records, framed, pieces};
use crate::refusal::failed;

/// Sends the durable records that are asked for, as fast as they are taken. Runs on a thread that may block.
pub(super) fn serve(journals: &Journals, from: &From, to: &Sender<Result<Records, Status>>) {
    if let Err(refused) = send(journals, from, to) {
        // Who has asked may have gone.
        let _ = to.blocking_send(Err(refused));
    }
}

fn send(
    journals: &Journals,
    from: &From,
    to: &Sender<Result<Records, Status>>,
) -> Result<(), Status> {
    let mut group = Group::new(from.first);
    for record in journals.replay(&from.name, &from.identity, from.first)? {
        if group.end() >= from.end {
            break;
        }
        let record = match record {
            Ok((_, record)) => record,
            Err(error) => {
                // Those before it are whole.
                send_group(&group, to);
                return Err(failed(&error));
            }
        };
        group.add(&record, 0);
        if group.records().len() >= PIECE / 2 {
            if !send_group(&group, to) {
                return Ok(());
            }
            group = Group::new(group.end());
        }
    }
    send_group(&group, to);
    Ok(())
}

/// Sends a group, if it has records. False once nobody takes it.
fn send_group(group: &Group, to: &Sender<Result<Records, Status>>) -> bool {
    if group.is_empty() {
        return true;
    }
    let (header, bytes) = framed(group);
    let records = |piece| Records { piece: Some(piece), news: None };
    pieces(header, bytes).all(|piece| to.blocking_send(Ok(records(piece))).is_ok())
}

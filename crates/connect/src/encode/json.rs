//! Changes as objects of JSON.

use super::Change;

/// A message that is a change.
pub(super) fn change(change: Change<'_>, to: &mut Vec<u8>) {
    to.clear();
    match change {
        Change::Weighted { epoch, weight, row } => {
            let head = format!("{{\"epoch\":{epoch},\"weight\":{weight}");
            to.extend_from_slice(head.as_bytes());
            let inside = row.strip_prefix(b"{").unwrap_or(row);
            if inside != b"}" {
                to.push(b',');
            }
            to.extend_from_slice(inside);
        }
        Change::Debezium { epoch, before, after, operation } => {
            to.extend_from_slice(b"{\"before\":");
            to.extend_from_slice(before.unwrap_or(b"null"));
            to.extend_from_slice(b",\"after\":");
            to.extend_from_slice(after.unwrap_or(b"null"));
            let rest = format!(",\"op\":\"{operation}\",\"source\":{{\"epoch\":{epoch}}}}}");
            to.extend_from_slice(rest.as_bytes());
        }
    }
}

//! Bytes that are no messages.

use std::io::{Read, Write};
use std::time::Duration;

use super::served::{Served, field, message, read_until_ready, served, startup};

/// Writes bytes on a connection and reads what comes until it is closed.
fn answer(served: &Served, is_logged_in: bool, bytes: &[u8]) -> Vec<u8> {
    let mut stream = if is_logged_in { served.raw_logged_in() } else { served.raw() };
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    // The server may have closed it before all was written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn still_serves(served: &Served) {
    served.with_client(async |client| client.batch_execute("SELECT 1").await.expect("an answer"));
}

#[test]
fn lengths_that_cannot_be_end_the_connection() {
    let served = served();
    for (length, code) in [
        ([0x7f, 0xff, 0xff, 0xff], "54000"),
        ([0xff, 0xff, 0xff, 0xff], "08P01"),
        ([0, 0, 0, 3], "08P01"),
        ([0x80, 0, 0, 0], "08P01"),
    ] {
        let mut bytes = vec![b'Q'];
        bytes.extend(length);
        bytes.extend([b'x'; 100]);
        let told = answer(&served, true, &bytes);
        assert_eq!(told.first(), Some(&b'E'), "{length:?}");
        assert_eq!(field(&told[5..], b'C').as_deref(), Some(code), "{length:?}");
        answer(&served, false, &length);
    }
    still_serves(&served);
}

#[test]
fn counts_that_do_not_fit_end_the_connection() {
    let served = served();
    for (kind, body) in [
        (b'P', &b"\0SELECT 1\0\xff\xff"[..]),
        (b'B', b"\0\0\xff\xff"),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff"),
        (b'Q', b"SELECT 1"),
        (b'D', b"Z\0"),
        (b'E', b"\0"),
        (b'~', b""),
    ] {
        let told = answer(&served, true, &message(kind, body));
        assert_eq!(told.first(), Some(&b'E'), "{}", kind.escape_ascii());
    }
    still_serves(&served);
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let served = served();
    let told = answer(&served, true, &message(b'Q', b"SELECT '\xff'\0"));
    assert_eq!(field(&told[5..], b'S').as_deref(), Some("FATAL"));
    still_serves(&served);
}

#[test]
fn noise_ends_connections_and_nothing_else() {
    let served = served();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..400 {
        let mut bytes: Vec<u8> = (0..random.usize(1..400)).map(|_| random.u8(..)).collect();
        if round % 2 == 0 {
            // Noise that begins as a message of some length does.
            let kinds = b"QPBDESHXCcdfp";
            let kind = kinds[random.usize(..kinds.len())];
            bytes = message(kind, &bytes);
        }
        answer(&served, round % 4 < 2, &bytes);
    }
    still_serves(&served);
}

#[test]
fn connections_may_vanish_at_every_byte() {
    let served = served();
    let mut conversation = startup(&[("user", "someone")]);
    conversation.extend(message(b'Q', b"CREATE TABLE IF NOT EXISTS t (k BIGINT)\0"));
    conversation.extend(message(b'P', b"s\0INSERT INTO t VALUES ($1)\0\0\0"));
    conversation.extend(message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x011\0\0"));
    conversation.extend(message(b'E', b"\0\0\0\0\0"));
    conversation.extend(message(b'S', b""));
    for length in 0..conversation.len() {
        let mut stream = served.raw();
        stream.write_all(&conversation[..length]).expect("a part");
    }
    served.wait_for_clients(0);
    still_serves(&served);
}

#[test]
fn messages_out_of_place_do_no_harm() {
    let served = served();
    let mut stream = served.raw_logged_in();
    // What is left of a COPY, and a Sync.
    for kind in [b'd', b'c', b'f'] {
        stream.write_all(&message(kind, b"x\0")[..]).expect("a message");
        if kind == b'c' {
            break;
        }
    }
    still_serves(&served);
    let mut stream = served.raw_logged_in();
    stream.write_all(&message(b'E', b"none\0\0\0\0\0")).expect("a message");
    stream.write_all(&message(b'Q', b"SELECT 1\0")).expect("a message that is skipped");
    stream.write_all(&message(b'S', b"")).expect("a message");
    let kinds: Vec<u8> = read_until_ready(&mut stream).iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, b"EZ");
}

//! Logins that have failed, by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long the first failed login of an address waits for its answer; each further one waits twice as long.
const FIRST: Duration = Duration::from_millis(100);
/// How long a failed login is remembered.
const MEMORY: Duration = Duration::from_secs(10 * 60);
/// Of how many addresses logins are remembered; then those of the address that is silent for the longest time are forgotten.
const MOST: usize = 4_096;

/// Slows down who guesses passwords. It has no thread: the task of a failed login sleeps before it answers.
pub(crate) struct Guesses {
    /// The longest time that an answer waits.
    most: Duration,
    failed: Mutex<HashMap<Option<IpAddr>, Failed>>,
}

/// The failed logins of an address.
struct Failed {
    count: u32,
    last: Instant,
}

impl Guesses {
    /// Answers wait for at most so long.
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, failed: Mutex::default() }
    }

    /// A login from an address has failed: its answer has to wait so long. The sockets of this machine have no address.
    pub(crate) fn fail(&self, address: Option<IpAddr>, now: Instant) -> Duration {
        let address = address.map(network);
        let failed = &mut *self.failed.lock();
        if failed.len() >= MOST && !failed.contains_key(&address) {
            failed.retain(|_, failed| now.duration_since(failed.last) < MEMORY);
            let silent = failed.iter().min_by_key(|(_, failed)| failed.last);
            if let Some(silent) = silent.map(|(silent, _)| *silent).filter(|_| failed.len() >= MOST)
            {
                failed.remove(&silent);
            }
        }
        let of_address = failed.entry(address).or_insert(Failed { count: 0, last: now });
        if now.duration_since(of_address.last) >= MEMORY {
            of_address.count = 0;
        }
        *of_address = Failed { count: of_address.count.saturating_add(1), last: now };
        let doubled = 1_u32.checked_shl(of_address.count - 1).unwrap_or(u32::MAX);
        FIRST.saturating_mul(doubled).min(self.most)
    }
}

/// The addresses that one client may have: in version 6 a network of 64 bits.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_longer_up_to_a_limit() {
        let guesses = Guesses::new(Duration::from_secs(1));
        let now = Instant::now();
        let address = Some(IpAddr::from([10, 0, 0, 1]));
        let waits: Vec<_> = (0..6).map(|_| guesses.fail(address, now).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(guesses.fail(None, now).as_millis(), 100);
        assert_eq!(guesses.fail(address, now + MEMORY).as_millis(), 100);
        for _ in 0..100 {
            assert!(guesses.fail(address, now + MEMORY) <= Duration::from_secs(1));
        }
    }

    #[test]
    fn neighbours_in_version_6_are_one_client() {
        let guesses = Guesses::new(Duration::from_secs(1));
        let now = Instant::now();
        let address = |text: &str| text.parse::<IpAddr>().ok();
        guesses.fail(address("2001:db8::1"), now);
        assert_eq!(guesses.fail(address("2001:db8::2"), now).as_millis(), 200);
        assert_eq!(guesses.fail(address("2001:db8:0:1::1"), now).as_millis(), 100);
        guesses.fail(address("::ffff:10.0.0.1"), now);
        assert_eq!(guesses.fail(address("10.0.0.1"), now).as_millis(), 200);
    }

    #[test]
    fn addresses_without_number_take_no_more_memory() {
        let guesses = Guesses::new(Duration::from_secs(1));
        let now = Instant::now();
        for number in 0..20_000 {
            let later = now + Duration::from_millis(u64::from(number));
            guesses.fail(Some(IpAddr::V4(number.into())), later);
        }
        assert_eq!(guesses.failed.lock().len(), MOST);
    }
}

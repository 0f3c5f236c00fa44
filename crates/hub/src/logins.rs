//! Limits login attempts. After some wrong passwords an address must wait, longer each time, and it may have only a few attempts
//! at once, so others can log in. The counts belong to the address, so no client can lock a user out.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::limits::{
    DEVICE_LOGIN_FAILURES_FREE_PER_ADDRESS, LOGIN_FAILURES_FORGOTTEN_S, LOGIN_FAILURES_FREE,
    LOGIN_FAILURES_FREE_PER_ADDRESS, LOGIN_SOURCES_MAX, LOGIN_WAIT_S_MAX, LOGINS_PER_ADDRESS_MAX,
};
use parking_lot::Mutex;

/// The network that counts as one peer: an IPv4 address in any notation, or a /64 network of IPv6, the least that a subscriber
/// has (RFC 6177).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// Recent failed attempts, and running attempts.
#[derive(Debug)]
pub struct Logins {
    hasher: RandomState,
    state: Arc<Mutex<State>>,
    /// Failures of all logins of an address before it must wait.
    free_per_address: u32,
}

#[derive(Debug, Default)]
struct State {
    under_way: HashMap<IpAddr, usize>,
    failures: HashMap<Source, Failures>,
}

/// An address, alone or with the hash of a login. The login itself is not stored: it may be a password typed into the wrong field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Source(IpAddr, Option<u64>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// An attempt that may run. It counts for its address until it is dropped.
#[derive(Debug)]
pub struct LoginAttempt {
    state: Arc<Mutex<State>>,
    address: IpAddr,
    login: u64,
}

/// A refused attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginRefused {
    /// Too many wrong passwords.
    #[error("too many wrong passwords came from this address; try again in {seconds} s")]
    Wait {
        /// Time to wait.
        seconds: u32,
    },
    /// Too many attempts at once.
    #[error("{limit} logins of this address are being checked; try again in a second")]
    TooMany { limit: usize },
}

impl LoginRefused {
    /// Seconds after which an attempt is allowed again.
    pub fn retry_after_s(self) -> u32 {
        match self {
            Self::Wait { seconds } => seconds,
            Self::TooMany { .. } => 1,
        }
    }
}

impl Logins {
    pub fn of_users() -> Self {
        Self::with(LOGIN_FAILURES_FREE_PER_ADDRESS)
    }

    /// For devices. Many of them may share an address, and those with wrong credentials must not lock the others out.
    pub fn of_devices() -> Self {
        Self::with(DEVICE_LOGIN_FAILURES_FREE_PER_ADDRESS)
    }

    fn with(free_per_address: u32) -> Self {
        Self { hasher: RandomState::new(), state: Arc::default(), free_per_address }
    }

    /// Begins an attempt from an address at `now`, if it is allowed. All peers with an unknown address count as one.
    pub fn begin(
        &self,
        address: Option<IpAddr>,
        login: &str,
        now: Instant,
    ) -> Result<LoginAttempt, LoginRefused> {
        let unknown = Ipv6Addr::UNSPECIFIED.into();
        let (address, login) = (address.map_or(unknown, network), self.hasher.hash_one(login.to_lowercase()));
        let mut state = self.state.lock();
        let wait = state.wait(Source(address, Some(login)), LOGIN_FAILURES_FREE, now).max(state.wait(
            Source(address, None),
            self.free_per_address,
            now,
        ));
        if !wait.is_zero() {
            let seconds = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
            return Err(LoginRefused::Wait { seconds });
        }
        let under_way = state.under_way.entry(address).or_default();
        if *under_way >= LOGINS_PER_ADDRESS_MAX {
            return Err(LoginRefused::TooMany { limit: LOGINS_PER_ADDRESS_MAX });
        }
        *under_way += 1;
        Ok(LoginAttempt { state: Arc::clone(&self.state), address, login })
    }
}

impl LoginAttempt {
    /// Ends the attempt. A right password clears the failures of this login.
    pub fn end(self, is_right: bool, now: Instant) {
        let mut state = self.state.lock();
        let login = Source(self.address, Some(self.login));
        if is_right {
            state.failures.remove(&login);
        } else {
            state.failed(login, now);
            state.failed(Source(self.address, None), now);
        }
        drop(state);
    }
}

impl Drop for LoginAttempt {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(under_way) = state.under_way.get_mut(&self.address) {
            *under_way -= 1;
            if *under_way == 0 {
                state.under_way.remove(&self.address);
            }
        }
    }
}

impl State {
    fn wait(&self, source: Source, free: u32, now: Instant) -> Duration {
        let Some(failures) = self.failures.get(&source) else { return Duration::ZERO };
        let passed = now.saturating_duration_since(failures.last);
        pause(failures.count, free, passed)
    }

    fn failed(&mut self, source: Source, now: Instant) {
        if self.failures.len() >= LOGIN_SOURCES_MAX {
            self.forget(now);
        }
        let failures = self.failures.entry(source).or_insert(Failures { count: 0, last: now });
        let forgotten = Duration::from_secs(LOGIN_FAILURES_FORGOTTEN_S);
        let is_old = now.saturating_duration_since(failures.last) > forgotten;
        failures.count = if is_old { 1 } else { failures.count.saturating_add(1) };
        failures.last = now;
    }

    /// Makes room: forgets expired entries, or the older half.
    fn forget(&mut self, now: Instant) {
        let forgotten = Duration::from_secs(LOGIN_FAILURES_FORGOTTEN_S);
        self.failures.retain(|_, failures| now.saturating_duration_since(failures.last) <= forgotten);
        if self.failures.len() >= LOGIN_SOURCES_MAX {
            let mut times: Vec<Instant> = self.failures.values().map(|failures| failures.last).collect();
            let middle = times.len() / 2;
            let (_, median, _) = times.select_nth_unstable(middle);
            let median = *median;
            self.failures.retain(|_, failures| failures.last > median);
        }
    }
}

/// The remaining wait after a number of failures, given the time since the last one.
fn pause(count: u32, free: u32, passed: Duration) -> Duration {
    if count < free || passed > Duration::from_secs(LOGIN_FAILURES_FORGOTTEN_S) {
        return Duration::ZERO;
    }
    let doublings = (count - free).min(u64::BITS - 1);
    let whole = Duration::from_secs((1_u64 << doublings).min(LOGIN_WAIT_S_MAX));
    whole.saturating_sub(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    fn fail(logins: &Logins, from: Option<IpAddr>, login: &str, now: Instant) {
        logins.begin(from, login, now).unwrap().end(false, now);
    }

    #[test]
    fn wrong_passwords_make_only_their_address_wait() {
        let (logins, begin) = (Logins::of_users(), Instant::now());
        for _ in 0..LOGIN_FAILURES_FREE {
            fail(&logins, address(1), "admin", begin);
        }
        let refused = logins.begin(address(1), "ADMIN", begin).unwrap_err();
        assert_eq!(refused, LoginRefused::Wait { seconds: 1 });
        assert!(logins.begin(address(2), "admin", begin).is_ok(), "the administrator is elsewhere");
        assert!(logins.begin(address(1), "other", begin).is_ok(), "a colleague behind the same address");
        let later = begin + Duration::from_secs(1);
        fail(&logins, address(1), "admin", later);
        assert_eq!(logins.begin(address(1), "admin", later).unwrap_err().retry_after_s(), 2);
        let at_last = later + Duration::from_secs(2);
        logins.begin(address(1), "admin", at_last).unwrap().end(true, at_last);
        assert!(logins.begin(address(1), "admin", at_last).is_ok(), "a right password forgives");
    }

    #[test]
    fn many_logins_tried_from_one_address_make_it_wait() {
        let (logins, now) = (Logins::of_users(), Instant::now());
        for login in 0..LOGIN_FAILURES_FREE_PER_ADDRESS {
            fail(&logins, address(1), &login.to_string(), now);
        }
        assert!(logins.begin(address(1), "admin", now).is_err());
        assert!(logins.begin("::ffff:192.0.2.1".parse().ok(), "admin", now).is_err(), "the same address");
    }

    #[test]
    fn the_wait_doubles_up_to_its_bound_and_is_forgotten() {
        let waits: Vec<u64> = (4..14).map(|count| pause(count, 5, Duration::ZERO).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pause(u32::MAX, 5, Duration::ZERO).as_secs(), LOGIN_WAIT_S_MAX);
        assert_eq!(pause(100, 5, Duration::from_secs(LOGIN_FAILURES_FORGOTTEN_S + 1)), Duration::ZERO);
    }

    #[test]
    fn an_address_has_few_logins_under_way() {
        let (logins, now) = (Logins::of_users(), Instant::now());
        let held: Vec<_> =
            (0..LOGINS_PER_ADDRESS_MAX).map(|_| logins.begin(address(1), "admin", now).unwrap()).collect();
        let refused = logins.begin(address(1), "admin", now).unwrap_err();
        assert_eq!(refused, LoginRefused::TooMany { limit: LOGINS_PER_ADDRESS_MAX });
        assert!(logins.begin(address(2), "admin", now).is_ok());
        drop(held);
        assert!(logins.begin(address(1), "admin", now).is_ok());
        assert!(logins.state.lock().under_way.is_empty(), "an address without logins uses no memory");
    }

    #[test]
    fn remembered_failures_are_bounded() {
        let (logins, now) = (Logins::of_users(), Instant::now());
        for n in 0..LOGIN_SOURCES_MAX as u32 {
            let now = now + Duration::from_micros(u64::from(n));
            fail(&logins, Some(IpAddr::from(n.to_be_bytes())), "admin", now);
        }
        let remembered = logins.state.lock().failures.len();
        assert!(remembered <= LOGIN_SOURCES_MAX, "{remembered}");
    }
}

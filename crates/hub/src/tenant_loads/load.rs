//! The load of one tenant, within its limits.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use model::TokenBucket;
use parking_lot::Mutex;

use crate::registry::{TenantLimit, TenantLimits};

/// The load of a tenant. Its counts begin with the start of the server.
#[derive(Debug, Default)]
pub struct TenantLoad {
    connections: AtomicUsize,
    messages: AtomicU64,
    points: AtomicU64,
    /// How often something was held or refused because of a limit.
    limited: AtomicU64,
    /// Whether a rate is limited: without, nobody takes the lock.
    has_rates: AtomicBool,
    rates: Mutex<Rates>,
}

#[derive(Debug, Default)]
struct Rates {
    limits: TenantLimits,
    messages: Option<TokenBucket>,
    points: Option<TokenBucket>,
}

/// A connection of a tenant, until it is dropped.
#[derive(Debug)]
pub struct TenantConnection(Arc<TenantLoad>);

impl Drop for TenantConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Something that is above a limit of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct TenantLimitExceeded {
    pub limit: TenantLimit,
    pub value: u32,
    /// The time until the same may succeed; a second for a connection.
    pub wait: Duration,
}

impl fmt::Display for TenantLimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, name) = (self.value, self.limit.name());
        let what = match self.limit {
            TenantLimit::Messages => "messages a second of the devices",
            TenantLimit::Points => "points a second",
            TenantLimit::Connections => "connections of the devices",
            TenantLimit::Tables => "tables",
            TenantLimit::Series => "series",
            TenantLimit::Columns => "columns",
            TenantLimit::Sessions => "sessions",
            TenantLimit::Subscriptions => "subscriptions",
        };
        write!(f, "the limit of the tenant is {value} {what} ({name}); send less, or ask for a higher limit")
    }
}

impl TenantLoad {
    pub(super) fn with(limits: TenantLimits, now: Instant) -> Self {
        let load = Self::default();
        load.set_limits(limits, now);
        load
    }

    /// Sets other limits. A rate that changes begins with a full second.
    pub(super) fn set_limits(&self, limits: TenantLimits, now: Instant) {
        let bucket = |rate: Option<NonZeroU32>| rate.map(|rate| TokenBucket::new(rate, now));
        let mut rates = self.rates.lock();
        if rates.limits != limits {
            let [messages, points] =
                [TenantLimit::Messages, TenantLimit::Points].map(|limit| bucket(limits.value(limit)));
            *rates = Rates { limits, messages, points };
        }
        self.has_rates.store(rates.messages.is_some() || rates.points.is_some(), Ordering::Release);
    }

    /// Counts a connection.
    ///
    /// # Errors
    /// The tenant has as many as it may.
    pub fn connect(self: &Arc<Self>) -> Result<TenantConnection, TenantLimitExceeded> {
        // Before the limit is compared, so that two connections cannot both be the last one.
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let connection = TenantConnection(Arc::clone(self));
        let limit = self.rates.lock().limits.value(TenantLimit::Connections);
        match limit.filter(|limit| before >= limit.get() as usize) {
            Some(limit) => Err(self.exceeded(TenantLimit::Connections, limit, Duration::from_secs(1))),
            None => Ok(connection),
        }
    }

    /// Counts a message of a device.
    ///
    /// # Errors
    /// The tenant has sent as many messages or points as it may for now.
    pub fn take_message(&self, now: Instant) -> Result<(), TenantLimitExceeded> {
        if self.has_rates.load(Ordering::Acquire) {
            let mut rates = self.rates.lock();
            self.check_points_of(&mut rates, now)?;
            let Rates { limits, messages, .. } = &mut *rates;
            if let (Some(bucket), Some(value)) = (messages, limits.value(TenantLimit::Messages)) {
                bucket.take(now).map_err(|wait| self.exceeded(TenantLimit::Messages, value, wait))?;
            }
        }
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes back a message that comes again.
    pub fn give_back_message(&self) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        if self.has_rates.load(Ordering::Acquire)
            && let Some(bucket) = &mut self.rates.lock().messages
        {
            bucket.give_back();
        }
    }

    /// Looks whether the tenant may write points now.
    ///
    /// # Errors
    /// It has written as many as it may for now.
    pub fn check_points(&self, now: Instant) -> Result<(), TenantLimitExceeded> {
        match self.has_rates.load(Ordering::Acquire) {
            true => self.check_points_of(&mut self.rates.lock(), now),
            false => Ok(()),
        }
    }

    /// Counts points that are written.
    pub fn add_points(&self, points: usize, now: Instant) {
        self.points.fetch_add(points as u64, Ordering::Relaxed);
        if self.has_rates.load(Ordering::Acquire)
            && let Some(bucket) = &mut self.rates.lock().points
        {
            bucket.charge(points as u64, now);
        }
    }

    fn check_points_of(&self, rates: &mut Rates, now: Instant) -> Result<(), TenantLimitExceeded> {
        let Rates { limits, points, .. } = rates;
        let (Some(bucket), Some(value)) = (points, limits.value(TenantLimit::Points)) else { return Ok(()) };
        bucket.check(now).map_err(|wait| self.exceeded(TenantLimit::Points, value, wait))
    }

    fn exceeded(&self, limit: TenantLimit, value: NonZeroU32, wait: Duration) -> TenantLimitExceeded {
        self.limited.fetch_add(1, Ordering::Relaxed);
        TenantLimitExceeded { limit, value: value.get(), wait }
    }

    /// Connections, messages, points, and how often something was held or refused.
    pub(crate) fn counts(&self) -> [u64; 4] {
        let counters =
            [&self.messages, &self.points, &self.limited].map(|counter| counter.load(Ordering::Relaxed));
        let connections = self.connections.load(Ordering::Relaxed) as u64;
        [connections, counters[0], counters[1], counters[2]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(messages: u32, points: u32, connections: u32) -> TenantLimits {
        TenantLimits::default()
            .with(TenantLimit::Messages, NonZeroU32::new(messages))
            .with(TenantLimit::Points, NonZeroU32::new(points))
            .with(TenantLimit::Connections, NonZeroU32::new(connections))
    }

    #[test]
    fn each_limit_refuses_and_names_itself() {
        let now = Instant::now();
        let load = Arc::new(TenantLoad::with(limits(2, 10, 1), now));
        let connection = load.connect().unwrap();
        let refused = load.connect().unwrap_err().to_string();
        assert!(refused.contains("1 connections of the devices (connectionsMax)"), "{refused}");
        drop(connection);
        drop(load.connect().unwrap());
        load.take_message(now).unwrap();
        load.take_message(now).unwrap();
        let over = load.take_message(now).unwrap_err();
        assert_eq!((over.limit, over.wait), (TenantLimit::Messages, Duration::from_millis(500)));
        load.give_back_message();
        load.take_message(now).unwrap();
        load.add_points(25, now);
        let later = now + Duration::from_secs(1);
        let over = load.take_message(later).unwrap_err();
        assert_eq!((over.limit, over.wait), (TenantLimit::Points, Duration::from_millis(600)));
        assert!(load.check_points(later).is_err() && load.check_points(later + over.wait).is_ok());
        assert_eq!(load.counts(), [0, 2, 25, 4]);
    }

    #[test]
    fn a_tenant_without_limits_is_counted_and_other_limits_hold_at_once() {
        let now = Instant::now();
        let load = Arc::new(TenantLoad::with(TenantLimits::default(), now));
        (0..1_000).for_each(|_| load.take_message(now).unwrap());
        load.add_points(1_000_000, now);
        let _connections = [(); 10].map(|()| load.connect().unwrap());
        load.set_limits(limits(1, 0, 5), now);
        load.take_message(now).unwrap();
        assert!(load.take_message(now).is_err() && load.connect().is_err());
        load.set_limits(TenantLimits::default(), now);
        assert!(load.take_message(now).is_ok() && load.connect().is_ok());
        assert_eq!(load.counts()[..3], [10, 1_002, 1_000_000]);
    }
}

//! How many devices a device profile gives credentials in a second.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use model::TokenBucket;
use parking_lot::Mutex;
use uuid::Uuid;

/// Devices that get credentials from one profile in a second. Who has a provisioning key can add devices; each costs a transaction of
/// the registry and counts for the limits of its tenant.
pub(crate) const PROVISIONS_PER_PROFILE_PER_SECOND: NonZeroU32 = NonZeroU32::new(100).expect("not 0");

/// A bucket for each profile that has given credentials. There are at most as many as profiles.
#[derive(Debug, Default)]
pub(crate) struct ProvisionRates {
    buckets: Mutex<HashMap<Uuid, TokenBucket>>,
}

impl ProvisionRates {
    /// Counts one device.
    ///
    /// # Errors
    /// The profile has given credentials to too many devices: the time to wait.
    pub(crate) fn take(&self, profile: Uuid, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock();
        let new = || TokenBucket::new(PROVISIONS_PER_PROFILE_PER_SECOND, now);
        buckets.entry(profile).or_insert_with(new).take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_its_own_rate() {
        let (rates, now) = (ProvisionRates::default(), Instant::now());
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let most = PROVISIONS_PER_PROFILE_PER_SECOND.get();
        assert!((0..most).all(|_| rates.take(one, now).is_ok()));
        let wait = rates.take(one, now).unwrap_err();
        assert!(rates.take(other, now).is_ok());
        assert!(rates.take(one, now + wait).is_ok());
    }
}

//! What the subscriptions of each device take: one device cannot take the room of the others of its tenant.

use std::collections::HashMap;

use parking_lot::Mutex;
use uuid::Uuid;

use super::error::BrokerError;
use super::limits;
use model::topic::{group_of, levels};

/// Subscriptions of all sessions by device.
#[derive(Debug, Default)]
pub(super) struct DeviceSubscriptions {
    by_device: Mutex<HashMap<Uuid, Held>>,
}

/// Subscriptions of one device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Held {
    all: usize,
    /// Those that make matches dear, and their levels.
    wildcards: usize,
    wildcard_levels: usize,
}

impl DeviceSubscriptions {
    /// Counts a new subscription, unless a limit refuses it.
    pub(super) fn add(&self, device: Uuid, filter: &str) -> Result<(), BrokerError> {
        let mut by_device = self.by_device.lock();
        let held = by_device.get(&device).copied().unwrap_or_default();
        by_device.insert(device, held.with(filter)?);
        Ok(())
    }

    /// Counts a subscription that the engine has kept. A start of the server loses none.
    pub(super) fn add_stored(&self, device: Uuid, filter: &str) {
        let mut by_device = self.by_device.lock();
        let held = by_device.entry(device).or_default();
        *held = held.sum(Held::of(filter));
    }

    pub(super) fn remove(&self, device: Uuid, filter: &str) {
        let mut by_device = self.by_device.lock();
        let Some(held) = by_device.get_mut(&device) else { return };
        let of_filter = Held::of(filter);
        held.all -= of_filter.all;
        held.wildcards -= of_filter.wildcards;
        held.wildcard_levels -= of_filter.wildcard_levels;
        if *held == Held::default() {
            by_device.remove(&device);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_device.lock().is_empty()
    }
}

impl Held {
    fn of(filter: &str) -> Self {
        let (_, own) = group_of(filter);
        let tail = || levels(own).skip_while(|level| *level != "+").filter(|level| *level != "#");
        let (tail_levels, wildcards) = (tail().count(), tail().filter(|level| *level == "+").count());
        match wildcards > 1 || tail_levels > limits::WILDCARD_TAIL_LEVELS {
            true => Self { all: 1, wildcards: 1, wildcard_levels: tail_levels },
            false => Self { all: 1, wildcards: 0, wildcard_levels: 0 },
        }
    }

    fn sum(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            wildcards: self.wildcards + other.wildcards,
            wildcard_levels: self.wildcard_levels + other.wildcard_levels,
        }
    }

    fn with(self, filter: &str) -> Result<Self, BrokerError> {
        let next = self.sum(Self::of(filter));
        let (count_max, levels_max) =
            (limits::WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX, limits::WILDCARD_LEVELS_PER_DEVICE_MAX);
        let bounds = [
            (
                "subscriptions of one device",
                "SUBSCRIPTIONS_PER_DEVICE_MAX",
                self.all,
                next.all,
                limits::SUBSCRIPTIONS_PER_DEVICE_MAX,
            ),
            (
                "subscriptions of one device with several `+`",
                "WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX",
                self.wildcards,
                next.wildcards,
                count_max,
            ),
            (
                "levels after `+` in the subscriptions of one device",
                "WILDCARD_LEVELS_PER_DEVICE_MAX",
                self.wildcard_levels,
                next.wildcard_levels,
                levels_max,
            ),
        ];
        for (what, limit, before, actual, max) in bounds {
            // A device that is above a limit since the start may have what does not count there.
            if actual > max && actual > before {
                return Err(BrokerError::Limit { what, limit, max, actual });
            }
        }
        Ok(next)
    }
}

//! The keys that rules read.

use super::limits::KEYS_PER_PROFILE_MAX;

/// Where the value of a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySource {
    /// The telemetry of the device.
    TimeSeries,
    /// An attribute of the device in any scope.
    Attribute,
    /// A property of the device, such as its name.
    EntityField,
    /// A server attribute of the customer of the device.
    CustomerAttribute,
    /// A server attribute of the tenant of the device.
    TenantAttribute,
}

/// A key that rules read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Where its value comes from.
    pub source: KeySource,
    pub name: Box<str>,
}

/// The number of a key among the keys of a profile.
pub type KeyIndex = u8;

/// A set of keys of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySet(u128);

const _: () = assert!(KEYS_PER_PROFILE_MAX <= 128, "a set has a bit for each key");

impl KeySet {
    /// Without keys.
    pub const EMPTY: Self = Self(0);

    pub const fn add(&mut self, key: KeyIndex) {
        self.0 |= 1 << key;
    }

    /// The keys of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether both sets have a key in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no key.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

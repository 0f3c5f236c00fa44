//! The rules of all profiles.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use sensors::alarm_rules::{AlarmRules, KeySource};
use uuid::Uuid;

use crate::taps::WantedKeys;

/// The rules of one profile.
#[derive(Debug)]
pub(crate) struct ProfileRules {
    pub(super) tenant: Uuid,
    pub(super) profile: Uuid,
    pub(super) rules: AlarmRules,
    /// The keys of telemetry.
    pub(super) wanted: Arc<WantedKeys>,
}

/// The rules of all profiles that have some.
#[derive(Debug, Default)]
pub(crate) struct RuleBook {
    // A door reads it for every series that it looks up, and locks the map below only if it is above 0.
    count: AtomicUsize,
    profiles: RwLock<HashMap<Uuid, Arc<ProfileRules>>>,
    generation: AtomicU64,
    changes: Mutex<()>,
}

impl ProfileRules {
    /// The keys of telemetry.
    pub(crate) fn wanted(&self) -> &Arc<WantedKeys> {
        &self.wanted
    }

    /// The names of the keys of telemetry.
    pub(crate) fn telemetry(&self) -> Vec<String> {
        self.keys(KeySource::TimeSeries).map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether the rules read a key of a source.
    pub(super) fn reads(&self, source: KeySource) -> bool {
        self.rules.keys().iter().any(|key| key.source == source)
    }

    /// The keys of one source with their numbers.
    pub(super) fn keys(&self, source: KeySource) -> impl Iterator<Item = (u8, &str)> {
        let keys = self.rules.keys().iter().enumerate().filter(move |(_, key)| key.source == source);
        // The limit of keys fits a byte.
        keys.map(|(number, key)| (number as u8, &*key.name))
    }
}

impl RuleBook {
    /// The rules of a profile; `None` if it has none.
    pub(crate) fn of(&self, profile: Uuid) -> Option<Arc<ProfileRules>> {
        match self.count.load(Ordering::Acquire) {
            0 => None,
            _ => self.profiles.read().get(&profile).cloned(),
        }
    }

    /// Holds back other changes of profiles, so that the last rules are those of the registry.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.changes.lock()
    }

    /// Sets the rules of a profile. Returns whether they differ from those before.
    pub(crate) fn set(&self, tenant: Uuid, profile: Uuid, rules: AlarmRules) -> bool {
        let mut profiles = self.profiles.write();
        if profiles.get(&profile).map_or(rules.is_empty(), |old| old.rules == rules) {
            return false;
        }
        if rules.is_empty() {
            profiles.remove(&profile);
        } else {
            let generation = self.generation.fetch_add(1, Ordering::Relaxed);
            let keys = rules.keys().iter().enumerate();
            let telemetry = keys.filter(|(_, key)| key.source == KeySource::TimeSeries);
            let numbers = telemetry.map(|(number, key)| (key.name.clone(), number as u16));
            let wanted = Arc::new(WantedKeys::new(numbers, generation));
            profiles.insert(profile, Arc::new(ProfileRules { tenant, profile, rules, wanted }));
        }
        self.count.store(profiles.len(), Ordering::Release);
        true
    }

    /// Whether the rules of a profile of a tenant read attributes of customers or of the tenant.
    pub(crate) fn reads_owners(&self, tenant: Uuid) -> bool {
        if self.is_empty() {
            return false;
        }
        let reads = |rules: &Arc<ProfileRules>| {
            rules.reads(KeySource::CustomerAttribute) || rules.reads(KeySource::TenantAttribute)
        };
        self.profiles.read().values().any(|rules| rules.tenant == tenant && reads(rules))
    }

    /// Whether no profile has rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The rules of all profiles that have some.
    pub(crate) fn all(&self) -> Vec<Arc<ProfileRules>> {
        self.profiles.read().values().cloned().collect()
    }

    /// Forgets the rules of a tenant.
    pub(crate) fn forget_tenant(&self, tenant: Uuid) {
        let mut profiles = self.profiles.write();
        profiles.retain(|_, rules| rules.tenant != tenant);
        self.count.store(profiles.len(), Ordering::Release);
    }
}

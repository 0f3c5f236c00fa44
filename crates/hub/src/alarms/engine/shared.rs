//! The state that the engine shares with the hub.

use std::sync::Arc;

use kv::{KeyValueStore, KvError};
use model::{SeriesId, SeriesKey, Timestamp};
use sensors::alarm_rules::{KeySource, Observed};
use store::Store;

use super::super::store::AlarmStore;
use super::inbox::Inbox;
use super::limits::DURABLE_PAUSE;
use super::rule_book::{ProfileRules, RuleBook};
use crate::attributes::{AttributeError, AttributeScope, Owner, Scope, read};
use crate::metrics::Metrics;
use crate::registry::{Device, EntityId, Registry};
use crate::taps::Tap;
use crate::thread_end::ThreadEnd;

/// The state that the engine shares with the hub.
pub(crate) struct Shared {
    pub(crate) kv: Arc<dyn KeyValueStore>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) alarms: Arc<AlarmStore>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) book: Arc<RuleBook>,
    pub(crate) metrics: Arc<Metrics>,
    /// The clock of the server.
    pub(crate) now: fn() -> Timestamp,
}

impl Shared {
    /// The series of a device, if the device has reported.
    pub(super) fn series(&self, device: &Device) -> Option<SeriesId> {
        let key = SeriesKey::device(&device.profile.table, &device.name).ok()?;
        self.store.find_series(&key)
    }

    /// Waits until a batch of keys is durable. Returns whether it is; it may not be when the hub closes.
    pub(super) fn is_durable(&self, sequence: kv::Sequence) -> Result<bool, ThreadEnd> {
        loop {
            let progress = self.kv.progress();
            if progress.durable >= sequence {
                return Ok(true);
            }
            if progress.sealed {
                let cause = self.kv.status().sealed.unwrap_or_else(|| "a write failed".to_owned());
                return Err(ThreadEnd::failed(KvError::Sealed { cause }));
            }
            if self.tap.is_stopped() {
                return Ok(false);
            }
            std::thread::sleep(DURABLE_PAUSE);
        }
    }

    /// Waits until all rows that the store has are durable.
    pub(super) fn wait_for_rows(&self) -> Result<(), ThreadEnd> {
        let appended = self.store.progress().appended;
        loop {
            let progress = self.store.progress();
            if progress.durable >= appended {
                return Ok(());
            }
            if progress.sealed || self.tap.is_stopped() {
                return Err(ThreadEnd::Asked);
            }
            std::thread::sleep(DURABLE_PAUSE);
        }
    }

    /// The attributes that rules read: of the device, its customer and its tenant.
    pub(super) fn attributes(
        &self,
        device: &Device,
        rules: &ProfileRules,
    ) -> Result<Vec<(u8, Option<Observed>)>, ThreadEnd> {
        // A server attribute hides a shared one of the same key, and this one a client attribute.
        let scopes = [Scope::Client, Scope::Shared, Scope::Server];
        let mut found = self.attributes_of(device.into(), &scopes, rules, KeySource::Attribute)?;
        let owners = [
            (KeySource::CustomerAttribute, device.customer.map(EntityId::customer)),
            (KeySource::TenantAttribute, Some(EntityId::tenant(device.tenant))),
        ];
        for (source, owner) in owners.into_iter().filter(|(source, _)| rules.reads(*source)) {
            let entity = owner.and_then(|owner| self.registry.entity(device.tenant, owner).ok());
            match &entity {
                Some(entity) => {
                    found.extend(self.attributes_of(entity.into(), &[Scope::Server], rules, source)?);
                }
                None => found.extend(rules.keys(source).map(|(number, _)| (number, None))),
            }
        }
        Ok(found)
    }

    /// The attributes of an entity that the rules read of one source. Those of a later scope hide those before.
    fn attributes_of(
        &self,
        owner: Owner<'_>,
        scopes: &[Scope],
        rules: &ProfileRules,
        source: KeySource,
    ) -> Result<Vec<(u8, Option<Observed>)>, ThreadEnd> {
        let (numbers, names): (Vec<u8>, Vec<String>) =
            rules.keys(source).map(|(number, name)| (number, name.to_owned())).unzip();
        let mut found: Vec<(u8, Option<Observed>)> =
            numbers.into_iter().map(|number| (number, None)).collect();
        if found.is_empty() {
            return Ok(found);
        }
        for scope in scopes {
            let attributes = match read(&*self.kv, AttributeScope { owner, scope: *scope }, Some(&names)) {
                Ok(attributes) => attributes,
                Err(AttributeError::Kv(error)) => return Err(ThreadEnd::failed(error)),
                Err(error) => {
                    tracing::warn!(%owner, %error, "alarm rules continue without attributes");
                    continue;
                }
            };
            for attribute in attributes {
                if let Some(at) = names.iter().position(|name| **name == *attribute.key) {
                    found[at].1 = Some(Observed { ts: attribute.ts, value: attribute.value });
                }
            }
        }
        Ok(found)
    }
}

//! Devices in a data directory on which no server runs.

use std::sync::Arc;

use anyhow::Context;
use hub::registry::{BulkDevices, Credentials, Device, PageRequest};
use uuid::Uuid;

use super::registrar::{
    Added, BulkAdd, BulkAdded, Details, Listed, NewDevice, Registrar, no_device, no_token,
};
use crate::data_directory::LockedRegistry;
use model::calendar::seconds_of_millis;

/// The devices of a tenant in a locked registry.
pub(super) struct OfflineDevices {
    locked: LockedRegistry,
    tenant: Uuid,
}

impl OfflineDevices {
    pub(super) fn new(locked: LockedRegistry, tenant: Uuid) -> Self {
        Self { locked, tenant }
    }

    fn device(&self, name: &str) -> anyhow::Result<Arc<Device>> {
        let found = self.locked.registry.device_by_name(self.tenant, name);
        found.ok_or_else(|| no_device(name))
    }
}

impl Registrar for OfflineDevices {
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<Added> {
        let NewDevice { name, profile, token, gateway } = *new;
        let new = hub::registry::NewDevice { name, profile, token, gateway, ..Default::default() };
        let added = self.locked.registry.add_device(self.tenant, new)?;
        let token = added.credentials.token().context("BUG: a device was added without an access token")?;
        Ok(Added { token: token.to_string(), continues: false })
    }

    fn add_many(&mut self, many: &BulkAdd<'_>) -> anyhow::Result<BulkAdded> {
        let bulk = BulkDevices {
            count: many.count as usize,
            start_index: 0,
            prefix: many.prefix,
            token_prefix: many.token_prefix,
            profile: many.profile,
            existing_ok: many.existing_ok,
        };
        let devices = self.locked.registry.add_devices(self.tenant, bulk)?;
        let created = devices.iter().filter(|device| device.created).count() as u64;
        let token = |credentials: &Credentials| credentials.token().map(ToString::to_string);
        let tokens = devices.iter().filter(|_| many.list);
        let tokens = tokens.map(|it| (it.device.name.clone(), token(&it.credentials)));
        Ok(BulkAdded { created, existing: devices.len() as u64 - created, tokens: tokens.collect() })
    }

    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>> {
        let page_size = model::limits::PAGE_DEVICES_MAX;
        let mut all = Vec::new();
        for page in 0.. {
            let request = PageRequest { page, page_size, filter, ..PageRequest::default() };
            let found = self.locked.registry.devices_page(self.tenant, request, |_| true)?;
            for device in found.data {
                let found = self.locked.registry.credentials_of(device.id).filter(|_| with_tokens);
                all.push(Listed {
                    name: device.name.clone(),
                    profile: device.profile.name.clone(),
                    created: seconds_of_millis(device.created_at.micros().div_euclid(1_000)),
                    token: found.and_then(|found| found.token().map(ToString::to_string)),
                });
            }
            if !found.has_next {
                break;
            }
        }
        Ok(all)
    }

    fn details(&mut self, name: &str) -> anyhow::Result<Details> {
        let device = self.device(name)?;
        Ok(Details {
            id: device.id.to_string(),
            name: device.name.clone(),
            profile: device.profile.name.clone(),
            gateway: device.gateway,
            table: device.profile.table.name().to_owned(),
            durability: device.profile.durability.name().into(),
            created_ms: device.created_at.millis(),
            activity: None,
        })
    }

    fn delete(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        let deleted = self.locked.registry.delete_device(self.device(name)?.id)?;
        Ok(Some(deleted.profile.table.name().to_owned()))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> anyhow::Result<()> {
        self.locked.registry.rename_device(self.device(name)?.id, new_name)?;
        Ok(())
    }

    fn token(&mut self, name: &str) -> anyhow::Result<String> {
        let device = self.device(name)?;
        let found = self.locked.registry.credentials_of(device.id);
        let found = found.with_context(|| format!("BUG: the device \"{name}\" has no credentials"))?;
        let token = found.token().ok_or_else(|| no_token(name, found.kind().name()))?;
        Ok(token.to_string())
    }

    fn set_token(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<String> {
        Ok(self.locked.registry.set_token(self.device(name)?.id, token)?.to_string())
    }
}

//! Devices in the directory of a server that does not run.

use std::sync::Arc;

use anyhow::Context;
use hub::registry::{BulkDevices, Device, PageRequest, Registry};
use store_local::DiskLock;

use super::registrar::{Added, Details, Listed, Many, ManyAdded, NewDevice, Registrar, no_device};
use crate::cli::output::time_text;
use crate::registry::Alone;

/// The devices of such a registry.
pub(super) struct Stopped {
    registry: Registry,
    _alone: Box<dyn DiskLock>,
}

impl Stopped {
    pub(super) fn new(Alone { registry, lock }: Alone) -> Self {
        Self { registry, _alone: lock }
    }

    fn device(&self, name: &str) -> anyhow::Result<Arc<Device>> {
        let found = self.registry.device_by_name(self.registry.default_tenant(), name);
        found.ok_or_else(|| no_device(name))
    }
}

impl Registrar for Stopped {
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<Added> {
        let new = hub::registry::NewDevice { name: new.name, profile: new.profile, token: new.token };
        let added = self.registry.add_device(self.registry.default_tenant(), new)?;
        Ok(Added { token: added.token.to_string(), continues: false })
    }

    fn add_many(&mut self, many: &Many<'_>) -> anyhow::Result<ManyAdded> {
        let bulk = BulkDevices {
            count: many.count as usize,
            start_index: 0,
            prefix: many.prefix,
            token_prefix: many.token_prefix,
            profile: many.profile,
            existing_ok: many.existing_ok,
        };
        let devices = self.registry.add_devices(self.registry.default_tenant(), bulk)?;
        let created = devices.iter().filter(|device| device.created).count() as u64;
        let tokens =
            devices.iter().filter(|_| many.list).map(|it| (it.device.name.clone(), it.token.to_string()));
        Ok(ManyAdded { created, existing: devices.len() as u64 - created, tokens: tokens.collect() })
    }

    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>> {
        let tenant = self.registry.default_tenant();
        let page_size = model::limits::PAGE_DEVICES_MAX;
        let mut all = Vec::new();
        for page in 0.. {
            let found = self.registry.devices_page(tenant, PageRequest { page, page_size, filter })?;
            for device in found.data {
                let token = self.registry.credentials_of(device.id).filter(|_| with_tokens);
                all.push(Listed {
                    name: device.name.clone(),
                    profile: device.profile.name.clone(),
                    created: time_text(device.created_at.micros().div_euclid(1_000)),
                    token: token.map(|token| token.to_string()),
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
            table: device.profile.table.clone(),
            durability: device.profile.durability.name().into(),
            created_ms: device.created_at.millis(),
            activity: None,
        })
    }

    fn delete(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        let deleted = self.registry.delete_device(self.device(name)?.id)?;
        Ok(Some(deleted.profile.table.clone()))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> anyhow::Result<()> {
        self.registry.rename_device(self.device(name)?.id, new_name)?;
        Ok(())
    }

    fn token(&mut self, name: &str) -> anyhow::Result<String> {
        let device = self.device(name)?;
        let token = self.registry.credentials_of(device.id);
        Ok(token.with_context(|| format!("BUG: the device \"{name}\" has no access token"))?.to_string())
    }

    fn set_token(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<String> {
        Ok(self.registry.set_token(self.device(name)?.id, token)?.to_string())
    }
}

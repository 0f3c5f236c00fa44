//! Assets and their profiles.

use std::sync::Arc;

use model::name::check_tag_value;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use uuid::Uuid;

use super::asset::{Asset, AssetFields, AssetProfile};
use super::checks::{check_short, check_version, checked_info, over_limit};
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::{ASSET_PROFILES_PER_TENANT_MAX, ASSETS_PER_TENANT_MAX, DESCRIPTION_BYTES_MAX};
use super::system_time::now_ms;
use super::{file, save};
use crate::entity_id::{EntityId, EntityKind};

impl Registry {
    /// The asset with that name.
    pub fn asset_by_name(&self, tenant: Uuid, name: &str) -> Option<Arc<Asset>> {
        self.find_named(tenant, name)
    }

    /// Adds an asset. Waits for the disk.
    pub fn add_asset(&self, tenant: Uuid, fields: AssetFields<'_>) -> Result<Arc<Asset>, RegistryError> {
        let additional_info = checked(fields)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        self.check_asset(tenant, fields)?;
        let count = self.index.read().assets.len_of(tenant) + 1;
        over_limit("number of assets of the tenant", count, ASSETS_PER_TENANT_MAX)?;
        let asset = Asset {
            id: file::new_id(),
            tenant,
            customer: fields.customer,
            name: fields.name.to_owned(),
            profile: self.profile_of_asset(tenant, fields.profile)?,
            label: fields.label.map(Into::into),
            additional_info,
            created_at: now_ms(),
            version: 1,
        };
        self.store_asset(&mut writer, "add an asset", asset)
    }

    /// Changes an asset. Waits for the disk.
    pub fn change_asset(
        &self,
        tenant: Uuid,
        id: Uuid,
        fields: AssetFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Asset>, RegistryError> {
        let additional_info = checked(fields)?;
        let mut writer = self.writer.lock();
        let old = self.find::<Asset>(tenant, id)?;
        check_version("asset", &old.name, version, old.version)?;
        if old.name == fields.name {
            self.check_customer(tenant, fields.customer)?;
        } else {
            self.check_asset(tenant, fields)?;
        }
        let asset = Asset {
            customer: fields.customer,
            name: fields.name.to_owned(),
            profile: self.profile_of_asset(tenant, fields.profile)?,
            label: fields.label.map(Into::into),
            additional_info,
            version: old.version + 1,
            ..Asset::clone(&old)
        };
        self.store_asset(&mut writer, "change an asset", asset)
    }

    /// Assigns an asset to a customer, or to nobody. Waits for the disk.
    pub fn assign_asset(
        &self,
        tenant: Uuid,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Asset>, RegistryError> {
        let mut writer = self.writer.lock();
        let old = self.find::<Asset>(tenant, id)?;
        self.check_customer(tenant, customer)?;
        if old.customer == customer {
            return Ok(old);
        }
        let asset = Asset { customer, version: old.version + 1, ..Asset::clone(&old) };
        self.store_asset(&mut writer, "assign an asset", asset)
    }

    /// Deletes an asset with its relations. Waits for the disk.
    pub fn delete_asset(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Asset>, RegistryError> {
        let mut writer = self.writer.lock();
        let asset = self.find::<Asset>(tenant, id)?;
        let entity = EntityId::of(EntityKind::Asset, id);
        self.delete_row(&mut writer, "delete an asset", "asset", entity)?.assets.remove(id);
        Ok(asset)
    }

    /// The profile of assets that are added without one.
    pub fn default_asset_profile(&self, tenant: Uuid) -> Result<Arc<AssetProfile>, RegistryError> {
        let found = self.index.read().default_asset_profile(tenant).cloned();
        found.ok_or_else(|| RegistryError::unknown("tenant", tenant))
    }

    /// Adds an asset profile. Waits for the disk.
    pub fn add_asset_profile(
        &self,
        tenant: Uuid,
        name: &str,
        description: Option<&str>,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        let description = checked_description(name, description)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        self.check_is_free::<AssetProfile>(tenant, name)?;
        let count = self.index.read().asset_profiles.len_of(tenant) + 1;
        over_limit("number of asset profiles of the tenant", count, ASSET_PROFILES_PER_TENANT_MAX)?;
        let (id, name, created_at) = (file::new_id(), name.to_owned(), now_ms());
        let profile =
            AssetProfile { id, tenant, name, description, is_default: false, created_at, version: 1 };
        self.store_asset_profiles(&mut writer, "add an asset profile", [Arc::new(profile)])
    }

    /// Changes an asset profile. Waits for the disk.
    pub fn change_asset_profile(
        &self,
        tenant: Uuid,
        id: Uuid,
        name: &str,
        description: Option<&str>,
        version: Option<i64>,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        let description = checked_description(name, description)?;
        let mut writer = self.writer.lock();
        let old = self.find::<AssetProfile>(tenant, id)?;
        check_version("asset profile", &old.name, version, old.version)?;
        if old.name != name {
            self.check_is_free::<AssetProfile>(tenant, name)?;
        }
        let (name, version) = (name.to_owned(), old.version + 1);
        let changed = AssetProfile { name, description, version, ..AssetProfile::clone(&old) };
        self.store_asset_profiles(&mut writer, "change an asset profile", [Arc::new(changed)])
    }

    /// Makes an asset profile that of assets that are added without one. Waits for the disk.
    pub fn set_default_asset_profile(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        let mut writer = self.writer.lock();
        let (old, new) = (self.default_asset_profile(tenant)?, self.find::<AssetProfile>(tenant, id)?);
        if old.id == new.id {
            return Ok(new);
        }
        let with = |profile: &AssetProfile, is_default| {
            Arc::new(AssetProfile { is_default, version: profile.version + 1, ..profile.clone() })
        };
        let both = [with(&old, false), with(&new, true)];
        self.store_asset_profiles(&mut writer, "change the default asset profile", both)
    }

    /// Deletes an asset profile. Refuses the default one, and one that assets have. Waits for the disk.
    pub fn delete_asset_profile(&self, tenant: Uuid, id: Uuid) -> Result<Arc<AssetProfile>, RegistryError> {
        let mut writer = self.writer.lock();
        let profile = self.find::<AssetProfile>(tenant, id)?;
        let (what, name) = ("asset profile", profile.name.clone());
        if profile.is_default {
            let reason = format!("{name:?} is the default one; make another one the default first");
            return Err(RegistryError::Invalid { what, reason });
        }
        let count = self.index.read().assets.of(tenant).filter(|asset| asset.profile.id == id).count();
        if count > 0 {
            return Err(RegistryError::StillUsed { what, name, count, users: "assets" });
        }
        self.commit(&mut writer, "delete an asset profile", |transaction| {
            transaction.execute("DELETE FROM asset_profile WHERE id = ?1", [id]).map(drop)
        })?;
        self.index.write().asset_profiles.remove(id);
        Ok(profile)
    }

    fn check_asset(&self, tenant: Uuid, fields: AssetFields<'_>) -> Result<(), RegistryError> {
        self.check_customer(tenant, fields.customer)?;
        self.check_is_free::<Asset>(tenant, fields.name)
    }

    fn profile_of_asset(&self, tenant: Uuid, id: Option<Uuid>) -> Result<Arc<AssetProfile>, RegistryError> {
        match id {
            Some(id) => self.find(tenant, id),
            None => self.default_asset_profile(tenant),
        }
    }

    fn store_asset(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        asset: Asset,
    ) -> Result<Arc<Asset>, RegistryError> {
        let asset = Arc::new(asset);
        self.commit(writer, what, |transaction| save::asset(transaction, &asset))?;
        self.index.write().assets.put(Arc::clone(&asset));
        Ok(asset)
    }

    /// Stores profiles and returns the last one.
    fn store_asset_profiles<const N: usize>(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        profiles: [Arc<AssetProfile>; N],
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        self.commit(writer, what, |transaction| {
            profiles.iter().try_for_each(|profile| save::asset_profile(transaction, profile))
        })?;
        let mut index = self.index.write();
        profiles.iter().for_each(|profile| index.put_asset_profile(Arc::clone(profile)));
        let [.., last] = &profiles[..] else { unreachable!("BUG: there is a profile to store") };
        Ok(Arc::clone(last))
    }
}

/// Checks the fields, and returns the additional info as it is stored.
fn checked(fields: AssetFields<'_>) -> Result<Option<Box<str>>, RegistryError> {
    check_tag_value(fields.name)?;
    check_short("name", Some(fields.name))?;
    check_short("label", fields.label)?;
    checked_info(fields.additional_info)
}

fn checked_description(name: &str, description: Option<&str>) -> Result<Option<Box<str>>, RegistryError> {
    check_tag_value(name)?;
    let description = description.filter(|text| !text.is_empty());
    over_limit("length of the description in bytes", description.map_or(0, str::len), DESCRIPTION_BYTES_MAX)?;
    Ok(description.map(Into::into))
}

//! Profiles: the table and the durability of a type of devices.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::limits::TABLE_NAME_BYTES_MAX;
use model::name::check_tag_value;
use model::{Durability, TableName};
use parking_lot::MutexGuard;
use payload_schema::PayloadSchemas;
use rusqlite::Connection;
use uuid::Uuid;

use super::checks::{check_version, checked_json, over_limit};
use super::entity::{Profile, ProfileFields};
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::{DESCRIPTION_BYTES_MAX, PROFILE_DATA_BYTES_MAX, PROFILES_PER_TENANT_MAX};
use super::package_ids::PackageIds;
use super::provision_gateways::provisions_gateways;
use super::provision_terms::ProvisionTerms;
use super::system_time::now_ms;
use super::{file, save};
use crate::certificate::Certificate;
use crate::own_tables::{AUDIT_TABLE, DEAD_LETTER_TABLE};
use crate::topic_rights::TopicRights;

impl Registry {
    /// The profiles of a tenant, sorted by name.
    pub fn profiles(&self, tenant: Uuid) -> Vec<Arc<Profile>> {
        self.index.read().profiles.of(tenant).cloned().collect()
    }

    /// The profiles of all tenants.
    pub fn all_profiles(&self) -> Vec<Arc<Profile>> {
        self.index.read().profiles.all().cloned().collect()
    }

    /// The profiles of all tenants that may know clients with these certificates by an authority.
    pub fn profiles_of_chain(&self, chain: &[Certificate]) -> Vec<Arc<Profile>> {
        let index = self.index.read();
        let may_know = |profile: &&Arc<Profile>| {
            profile.provision.chain.as_ref().is_some_and(|terms| terms.may_have_issued(chain))
        };
        index.profiles.all().filter(may_know).cloned().collect()
    }

    /// The profile of that name.
    pub fn profile(&self, tenant: Uuid, name: &str) -> Option<Arc<Profile>> {
        self.find_named(tenant, name)
    }

    /// The profile of devices that are added without one.
    pub fn default_profile(&self, tenant: Uuid) -> Result<Arc<Profile>, RegistryError> {
        let found = self.index.read().default_profile(tenant).cloned();
        found.ok_or_else(|| RegistryError::unknown("tenant", tenant))
    }

    /// The profile with this key of provisioning, of any tenant.
    pub fn profile_by_provision_key(&self, key: &str) -> Option<Arc<Profile>> {
        self.index.read().profile_by_provision_key(key).cloned()
    }

    /// Adds a profile with the table of its devices. Waits for the disk.
    pub fn add_profile(
        &self,
        tenant: Uuid,
        name: &str,
        table: &str,
        durability: Durability,
    ) -> Result<Arc<Profile>, RegistryError> {
        check_profile_table(table)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        let table = TableName::new(&self.namespace(tenant), table)?;
        let fields = ProfileFields { name, ..ProfileFields::default() };
        let profile = self.new_profile(tenant, fields, table, durability)?;
        self.store_profile(&mut writer, "add a profile", Arc::new(profile))
    }

    /// Adds a profile whose devices write to a table that is named after it. Waits for the disk.
    pub fn create_profile(
        &self,
        tenant: Uuid,
        fields: ProfileFields<'_>,
    ) -> Result<Arc<Profile>, RegistryError> {
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        let taken = |name: &str| {
            check_profile_table(name).is_err()
                || self.index.read().profiles.of(tenant).any(|profile| profile.table.name() == name)
        };
        let table = TableName::new(&self.namespace(tenant), &free_table(fields.name, taken))?;
        let profile = self.new_profile(tenant, fields, table, Durability::Fsync)?;
        self.store_profile(&mut writer, "add a profile", Arc::new(profile))
    }

    /// Changes name, description and data of a profile. Its table stays. Waits for the disk.
    pub fn change_profile(
        &self,
        tenant: Uuid,
        id: Uuid,
        fields: ProfileFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Profile>, RegistryError> {
        let Checked { description, data, topics, payloads } = self.checked(tenant, fields)?;
        let mut writer = self.writer.lock();
        let old = self.find::<Profile>(tenant, id)?;
        check_version("device profile", &old.name, version, old.version)?;
        if old.name != fields.name && self.profile(tenant, fields.name).is_some() {
            return Err(RegistryError::exists("profile", fields.name));
        }
        let provision = self.provision_terms(fields, Some(&old))?;
        let (name, version) = (fields.name.to_owned(), old.version + 1);
        let packages = fields.packages.on(old.packages);
        let changed = Profile {
            name,
            description,
            data,
            topics,
            payloads,
            provision,
            packages,
            version,
            ..Profile::clone(&old)
        };
        self.store_profile(&mut writer, "change a profile", Arc::new(changed))
    }

    /// Changes the table and the durability of a profile for all its devices. Existing rows stay in their table. Waits for the disk.
    pub fn set_profile(
        &self,
        tenant: Uuid,
        name: &str,
        table: &str,
        durability: Durability,
    ) -> Result<Arc<Profile>, RegistryError> {
        check_profile_table(table)?;
        let mut writer = self.writer.lock();
        let old = self.profile(tenant, name).ok_or_else(|| RegistryError::unknown("profile", name))?;
        let table = TableName::new(&self.namespace(tenant), table)?;
        let changed = Profile { table, durability, version: old.version + 1, ..Profile::clone(&old) };
        self.store_profile(&mut writer, "change a profile", Arc::new(changed))
    }

    /// Makes a profile that of devices that are added without one. Waits for the disk.
    pub fn set_default_profile(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        let mut writer = self.writer.lock();
        let (old, new) = (self.default_profile(tenant)?, self.find::<Profile>(tenant, id)?);
        if old.id == new.id {
            return Ok(new);
        }
        let with = |profile: &Profile, is_default| {
            Arc::new(Profile { is_default, version: profile.version + 1, ..Profile::clone(profile) })
        };
        let (old, new) = (with(&old, false), with(&new, true));
        self.commit(&mut writer, "change the default profile", |transaction| {
            save::profile(transaction, &old)?;
            save::profile(transaction, &new)
        })?;
        let mut index = self.index.write();
        index.put_profile(old);
        index.put_profile(Arc::clone(&new));
        drop(index);
        self.forget_cached();
        Ok(new)
    }

    /// Deletes a profile. Refuses the default one, and one that devices have. Its table stays. Waits for the disk.
    pub fn delete_profile(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        let mut writer = self.writer.lock();
        let profile = self.find::<Profile>(tenant, id)?;
        let (what, name) = ("device profile", profile.name.clone());
        if profile.is_default {
            let reason = format!("{name:?} is the default one; make another one the default first");
            return Err(RegistryError::Invalid { what, reason });
        }
        let count = self.index.read().devices().of(tenant).filter(|device| device.profile.id == id).count();
        if count > 0 {
            return Err(RegistryError::StillUsed { what, name, count, users: "devices" });
        }
        self.commit(&mut writer, "delete a profile", |transaction| {
            transaction.execute("DELETE FROM profile WHERE id = ?1", [id]).map(drop)
        })?;
        self.index.write().remove_profile(id);
        Ok(profile)
    }

    fn new_profile(
        &self,
        tenant: Uuid,
        fields: ProfileFields<'_>,
        table: TableName,
        durability: Durability,
    ) -> Result<Profile, RegistryError> {
        let Checked { description, data, topics, payloads } = self.checked(tenant, fields)?;
        if self.profile(tenant, fields.name).is_some() {
            return Err(RegistryError::exists("profile", fields.name));
        }
        let count = self.index.read().profiles.len_of(tenant) + 1;
        over_limit("number of device profiles of the tenant", count, PROFILES_PER_TENANT_MAX)?;
        Ok(Profile {
            id: file::new_id(),
            tenant,
            name: fields.name.to_owned(),
            table,
            durability,
            description,
            data,
            topics,
            payloads,
            provision: self.provision_terms(fields, None)?,
            packages: fields.packages.on(PackageIds::default()),
            is_default: false,
            created_at: now_ms(),
            version: 1,
        })
    }

    /// The terms of a profile after a change. A key belongs to one profile of all tenants.
    fn provision_terms(
        &self,
        fields: ProfileFields<'_>,
        old: Option<&Profile>,
    ) -> Result<ProvisionTerms, RegistryError> {
        let Some(terms) = fields.provision else {
            return Ok(old.map(|old| old.provision.clone()).unwrap_or_default());
        };
        let holder = terms.key.as_deref().and_then(|key| self.profile_by_provision_key(key));
        if holder.is_some_and(|holder| old.is_none_or(|old| old.id != holder.id)) {
            return Err(RegistryError::ProvisionKeyTaken);
        }
        Ok(terms.clone())
    }

    fn store_profile(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        profile: Arc<Profile>,
    ) -> Result<Arc<Profile>, RegistryError> {
        self.commit(writer, what, |transaction| save::profile(transaction, &profile))?;
        let had = self.find::<Profile>(profile.tenant, profile.id).map(|old| old.topics.clone());
        self.index.write().put_profile(Arc::clone(&profile));
        if had.unwrap_or_default() != profile.topics {
            self.topics_generation.fetch_add(1, Ordering::AcqRel);
        }
        self.forget_cached();
        Ok(profile)
    }

    /// Checks the fields of a profile of a tenant.
    fn checked(&self, tenant: Uuid, fields: ProfileFields<'_>) -> Result<Checked, RegistryError> {
        check_tag_value(fields.name)?;
        let description = fields.description.filter(|text| !text.is_empty());
        let bytes = description.map_or(0, str::len);
        over_limit("length of the description in bytes", bytes, DESCRIPTION_BYTES_MAX)?;
        let what = "profileData";
        let data = checked_json(what, fields.data, PROFILE_DATA_BYTES_MAX, "PROFILE_DATA_BYTES_MAX")?;
        let topics = TopicRights::of_profile_data(data.as_deref(), tenant == self.default_tenant)
            .map_err(|reason| RegistryError::Invalid { what, reason })?;
        provisions_gateways(data.as_deref()).map_err(|reason| RegistryError::Invalid { what, reason })?;
        let payloads = PayloadSchemas::of_profile_data(data.as_deref())
            .map_err(|reason| RegistryError::Invalid { what, reason })?;
        Ok(Checked { description: description.map(Into::into), data, topics, payloads })
    }
}

/// The fields of a profile as they are stored, and what the data says.
struct Checked {
    description: Option<Box<str>>,
    data: Option<Box<str>>,
    topics: TopicRights,
    payloads: PayloadSchemas,
}

/// A table for a profile: its name in lower case with `_` for what is not a letter or digit, and with a number if that is taken.
fn free_table(profile: &str, taken: impl Fn(&str) -> bool) -> String {
    let letters = profile.chars().flat_map(char::to_lowercase);
    let mapped: String = letters.map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    // Room for a number behind it.
    let most = TABLE_NAME_BYTES_MAX - "_".len() - PROFILES_PER_TENANT_MAX.to_string().len();
    let end = (0..=most.min(mapped.len())).rev().find(|at| mapped.is_char_boundary(*at)).unwrap_or(0);
    let base = match mapped[..end].trim_matches('_') {
        "" => "profile",
        base => base,
    };
    if !taken(base) {
        return base.to_owned();
    }
    let mut numbered = (2_usize..).map(|number| format!("{base}_{number}"));
    numbered.find(|name| !taken(name)).expect("BUG: there are more numbers than profiles")
}

fn check_profile_table(table: &str) -> Result<(), RegistryError> {
    let keeps = match table {
        DEAD_LETTER_TABLE => Some("refused messages"),
        AUDIT_TABLE => Some("administrative acts"),
        _ => None,
    };
    if let Some(keeps) = keeps {
        let reason = format!("{table:?} keeps {keeps}; choose another table");
        return Err(RegistryError::Invalid { what: "table", reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_after_its_profile() {
        let free = |name: &str| free_table(name, |table| ["pump", "pump_2", "audit"].contains(&table));
        assert_eq!(free("Thermostat v2.1"), "thermostat_v2_1");
        assert_eq!(free("Größe (m)"), "größe__m");
        assert_eq!((free("Pump"), free("audit")), ("pump_3".to_owned(), "audit_2".to_owned()));
        assert_eq!((free("🚚"), free("--")), ("profile".to_owned(), "profile".to_owned()));
        let long = free(&"ü".repeat(300));
        assert!(model::name::check_table(&format!("{long}_1000")).is_ok());
    }
}

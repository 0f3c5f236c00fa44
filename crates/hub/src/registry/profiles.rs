//! Profiles: the table and the durability of a type of devices.

use std::sync::Arc;

use model::TableName;
use model::name::check_tag_value;
use store::Durability;
use uuid::Uuid;

use super::entity::Profile;
use super::error::RegistryError;
use super::file;
use super::handle::Registry;
use crate::audit::AUDIT_TABLE;
use crate::dead_letter::DEAD_LETTER_TABLE;

impl Registry {
    /// The profiles of a tenant, sorted by name.
    pub fn profiles(&self, tenant: Uuid) -> Vec<Arc<Profile>> {
        let index = self.index.read();
        index.profiles.values().filter(|profile| profile.tenant == tenant).cloned().collect()
    }

    /// The profile of that name.
    pub fn profile(&self, tenant: Uuid, name: &str) -> Option<Arc<Profile>> {
        self.index.read().profile(tenant, name).cloned()
    }

    /// Adds a profile. Waits for the disk.
    pub fn add_profile(
        &self,
        tenant: Uuid,
        name: &str,
        table: &str,
        durability: Durability,
    ) -> Result<Arc<Profile>, RegistryError> {
        check_tag_value(name)?;
        check_profile_table(table)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        if self.profile(tenant, name).is_some() {
            return Err(RegistryError::exists("profile", name));
        }
        let (name, table) = (name.to_owned(), TableName::new(&self.namespace(tenant), table)?);
        let profile = Arc::new(Profile { id: file::new_id(), tenant, name, table, durability });
        self.commit(&mut writer, "add a profile", |transaction| file::insert_profile(transaction, &profile))?;
        self.index.write().put_profile(Arc::clone(&profile));
        Ok(profile)
    }

    /// Changes a profile for all its devices. Existing rows stay in their table. Waits for the disk.
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
        let full_name = TableName::new(&self.namespace(tenant), table)?;
        let profile = Arc::new(Profile { table: full_name, durability, ..Profile::clone(&old) });
        self.commit(&mut writer, "change a profile", |transaction| {
            let sql = "UPDATE profile SET data_table = ?2, durability = ?3 WHERE id = ?1";
            transaction.execute(sql, (profile.id, table, durability.name()))?;
            Ok(())
        })?;
        self.index.write().put_profile(Arc::clone(&profile));
        self.forget_cached();
        Ok(profile)
    }
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

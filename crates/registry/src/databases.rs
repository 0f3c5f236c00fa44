//! Adds, finds and deletes databases.

use std::sync::Arc;

use model::name::check_tag_value;
use uuid::Uuid;

use super::checks::over_limit;
use super::database::{Database, OWN_DATABASE};
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::DATABASES_PER_TENANT_MAX;
use super::system_time::now_ms;
use super::{file, save};

impl Registry {
    /// The database with that name. The tenant's own tables are none of these.
    pub fn database(&self, tenant: Uuid, name: &str) -> Option<Arc<Database>> {
        self.index.read().databases.by_name(tenant, name).cloned()
    }

    /// The databases of a tenant, sorted by name, without the tenant's own tables.
    pub fn databases(&self, tenant: Uuid) -> Vec<Arc<Database>> {
        self.index.read().databases.of(tenant).cloned().collect()
    }

    /// Adds a database, or returns the one that has the name. Waits for the disk.
    pub fn add_database(&self, tenant: Uuid, name: &str) -> Result<Arc<Database>, RegistryError> {
        check_tag_value(name)?;
        if name == OWN_DATABASE {
            return Err(RegistryError::exists("database", name));
        }
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        if let Some(present) = self.database(tenant, name) {
            return Ok(present);
        }
        let count = self.index.read().databases.len_of(tenant) + 1;
        over_limit("number of databases of the tenant", count, DATABASES_PER_TENANT_MAX)?;
        let database =
            Arc::new(Database { id: file::new_id(), tenant, name: name.to_owned(), created_at: now_ms() });
        self.commit(&mut writer, "add a database", |transaction| save::database(transaction, &database))?;
        self.index.write().databases.put(Arc::clone(&database));
        Ok(database)
    }

    /// Deletes a database. Its tables stay in the store until the hub drops them. Waits for the disk.
    pub fn delete_database(&self, tenant: Uuid, name: &str) -> Result<Arc<Database>, RegistryError> {
        let mut writer = self.writer.lock();
        let database = self.database(tenant, name);
        let database = database.ok_or_else(|| RegistryError::unknown("database", name))?;
        self.commit(&mut writer, "delete a database", |transaction| {
            transaction.execute("DELETE FROM database WHERE id = ?1", [database.id])?;
            transaction.execute("INSERT INTO deleted_database (id) VALUES (?1)", [database.id])?;
            Ok(())
        })?;
        let mut index = self.index.write();
        index.databases.remove(database.id);
        index.deleted_databases.push(database.id);
        Ok(database)
    }

    /// The databases that were deleted.
    pub fn deleted_databases(&self) -> Vec<Uuid> {
        self.index.read().deleted_databases.clone()
    }
}

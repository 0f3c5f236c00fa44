//! Management of tenants, for callers who administer the installation: administrators of the default tenant.

use std::collections::HashSet;
use std::sync::Arc;

use model::Namespace;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{RegistryError, Tenant};

impl Hub {
    /// All tenants, sorted by name.
    pub fn tenants(&self, caller: &Caller) -> Result<Vec<Arc<Tenant>>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        Ok(self.registry.tenants())
    }

    /// Adds a tenant with its first administrator. Hashing the password is slow: call it on a thread that may block.
    pub fn add_tenant(
        &self,
        caller: &Caller,
        name: &str,
        login: &str,
        password: &str,
    ) -> Result<Arc<Tenant>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.add_tenant(name, login, password)?;
        self.audit(caller, "add tenant", &format!("{name} with the administrator {login}"));
        Ok(tenant)
    }

    /// Deletes a tenant with its devices, their attributes, its users and tables. Waits for the disk. If a store drops nothing now,
    /// [`drop_deleted_tenants`](Self::drop_deleted_tenants) drops them later.
    pub fn delete_tenant(&self, caller: &Caller, name: &str) -> Result<Arc<Tenant>, Error> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.delete_tenant(name)?;
        self.audit(caller, "delete tenant", name);
        self.drop_deleted_tenants()?;
        Ok(tenant)
    }

    /// Drops the tables of deleted tenants, and returns their number; deletes the attributes of their devices too. Waits for the
    /// disk. The server calls it when it starts. Tables and attributes of a tenant that the registry does not know at all stay:
    /// the registry may be one of an older backup.
    ///
    /// # Errors
    /// Those of [`store::Store::drop_table`] and [`kv::KeyValueStore::commit`].
    pub fn drop_deleted_tenants(&self) -> Result<usize, Error> {
        let deleted = self.registry.deleted_tenants();
        for tenant in &deleted {
            self.delete_attributes_of_tenant(*tenant)?;
        }
        let deleted: HashSet<Namespace> = deleted.into_iter().map(|id| self.registry.namespace(id)).collect();
        let mut dropped = 0;
        for status in self.store.tables()? {
            if deleted.contains(&status.table.namespace()) {
                dropped += usize::from(self.store.drop_table(&status.table)?);
                self.ttls.forget(&status.table);
            }
        }
        Ok(dropped)
    }
}

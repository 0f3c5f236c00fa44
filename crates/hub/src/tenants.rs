//! Management of tenants, for callers who administer the installation: administrators of the default tenant.

use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::{RegistryError, Tenant};

impl Hub {
    /// All tenants, sorted by name.
    pub fn tenants(&self, caller: &Caller) -> Result<Vec<Tenant>, RegistryError> {
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
    ) -> Result<Tenant, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.add_tenant(name, login, password)?;
        self.audit(caller, "add tenant", &format!("{name} with the administrator {login}"));
        Ok(tenant)
    }

    /// Deletes a tenant with its devices, users and tables. Waits for the disk.
    pub fn delete_tenant(&self, caller: &Caller, name: &str) -> Result<Tenant, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.delete_tenant(name)?;
        self.audit(caller, "delete tenant", name);
        Ok(tenant)
    }
}

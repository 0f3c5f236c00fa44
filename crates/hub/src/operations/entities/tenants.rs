//! Management of tenants, for callers who administer the installation: administrators of the default tenant.

use std::collections::HashSet;
use std::sync::Arc;

use model::Namespace;
use tokio::sync::watch;
use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    EntityId, EntityKind, Page, PageRequest, RegistryError, Tenant, TenantFields, TenantLimit, TenantLimits,
    namespace_of_database,
};

impl Hub {
    /// All tenants, sorted by name.
    pub fn tenants(&self, caller: &Caller) -> Result<Vec<Arc<Tenant>>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        Ok(self.registry.tenants())
    }

    /// A tenant: the caller's own, or any for a caller who administers the installation. Users of a customer see none.
    pub fn tenant(&self, caller: &Caller, id: Uuid) -> Result<Arc<Tenant>, RegistryError> {
        caller.check(Action::Read)?;
        let is_seen = caller.sees(id, None) || self.check_installation(caller, Action::ManageTenants).is_ok();
        match is_seen {
            true => self.registry.tenant(id),
            false => Err(RegistryError::unknown("tenant", id)),
        }
    }

    /// A page of all tenants.
    pub fn tenants_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Tenant>>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        self.registry.tenants_page(request)
    }

    /// Adds a tenant without users. Waits for the disk.
    pub fn add_empty_tenant(
        &self,
        caller: &Caller,
        fields: &TenantFields<'_>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.add_empty_tenant(fields)?;
        self.audit_of(caller, "add tenant", &tenant.name, EntityId::of(EntityKind::Tenant, tenant.id));
        Ok(tenant)
    }

    /// Changes a tenant. Waits for the disk.
    pub fn change_tenant(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: &TenantFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.change_tenant(id, fields, version)?;
        self.tenant_loads.set(tenant.id, tenant.limits);
        self.audit_of(caller, "change tenant", &tenant.name, EntityId::of(EntityKind::Tenant, id));
        Ok(tenant)
    }

    /// Changes the limits of a tenant; they hold at once. Waits for the disk.
    pub fn set_tenant_limits(
        &self,
        caller: &Caller,
        name: &str,
        limits: TenantLimits,
    ) -> Result<Arc<Tenant>, RegistryError> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.set_tenant_limits(name, limits)?;
        self.tenant_loads.set(tenant.id, limits);
        let limits = TenantLimit::ALL.map(|limit| match limits.value(limit) {
            Some(value) => format!("{} {value}", limit.name()),
            None => format!("no {}", limit.name()),
        });
        let subject = format!("{name}: {}", limits.join(", "));
        self.audit_of(caller, "limit tenant", &subject, EntityId::of(EntityKind::Tenant, tenant.id));
        Ok(tenant)
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

    /// Deletes a tenant with its devices, their attributes, its users and tables. Waits for the disk: the tenant is gone then. What it has
    /// on the disk may be much; [`drop_deleted_tables`](Self::drop_deleted_tables) deletes it, on another thread
    /// ([`deletions`](Self::deletions)).
    pub fn delete_tenant(&self, caller: &Caller, name: &str) -> Result<Arc<Tenant>, Error> {
        self.check_installation(caller, Action::ManageTenants)?;
        let tenant = self.registry.delete_tenant(name)?;
        self.rule_book.forget_tenant(tenant.id);
        self.tenant_loads.forget(tenant.id);
        self.audit(caller, "delete tenant", name);
        self.announce_deletion();
        Ok(tenant)
    }

    /// Drops the tables of deleted tenants and databases, and returns their number; deletes the attributes of their devices, their packages and their alarms too. Waits for the
    /// disk. The server calls it when it starts, and after
    /// each deletion. Tables and attributes of a tenant that the registry does not know at all stay:
    /// the registry may be one of an older backup.
    ///
    /// # Errors
    /// The errors of [`store::Maintenance::drop_table`] and [`kv::KeyValueStore::commit`].
    pub fn drop_deleted_tables(&self) -> Result<usize, Error> {
        let deleted = self.registry.deleted_tenants();
        for tenant in &deleted {
            self.delete_attributes_of_tenant(*tenant)?;
            self.delete_packages_of_tenant(*tenant)?;
        }
        self.delete_alarms_without_originator()?;
        let of_tenants = deleted.into_iter().map(|id| self.registry.namespace(id));
        let of_databases = self.registry.deleted_databases().into_iter().map(namespace_of_database);
        let deleted: HashSet<Namespace> = of_tenants.chain(of_databases).collect();
        for namespace in &deleted {
            self.forget_annotations(namespace)?;
        }
        let mut dropped = 0;
        for status in self.store.tables()? {
            if deleted.contains(&status.table.namespace()) {
                dropped += usize::from(self.store.drop_table(&status.table)?);
                self.ttls.forget(&status.table);
            }
        }
        Ok(dropped)
    }

    /// Signals that a tenant or a database was deleted whose tables are still there.
    pub fn deletions(&self) -> watch::Receiver<u64> {
        self.deletions.subscribe()
    }

    pub(crate) fn announce_deletion(&self) {
        self.deletions.send_modify(|deletions| *deletions += 1);
    }
}

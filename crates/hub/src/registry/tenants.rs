//! Tenants: each has devices, profiles, users and tables of its own.

use std::sync::Arc;

use model::limits::TENANTS_MAX;
use model::name::check_tag_value;
use store::Durability;
use uuid::Uuid;

use super::defaults::{DEFAULT_NAME, DEFAULT_TABLE};
use super::entity::{Authority, Profile, Tenant, User};
use super::error::RegistryError;
use super::file;
use super::handle::Registry;
use super::index::Account;
use super::users::{checked_login, now_ms};
use crate::namespace::{namespace_of, own_table};

impl Registry {
    /// All tenants, sorted by name.
    pub fn tenants(&self) -> Vec<Tenant> {
        let mut tenants = self.index.read().tenants.clone();
        tenants.sort_by(|one, other| one.name.cmp(&other.name));
        tenants
    }

    /// The name of a tenant.
    pub fn tenant_name(&self, id: Uuid) -> Option<String> {
        let index = self.index.read();
        index.tenants.iter().find(|tenant| tenant.id == id).map(|tenant| tenant.name.clone())
    }

    /// The tenant with that name.
    pub fn tenant_by_name(&self, name: &str) -> Result<Tenant, RegistryError> {
        let index = self.index.read();
        let found = index.tenants.iter().find(|tenant| tenant.name == name).cloned();
        found.ok_or_else(|| RegistryError::unknown("tenant", name))
    }

    /// The tenants that were deleted.
    pub(crate) fn deleted_tenants(&self) -> Vec<Uuid> {
        self.index.read().deleted_tenants.clone()
    }

    /// Adds a tenant with its default profile and its first administrator. Slow like
    /// [`authenticate`](Self::authenticate), and waits for the disk.
    pub fn add_tenant(&self, name: &str, login: &str, password: &str) -> Result<Tenant, RegistryError> {
        check_tag_value(name)?;
        let login = checked_login(login)?;
        let password_hash = self.passwords.hash(password)?;
        let mut writer = self.writer.lock();
        self.check_new_tenant(name, &login)?;
        let tenant = Tenant { id: file::new_id(), name: name.to_owned() };
        let profile = self.first_profile(&tenant);
        let user = Arc::new(User {
            id: file::new_id(),
            tenant: tenant.id,
            login,
            authority: Authority::TenantAdmin,
            password_changed_at: now_ms(),
            session_epoch: 0,
        });
        self.commit(&mut writer, "add a tenant", |transaction| {
            transaction
                .execute("INSERT INTO tenant (id, name) VALUES (?1, ?2)", (tenant.id, &tenant.name))?;
            file::insert_profile(transaction, &profile)?;
            file::insert_user(transaction, &user, &password_hash)
        })?;
        let mut index = self.index.write();
        index.tenants.push(tenant.clone());
        index.put_profile(profile);
        index.put_account(Account { user, password_hash });
        Ok(tenant)
    }

    /// Deletes a tenant with its devices, profiles and users, and ends the sessions of its users. Refuses the default tenant.
    /// Its tables stay in the store until [`crate::Hub::drop_deleted_tenants`] drops them. Waits for the disk.
    pub fn delete_tenant(&self, name: &str) -> Result<Tenant, RegistryError> {
        let mut writer = self.writer.lock();
        let tenant = self.tenant_by_name(name)?;
        if tenant.id == self.default_tenant {
            let reason = format!("{name:?} owns the installation and cannot be deleted");
            return Err(RegistryError::Invalid { what: "tenant", reason });
        }
        self.commit(&mut writer, "delete a tenant", |transaction| {
            // The foreign key of a device deletes its token too.
            for table in ["device", "profile", "user"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE tenant = ?1"), [tenant.id])?;
            }
            transaction.execute("DELETE FROM tenant WHERE id = ?1", [tenant.id])?;
            transaction.execute("INSERT INTO deleted_tenant (id) VALUES (?1)", [tenant.id])?;
            Ok(())
        })?;
        self.index.write().remove_tenant(tenant.id);
        self.forget_cached();
        self.signal_sessions();
        Ok(tenant)
    }

    pub(super) fn check_tenant(&self, tenant: Uuid) -> Result<(), RegistryError> {
        match self.index.read().tenants.iter().any(|known| known.id == tenant) {
            true => Ok(()),
            false => Err(RegistryError::unknown("tenant", tenant)),
        }
    }

    fn check_new_tenant(&self, name: &str, login: &str) -> Result<(), RegistryError> {
        let index = self.index.read();
        if index.tenants.len() >= TENANTS_MAX {
            let actual = index.tenants.len() + 1;
            return Err(RegistryError::OverLimit { what: "number of tenants", actual, limit: TENANTS_MAX });
        }
        if index.tenants.iter().any(|tenant| tenant.name == name) {
            return Err(RegistryError::exists("tenant", name));
        }
        match index.account(login) {
            Some(_) => Err(RegistryError::exists("user", login)),
            None => Ok(()),
        }
    }

    fn first_profile(&self, tenant: &Tenant) -> Arc<Profile> {
        Arc::new(Profile {
            id: file::new_id(),
            tenant: tenant.id,
            name: DEFAULT_NAME.to_owned(),
            table: own_table(&namespace_of(tenant.id, self.default_tenant), DEFAULT_TABLE),
            durability: Durability::Fsync,
        })
    }
}

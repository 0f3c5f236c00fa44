//! Tenants: each has devices, profiles, users and tables of its own.

use std::sync::Arc;

use model::Durability;
use model::limits::TENANTS_MAX;
use model::name::check_tag_value;
use payload_schema::PayloadSchemas;
use uuid::Uuid;

use super::asset::AssetProfile;
use super::checks::{check_short, check_version, checked_info};
use super::contact::Contact;
use super::defaults::{DEFAULT_NAME, DEFAULT_TABLE};
use super::entity::{Profile, Tenant};
use super::error::RegistryError;
use super::handle::Registry;
use super::index::Account;
use super::package_ids::PackageIds;
use super::page::{Page, PageRequest, page_of};
use super::provision_terms::ProvisionTerms;
use super::system_time::now_ms;
use super::tenant_limits::TenantLimits;
use super::user::User;
use super::users::checked_login;
use super::{file, save};
use crate::namespace::{namespace_of, own_table};
use crate::permission::Role;
use crate::topic_rights::TopicRights;

impl Registry {
    /// All tenants, sorted by name.
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        let mut tenants = self.index.read().tenants.clone();
        tenants.sort_by(|one, other| one.name.cmp(&other.name));
        tenants
    }

    /// The number of tenants.
    pub fn tenant_count(&self) -> usize {
        self.index.read().tenants.len()
    }

    /// The limits of a tenant; none for one that does not exist.
    pub fn tenant_limits(&self, tenant: Uuid) -> TenantLimits {
        self.index.read().tenant(tenant).map(|tenant| tenant.limits).unwrap_or_default()
    }

    /// A page of all tenants.
    pub fn tenants_page(&self, request: PageRequest<'_>) -> Result<Page<Arc<Tenant>>, RegistryError> {
        request.check()?;
        Ok(page_of(self.tenants().iter(), &request))
    }

    /// The name of a tenant.
    pub fn tenant_name(&self, id: Uuid) -> Option<String> {
        let index = self.index.read();
        index.tenants.iter().find(|tenant| tenant.id == id).map(|tenant| tenant.name.clone())
    }

    /// The tenant with that name.
    pub fn tenant_by_name(&self, name: &str) -> Result<Arc<Tenant>, RegistryError> {
        let index = self.index.read();
        let found = index.tenants.iter().find(|tenant| tenant.name == name).cloned();
        found.ok_or_else(|| RegistryError::unknown("tenant", name))
    }

    /// The tenants that were deleted.
    pub fn deleted_tenants(&self) -> Vec<Uuid> {
        self.index.read().deleted_tenants.clone()
    }

    /// The tenant with that id.
    pub fn tenant(&self, id: Uuid) -> Result<Arc<Tenant>, RegistryError> {
        self.index.read().tenant(id).cloned().ok_or_else(|| RegistryError::unknown("tenant", id))
    }

    /// Adds a tenant with its default profiles and its first administrator. Slow like
    /// [`authenticate`](Self::authenticate), and waits for the disk.
    pub fn add_tenant(&self, name: &str, login: &str, password: &str) -> Result<Arc<Tenant>, RegistryError> {
        let login = checked_login(login)?;
        let password_hash = self.passwords.hash(password)?;
        let fields = TenantFields { name, ..TenantFields::default() };
        self.store_new_tenant(&fields, Some((login, password_hash)))
    }

    /// Adds a tenant with its default profiles, and without users. Waits for the disk.
    pub fn add_empty_tenant(&self, fields: &TenantFields<'_>) -> Result<Arc<Tenant>, RegistryError> {
        self.store_new_tenant(fields, None)
    }

    fn store_new_tenant(
        &self,
        fields: &TenantFields<'_>,
        administrator: Option<(String, String)>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        let additional_info = fields.checked()?;
        let mut writer = self.writer.lock();
        self.check_new_tenant(fields.name, administrator.as_ref().map(|(login, _)| login.as_str()))?;
        let tenant = Arc::new(Tenant {
            id: file::new_id(),
            name: fields.name.to_owned(),
            contact: fields.contact.clone(),
            additional_info,
            limits: fields.limits.unwrap_or_default(),
            created_at: now_ms(),
            version: 1,
        });
        let (profile, asset_profile) = (self.first_profile(&tenant), first_asset_profile(&tenant));
        let account = administrator.map(|(login, password_hash)| {
            let user = User {
                id: file::new_id(),
                tenant: tenant.id,
                login,
                role: Role::Administrator,
                created_at: now_ms(),
                enabled: true,
                password_changed_at: now_ms(),
                version: 1,
                ..User::default()
            };
            Account { user: Arc::new(user), password_hash, activation: None }
        });
        self.commit(&mut writer, "add a tenant", |transaction| {
            save::tenant(transaction, &tenant)?;
            save::profile(transaction, &profile)?;
            save::asset_profile(transaction, &asset_profile)?;
            account.iter().try_for_each(|account| save::account(transaction, account))
        })?;
        let mut index = self.index.write();
        index.put_tenant(Arc::clone(&tenant));
        index.put_profile(profile);
        index.put_asset_profile(asset_profile);
        account.into_iter().for_each(|account| index.put_account(account));
        Ok(tenant)
    }

    /// Changes a tenant. The tenant that every installation has keeps its name. Waits for the disk.
    pub fn change_tenant(
        &self,
        id: Uuid,
        fields: &TenantFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        let additional_info = fields.checked()?;
        let mut writer = self.writer.lock();
        let old = self.tenant(id)?;
        check_version("tenant", &old.name, version, old.version)?;
        if old.name != fields.name {
            if id == self.default_tenant {
                let reason = format!("{:?} owns the installation and keeps its name", old.name);
                return Err(RegistryError::Invalid { what: "tenant", reason });
            }
            if self.tenant_by_name(fields.name).is_ok() {
                return Err(RegistryError::exists("tenant", fields.name));
            }
        }
        let tenant = Arc::new(Tenant {
            name: fields.name.to_owned(),
            contact: fields.contact.clone(),
            additional_info,
            limits: fields.limits.unwrap_or(old.limits),
            version: old.version + 1,
            ..Tenant::clone(&old)
        });
        self.commit(&mut writer, "change a tenant", |transaction| save::tenant(transaction, &tenant))?;
        self.index.write().put_tenant(Arc::clone(&tenant));
        Ok(tenant)
    }

    /// Changes the limits of a tenant. Waits for the disk.
    pub fn set_tenant_limits(&self, name: &str, limits: TenantLimits) -> Result<Arc<Tenant>, RegistryError> {
        let mut writer = self.writer.lock();
        let old = self.tenant_by_name(name)?;
        let tenant = Arc::new(Tenant { limits, version: old.version + 1, ..Tenant::clone(&old) });
        self.commit(&mut writer, "change the limits of a tenant", |transaction| {
            save::tenant(transaction, &tenant)
        })?;
        self.index.write().put_tenant(Arc::clone(&tenant));
        Ok(tenant)
    }

    /// Deletes a tenant with its devices, profiles and users, and ends the sessions of its users. Refuses the default tenant.
    /// Its tables stay in the store until the hub drops them. Waits for the disk.
    pub fn delete_tenant(&self, name: &str) -> Result<Arc<Tenant>, RegistryError> {
        let mut writer = self.writer.lock();
        let tenant = self.tenant_by_name(name)?;
        if tenant.id == self.default_tenant {
            let reason = format!("{name:?} owns the installation and cannot be deleted");
            return Err(RegistryError::Invalid { what: "tenant", reason });
        }
        self.commit(&mut writer, "delete a tenant", |transaction| {
            let databases = "INSERT INTO deleted_database SELECT id FROM database WHERE tenant = ?1";
            transaction.execute(databases, [tenant.id])?;
            // The foreign key of a device deletes its token too.
            for table in [
                "database",
                "relation",
                "entity_view",
                "asset",
                "asset_profile",
                "device",
                "profile",
                "user",
                "customer",
            ] {
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

    fn check_new_tenant(&self, name: &str, login: Option<&str>) -> Result<(), RegistryError> {
        let index = self.index.read();
        if index.tenants.len() >= TENANTS_MAX {
            let actual = index.tenants.len() + 1;
            return Err(RegistryError::OverLimit { what: "number of tenants", actual, limit: TENANTS_MAX });
        }
        if index.tenants.iter().any(|tenant| tenant.name == name) {
            return Err(RegistryError::exists("tenant", name));
        }
        match login.filter(|login| index.account(login).is_some()) {
            Some(login) => Err(RegistryError::exists("user", login)),
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
            description: None,
            data: None,
            topics: TopicRights::default(),
            payloads: PayloadSchemas::default(),
            provision: ProvisionTerms::default(),
            packages: PackageIds::default(),
            is_default: true,
            created_at: now_ms(),
            version: 1,
        })
    }
}

fn first_asset_profile(tenant: &Tenant) -> Arc<AssetProfile> {
    Arc::new(AssetProfile {
        id: file::new_id(),
        tenant: tenant.id,
        name: DEFAULT_NAME.to_owned(),
        description: None,
        is_default: true,
        created_at: now_ms(),
        version: 1,
    })
}

/// The properties of a tenant that clients set.
#[derive(Debug, Clone, Default)]
pub struct TenantFields<'a> {
    /// Name, unique in the installation.
    pub name: &'a str,
    pub contact: Contact,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<&'a str>,
    /// Its limits. A tenant keeps its limits if it is `None`.
    pub limits: Option<TenantLimits>,
}

impl TenantFields<'_> {
    /// Checks the fields, and returns the additional info as it is stored.
    fn checked(&self) -> Result<Option<Box<str>>, RegistryError> {
        check_tag_value(self.name)?;
        check_short("name", Some(self.name))?;
        self.contact.check()?;
        checked_info(self.additional_info)
    }
}

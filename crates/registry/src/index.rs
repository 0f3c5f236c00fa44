//! The index of the registry in memory. Lookups use only this index, not SQLite.
//!
//! It is built when the registry opens. A change enters it only after its commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::Timestamp;
use uuid::Uuid;

use super::asset::{Asset, AssetProfile};
use super::credentials::Credentials;
use super::customer::Customer;
use super::database::Database;
use super::defaults::DEFAULT_NAME;
use super::directory::Directory;
use super::entity::{Device, Profile, Provisioned, Tenant};
use super::entity_view::EntityView;
use super::relation::Relations;
use super::user::{Activation, ApiKey, User};

/// A user with the hash of the password.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) user: Arc<User>,
    pub(super) password_hash: String,
    /// What the user activates the account with, until there is a password.
    pub(super) activation: Option<Activation>,
}

/// All entities, by what they are looked up by.
#[derive(Debug, Default)]
pub struct Index {
    pub(super) tenants: Vec<Arc<Tenant>>,
    pub(super) deleted_tenants: Vec<Uuid>,
    pub(super) customers: Directory<Customer>,
    pub(super) databases: Directory<Database>,
    pub(super) deleted_databases: Vec<Uuid>,
    pub(super) profiles: Directory<Profile>,
    /// Profiles by their keys of provisioning.
    by_provision_key: HashMap<Box<str>, Uuid>,
    pub(super) asset_profiles: Directory<AssetProfile>,
    pub(super) assets: Directory<Asset>,
    pub(super) views: Directory<EntityView>,
    pub(super) relations: Relations,
    /// Sessions that their users have ended, and when their tokens expire.
    pub(super) ended_sessions: HashMap<Uuid, Timestamp>,
    devices: Directory<Device>,
    /// The credentials of devices.
    credentials: HashMap<Uuid, Credentials>,
    by_credentials: HashMap<Arc<str>, Arc<Device>>,
    /// By login.
    accounts: BTreeMap<String, Arc<Account>>,
    users: HashMap<Uuid, Arc<User>>,
    /// By the hash of the secret.
    api_keys: HashMap<[u8; 32], Arc<ApiKey>>,
}

impl Index {
    /// The tenant that every installation has.
    pub(super) fn default_tenant(&self) -> Option<&Arc<Tenant>> {
        self.tenants.iter().find(|tenant| tenant.name == DEFAULT_NAME)
    }

    pub(super) fn tenant(&self, id: Uuid) -> Option<&Arc<Tenant>> {
        self.tenants.iter().find(|tenant| tenant.id == id)
    }

    /// Adds a tenant, or replaces the one with the same id.
    pub(super) fn put_tenant(&mut self, tenant: Arc<Tenant>) {
        self.tenants.retain(|known| known.id != tenant.id);
        self.tenants.push(tenant);
    }

    /// Removes a tenant with all that belongs to it.
    pub(super) fn remove_tenant(&mut self, tenant: Uuid) {
        for id in self.devices.remove_tenant(tenant) {
            self.forget_credentials(id);
        }
        self.relations.remove_tenant(tenant);
        self.views.remove_tenant(tenant);
        self.assets.remove_tenant(tenant);
        self.asset_profiles.remove_tenant(tenant);
        self.profiles.remove_tenant(tenant);
        let profiles = &self.profiles;
        self.by_provision_key.retain(|_, id| profiles.get(*id).is_some());
        self.customers.remove_tenant(tenant);
        let databases = self.databases.remove_tenant(tenant);
        self.deleted_databases.extend(databases);
        self.accounts.retain(|_, account| account.user.tenant != tenant);
        self.users.retain(|_, user| user.tenant != tenant);
        self.api_keys.retain(|_, key| self.users.contains_key(&key.user));
        self.tenants.retain(|known| known.id != tenant);
        self.deleted_tenants.push(tenant);
    }

    /// A device with its credentials.
    pub(super) fn device(&self, id: Uuid) -> Option<(&Arc<Device>, &Credentials)> {
        self.devices.get(id).zip(self.credentials.get(&id))
    }

    /// The device whose credentials have this id, with the credentials.
    pub(super) fn device_by_credentials(&self, id: &str) -> Option<(&Arc<Device>, &Credentials)> {
        let device = self.by_credentials.get(id)?;
        Some(device).zip(self.credentials.get(&device.id))
    }

    /// The devices without their credentials.
    pub(super) fn devices(&self) -> &Directory<Device> {
        &self.devices
    }

    /// Adds a device, or replaces the one with the same id.
    pub(super) fn put_device(&mut self, device: Arc<Device>, credentials: Credentials) {
        self.forget_credentials(device.id);
        self.by_credentials.insert(Arc::clone(credentials.id()), Arc::clone(&device));
        self.credentials.insert(device.id, credentials);
        self.devices.put(device);
    }

    pub(super) fn put_devices(&mut self, devices: &[Provisioned]) {
        self.devices.reserve(devices.len());
        self.credentials.reserve(devices.len());
        self.by_credentials.reserve(devices.len());
        for new in devices.iter().filter(|new| new.created) {
            self.put_device(Arc::clone(&new.device), new.credentials.clone());
        }
    }

    pub(super) fn remove_device(&mut self, id: Uuid) {
        self.forget_credentials(id);
        self.devices.remove(id);
    }

    fn forget_credentials(&mut self, device: Uuid) {
        if let Some(credentials) = self.credentials.remove(&device) {
            self.by_credentials.remove(credentials.id());
        }
    }

    /// Adds a profile, or replaces the one with the same id together with all devices that have it.
    pub(super) fn put_profile(&mut self, profile: Arc<Profile>) {
        // No device has a new profile; then nobody needs to look at all devices.
        let is_known = self.profiles.get(profile.id).is_some();
        let devices = is_known.then(|| self.devices.of(profile.tenant)).into_iter().flatten();
        let affected: Vec<_> = devices.filter(|device| device.profile.id == profile.id).cloned().collect();
        for device in affected {
            let Some(credentials) = self.credentials.get(&device.id).cloned() else { continue };
            let device = Device { profile: Arc::clone(&profile), ..Device::clone(&device) };
            self.put_device(Arc::new(device), credentials);
        }
        self.forget_provision_key(profile.id);
        if let Some(key) = &profile.provision.key {
            self.by_provision_key.insert(key.clone(), profile.id);
        }
        self.profiles.put(profile);
    }

    pub(super) fn remove_profile(&mut self, id: Uuid) {
        self.forget_provision_key(id);
        self.profiles.remove(id);
    }

    fn forget_provision_key(&mut self, profile: Uuid) {
        if let Some(key) = self.profiles.get(profile).and_then(|known| known.provision.key.as_ref()) {
            self.by_provision_key.remove(key);
        }
    }

    pub(super) fn profile_by_provision_key(&self, key: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(*self.by_provision_key.get(key)?)
    }

    /// Adds an asset profile, or replaces the one with the same id together with all assets that have it.
    pub(super) fn put_asset_profile(&mut self, profile: Arc<AssetProfile>) {
        let assets = self.assets.of(profile.tenant).filter(|asset| asset.profile.id == profile.id);
        let affected: Vec<_> = assets.cloned().collect();
        for asset in affected {
            self.assets.put(Arc::new(Asset { profile: Arc::clone(&profile), ..Asset::clone(&asset) }));
        }
        self.asset_profiles.put(profile);
    }

    /// The profile of devices that are added without one.
    pub(super) fn default_profile(&self, tenant: Uuid) -> Option<&Arc<Profile>> {
        self.profiles.of(tenant).find(|profile| profile.is_default)
    }

    /// The profile of assets that are added without one.
    pub(super) fn default_asset_profile(&self, tenant: Uuid) -> Option<&Arc<AssetProfile>> {
        self.asset_profiles.of(tenant).find(|profile| profile.is_default)
    }

    pub(super) fn account(&self, login: &str) -> Option<&Arc<Account>> {
        self.accounts.get(login)
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values()
    }

    pub(super) fn user(&self, id: Uuid) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    pub(super) fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.accounts.values().map(|account| &account.user)
    }

    pub(super) fn api_key(&self, hash: &[u8; 32]) -> Option<&Arc<ApiKey>> {
        self.api_keys.get(hash)
    }

    pub(super) fn api_keys(&self) -> impl Iterator<Item = &Arc<ApiKey>> {
        self.api_keys.values()
    }

    pub(super) fn put_api_key(&mut self, hash: [u8; 32], key: Arc<ApiKey>) {
        self.api_keys.insert(hash, key);
    }

    pub(super) fn remove_api_key(&mut self, id: Uuid) {
        self.api_keys.retain(|_, key| key.id != id);
    }

    pub(super) fn remove_account(&mut self, login: &str) {
        if let Some(account) = self.accounts.remove(login) {
            self.users.remove(&account.user.id);
            self.api_keys.retain(|_, key| key.user != account.user.id);
        }
    }

    /// Adds a user, or replaces the one with the same id.
    pub(super) fn put_account(&mut self, account: Account) {
        let replaced = self.users.insert(account.user.id, Arc::clone(&account.user));
        if let Some(old) = replaced.filter(|old| old.login != account.user.login) {
            self.accounts.remove(&old.login);
        }
        self.accounts.insert(account.user.login.clone(), Arc::new(account));
    }
}

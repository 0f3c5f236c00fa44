//! The index of the registry in memory. Lookups use only this index, not SQLite.
//!
//! It is built when the registry opens. A change enters it only after its commit.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::defaults::DEFAULT_NAME;
use super::entity::{ApiKey, Device, Page, PageRequest, Profile, Provisioned, Tenant, User};

/// A user with the hash of the password.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) user: Arc<User>,
    pub(super) password_hash: String,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) tenants: Vec<Tenant>,
    pub(super) deleted_tenants: Vec<Uuid>,
    /// By tenant and name.
    pub(super) profiles: BTreeMap<(Uuid, String), Arc<Profile>>,
    devices: HashMap<Uuid, (Arc<Device>, Arc<str>)>,
    by_token: HashMap<Arc<str>, Arc<Device>>,
    by_name: HashMap<Uuid, BTreeSet<ByName>>,
    /// By login.
    accounts: BTreeMap<String, Arc<Account>>,
    users: HashMap<Uuid, Arc<User>>,
    /// By the hash of the secret.
    api_keys: HashMap<[u8; 32], Arc<ApiKey>>,
}

impl Index {
    /// The tenant that every installation has.
    pub(super) fn default_tenant(&self) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.name == DEFAULT_NAME)
    }

    /// Removes a tenant with all that belongs to it.
    pub(super) fn remove_tenant(&mut self, tenant: Uuid) {
        let devices: Vec<Uuid> =
            self.by_name.remove(&tenant).into_iter().flatten().map(|ByName(device)| device.id).collect();
        devices.into_iter().for_each(|id| self.remove_device(id));
        self.profiles.retain(|_, profile| profile.tenant != tenant);
        self.accounts.retain(|_, account| account.user.tenant != tenant);
        self.users.retain(|_, user| user.tenant != tenant);
        self.api_keys.retain(|_, key| self.users.contains_key(&key.user));
        self.tenants.retain(|known| known.id != tenant);
        self.deleted_tenants.push(tenant);
    }

    pub(super) fn device(&self, id: Uuid) -> Option<&(Arc<Device>, Arc<str>)> {
        self.devices.get(&id)
    }

    pub(super) fn device_by_token(&self, token: &str) -> Option<&Arc<Device>> {
        self.by_token.get(token)
    }

    pub(super) fn device_by_name(&self, tenant: Uuid, name: &str) -> Option<&Arc<Device>> {
        self.by_name.get(&tenant)?.get(name).map(|ByName(device)| device)
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.devices.values().map(|(device, _)| device)
    }

    pub(super) fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Number of the devices of a tenant.
    pub(super) fn device_count_of(&self, tenant: Uuid) -> usize {
        self.by_name.get(&tenant).map_or(0, BTreeSet::len)
    }

    pub(super) fn devices_page(&self, tenant: Uuid, request: PageRequest<'_>) -> Page<Arc<Device>> {
        let devices = self.by_name.get(&tenant).into_iter().flatten().map(|ByName(device)| device);
        let skipped = request.page.saturating_mul(request.page_size);
        let (data, total): (Vec<_>, usize) = match request.filter.filter(|text| !text.is_empty()) {
            None => {
                let total = self.by_name.get(&tenant).map_or(0, BTreeSet::len);
                (devices.skip(skipped).take(request.page_size).cloned().collect(), total)
            }
            Some(text) => {
                let text = text.to_lowercase();
                let found: Vec<_> =
                    devices.filter(|device| device.name.to_lowercase().contains(&text)).collect();
                let page = found.iter().skip(skipped).take(request.page_size);
                (page.map(|&device| Arc::clone(device)).collect(), found.len())
            }
        };
        let has_next = skipped.saturating_add(data.len()) < total && !data.is_empty();
        Page { data, total_pages: total.div_ceil(request.page_size), total_elements: total, has_next }
    }

    /// Adds a device, or replaces the one with the same id.
    pub(super) fn put_device(&mut self, device: Arc<Device>, token: Arc<str>) {
        self.remove_device(device.id);
        self.by_token.insert(Arc::clone(&token), Arc::clone(&device));
        self.by_name.entry(device.tenant).or_default().insert(ByName(Arc::clone(&device)));
        self.devices.insert(device.id, (device, token));
    }

    pub(super) fn put_devices(&mut self, devices: &[Provisioned]) {
        self.devices.reserve(devices.len());
        self.by_token.reserve(devices.len());
        for new in devices.iter().filter(|new| new.created) {
            self.put_device(Arc::clone(&new.device), Arc::clone(&new.token));
        }
    }

    pub(super) fn remove_device(&mut self, id: Uuid) {
        if let Some((device, token)) = self.devices.remove(&id) {
            self.by_token.remove(&token);
            if let Some(names) = self.by_name.get_mut(&device.tenant) {
                names.remove(device.name.as_str());
            }
        }
    }

    pub(super) fn profile(&self, tenant: Uuid, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(&(tenant, name.to_owned()))
    }

    /// Adds a profile, or replaces the one of the same name together with all devices that have it.
    pub(super) fn put_profile(&mut self, profile: Arc<Profile>) {
        let has_it = |(device, _): &&(Arc<Device>, Arc<str>)| device.profile.id == profile.id;
        let affected: Vec<_> = self.devices.values().filter(has_it).cloned().collect();
        for (device, token) in affected {
            let device = Device { profile: Arc::clone(&profile), ..Device::clone(&device) };
            self.put_device(Arc::new(device), token);
        }
        self.profiles.insert((profile.tenant, profile.name.clone()), profile);
    }

    pub(super) fn account(&self, login: &str) -> Option<&Arc<Account>> {
        self.accounts.get(login)
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

    /// Adds a user, or replaces the one with the same login.
    pub(super) fn put_account(&mut self, account: Account) {
        self.users.insert(account.user.id, Arc::clone(&account.user));
        self.accounts.insert(account.user.login.clone(), Arc::new(account));
    }
}

/// A device in the order of names.
#[derive(Debug)]
struct ByName(Arc<Device>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByName {}

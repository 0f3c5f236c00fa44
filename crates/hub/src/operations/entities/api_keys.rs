//! Management of API keys. Users manage their own, with a session and not with a key: a key that expires cannot make one that
//! does not. Administrators manage those of all users of their tenant.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::{ApiKey, NewApiKey, RegistryError, User};

impl Hub {
    /// The keys of the caller's tenant with their users, or those of the caller without the permission to manage users; sorted
    /// by login and name.
    pub fn api_keys(&self, caller: &Caller) -> Vec<(Arc<User>, Arc<ApiKey>)> {
        let mut users = self.registry.users(caller.tenant());
        users.retain(|user| caller.may(Action::ManageUsers) || caller.user_id() == Some(user.id));
        let keys = |user: Arc<User>| {
            let keys = self.registry.api_keys(user.id);
            keys.into_iter().map(move |key| (Arc::clone(&user), key))
        };
        users.into_iter().flat_map(keys).collect()
    }

    /// Adds a key and returns it with its secret, which cannot be read later. Waits for the disk.
    ///
    /// # Errors
    /// The caller may not manage keys of that user, or has a lower role than the key would have.
    pub fn add_api_key(
        &self,
        caller: &Caller,
        new: NewApiKey<'_>,
    ) -> Result<(Arc<ApiKey>, String), RegistryError> {
        let user = self.registry.user_by_login(new.login);
        let user = user.ok_or_else(|| RegistryError::unknown("user", new.login));
        let user = self.key_owner(caller, user)?;
        if !caller.role().includes(new.role) {
            let reason = format!("is {}; your own role is {}", new.role, caller.role());
            return Err(RegistryError::Invalid { what: "role of the API key", reason });
        }
        let added = self.registry.add_api_key(NewApiKey { login: &user.login, ..new })?;
        let (name, role) = (new.name, new.role);
        self.audit(caller, "add API key", &format!("{name} of {} as {role}", user.login));
        Ok(added)
    }

    /// The keys of one user, sorted by name: the caller's own, or those of a user whom the caller manages.
    pub fn api_keys_of(&self, caller: &Caller, user: Uuid) -> Result<Vec<Arc<ApiKey>>, RegistryError> {
        let found = self.registry.user_by_id(user).filter(|user| user.tenant == caller.tenant());
        let found = found.ok_or_else(|| RegistryError::unknown("user", user))?;
        if caller.user_id() != Some(user) {
            caller.check(Action::ManageUsers)?;
        }
        Ok(self.registry.api_keys(found.id))
    }

    /// Deletes a key and ends its sessions. Waits for the disk.
    pub fn delete_api_key(&self, caller: &Caller, id: Uuid) -> Result<Arc<ApiKey>, RegistryError> {
        let key = self.registry.api_key(id)?;
        let user = self.registry.user_by_id(key.user).ok_or_else(|| RegistryError::unknown("API key", id));
        let user = self.key_owner(caller, user).map_err(|error| match error {
            RegistryError::Unknown { .. } => RegistryError::unknown("API key", id),
            error => error,
        })?;
        let key = self.registry.delete_api_key(id)?;
        self.audit(caller, "delete API key", &format!("{} of {}", key.name, user.login));
        Ok(key)
    }

    /// The user, if the caller may manage the user's keys. A user of another tenant is unknown.
    fn key_owner(
        &self,
        caller: &Caller,
        user: Result<Arc<User>, RegistryError>,
    ) -> Result<Arc<User>, RegistryError> {
        let own = caller.user_id().filter(|_| caller.api_key_id().is_none());
        let is_own = user.as_ref().is_ok_and(|user| own == Some(user.id));
        if !is_own {
            caller.check(Action::ManageUsers)?;
        }
        let user = user?;
        match user.tenant == caller.tenant() {
            true => Ok(user),
            false => Err(RegistryError::unknown("user", &user.login)),
        }
    }
}

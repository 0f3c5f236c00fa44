//! Management of users, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller, Role};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    Activation, Entity, EntityId, EntityKind, NewUser, Page, PageRequest, RegistryError, User,
};
use crate::session_token::TokenPair;

impl Hub {
    /// The users of the caller's tenant, sorted by login.
    pub fn users(&self, caller: &Caller) -> Result<Vec<Arc<User>>, RegistryError> {
        caller.check(Action::ManageUsers)?;
        Ok(self.registry.users(caller.tenant()))
    }

    /// Adds a user. Hashing the password is slow: call it on a thread that may block.
    pub fn add_user(
        &self,
        caller: &Caller,
        login: &str,
        password: &str,
        role: Role,
    ) -> Result<Arc<User>, RegistryError> {
        caller.check(Action::ManageUsers)?;
        let user = self.registry.add_user(caller.tenant(), login, password, role)?;
        self.audit(caller, "add user", &format!("{} as {role}", user.login));
        Ok(user)
    }

    /// Gives a user another password and ends the user's sessions. Slow like [`add_user`](Self::add_user).
    pub fn set_password(&self, caller: &Caller, login: &str, password: &str) -> Result<(), RegistryError> {
        let user = self.managed_user(caller, login)?;
        self.registry.set_password(&user.login, password)?;
        self.audit(caller, "set password of user", &user.login);
        Ok(())
    }

    /// Gives a user another role and ends the user's sessions.
    pub fn set_role(&self, caller: &Caller, login: &str, role: Role) -> Result<Arc<User>, RegistryError> {
        let user = self.managed_user(caller, login)?;
        let user = self.registry.set_role(&user.login, role)?;
        self.audit(caller, "set role of user", &format!("{} to {role}", user.login));
        Ok(user)
    }

    /// Deletes a user with the user's attributes, and ends the user's sessions. Waits for the disk.
    pub fn delete_user(&self, caller: &Caller, login: &str) -> Result<Arc<User>, Error> {
        let user = self.managed_user(caller, login)?;
        let owner = Entity::User(Arc::clone(&user));
        let user = self.delete_then_attributes(&owner, || self.registry.delete_user(&user.login))?;
        self.audit(caller, "delete user", &user.login);
        Ok(user)
    }

    /// Replaces the key of session tokens. The server refuses all tokens that it issued before.
    pub fn rotate_session_key(&self, caller: &Caller) -> Result<(), RegistryError> {
        self.check_installation(caller, Action::ManageUsers)?;
        self.registry.rotate_session_key()?;
        self.audit(caller, "replace key of sessions", "");
        Ok(())
    }

    /// The user with an id: the caller's own, one that the caller manages, or one of the caller's customer.
    pub fn user(&self, caller: &Caller, id: Uuid) -> Result<Arc<User>, RegistryError> {
        let user = self.registry.user_by_id(id);
        let own = caller.user_id() == Some(id);
        let seen = user.filter(|user| own || self.sees_user(caller, user));
        seen.ok_or_else(|| RegistryError::unknown("user", id))
    }

    /// A page of the users of a tenant that the caller sees, of those for which `wanted` holds. Users of other tenants are for
    /// administrators of the installation.
    pub fn users_page(
        &self,
        caller: &Caller,
        tenant: Uuid,
        request: PageRequest<'_>,
        wanted: impl Fn(&User) -> bool,
    ) -> Result<Page<Arc<User>>, RegistryError> {
        caller.check(Action::Read)?;
        self.check_tenant_of_users(caller, tenant)?;
        let wanted = |user: &User| self.sees_user(caller, user) && wanted(user);
        self.registry.users_page(tenant, request, wanted)
    }

    /// Adds a user to a tenant. One without a password gets an activation. Waits for the disk.
    pub fn create_user(
        &self,
        caller: &Caller,
        tenant: Uuid,
        new: NewUser<'_>,
    ) -> Result<Arc<User>, RegistryError> {
        caller.check(Action::ManageUsers)?;
        self.check_tenant_of_users(caller, tenant)?;
        let user = self.registry.create_user(tenant, new)?;
        let subject = format!("{} as {}", user.login, user.role);
        self.audit_of(caller, "add user", &subject, EntityId::of(EntityKind::User, user.id));
        Ok(user)
    }

    /// Changes a user. Callers without the permission to manage users may change their own names, phone number and additional info.
    /// Waits for the disk.
    pub fn change_user(
        &self,
        caller: &Caller,
        id: Uuid,
        new: NewUser<'_>,
        version: Option<i64>,
    ) -> Result<Arc<User>, RegistryError> {
        let old = self.user(caller, id)?;
        let same =
            old.login == new.login.to_lowercase() && old.role == new.role && old.customer == new.customer;
        // An API key could otherwise be more than its user lent to it.
        let own = caller.user_id() == Some(id) && caller.api_key_id().is_none();
        if !(own && same) {
            caller.check(Action::ManageUsers)?;
        }
        let user = self.registry.change_user(old.tenant, id, new, version)?;
        self.audit_of(caller, "change user", &user.login, EntityId::of(EntityKind::User, id));
        Ok(user)
    }

    /// Deletes a user by id and ends the user's sessions. Waits for the disk.
    pub fn delete_user_by_id(&self, caller: &Caller, id: Uuid) -> Result<Arc<User>, Error> {
        caller.check(Action::ManageUsers)?;
        let user = self.user(caller, id)?;
        let owner = Entity::User(Arc::clone(&user));
        let user = self.delete_then_attributes(&owner, || self.registry.delete_user(&user.login))?;
        self.audit_of(caller, "delete user", &user.login, EntityId::of(EntityKind::User, id));
        Ok(user)
    }

    /// Lets a user log in, or ends the user's sessions and refuses further ones. Waits for the disk.
    pub fn set_user_enabled(&self, caller: &Caller, id: Uuid, enabled: bool) -> Result<(), RegistryError> {
        caller.check(Action::ManageUsers)?;
        let user = self.user(caller, id)?;
        self.registry.set_enabled(user.tenant, id, enabled)?;
        let act = if enabled { "enable user" } else { "disable user" };
        self.audit_of(caller, act, &user.login, EntityId::of(EntityKind::User, id));
        Ok(())
    }

    /// The activation of a user without a password. Waits for the disk.
    pub fn user_activation(&self, caller: &Caller, id: Uuid) -> Result<Activation, RegistryError> {
        caller.check(Action::ManageUsers)?;
        let user = self.user(caller, id)?;
        let activation = self.registry.activation(user.tenant, id)?;
        self.audit_of(caller, "read activation of user", &user.login, EntityId::of(EntityKind::User, id));
        Ok(activation)
    }

    /// Gives the caller's user another password, if `current` is the present one, and ends the other sessions. Slow like
    /// [`add_user`](Self::add_user).
    pub fn change_own_password(
        &self,
        caller: &Caller,
        current: &str,
        new: &str,
    ) -> Result<TokenPair, RegistryError> {
        let pair = self.registry.change_own_password(caller, current, new, system_now())?;
        self.audit(caller, "change own password", caller.login());
        Ok(pair)
    }

    fn sees_user(&self, caller: &Caller, user: &User) -> bool {
        caller.sees(user.tenant, user.customer)
            || self.check_installation(caller, Action::ManageTenants).is_ok()
    }

    fn check_tenant_of_users(&self, caller: &Caller, tenant: Uuid) -> Result<(), RegistryError> {
        let is_seen =
            caller.tenant() == tenant || self.check_installation(caller, Action::ManageTenants).is_ok();
        match is_seen {
            true => self.registry.tenant(tenant).map(drop),
            false => Err(RegistryError::unknown("tenant", tenant)),
        }
    }

    /// A user that the caller may manage. A user of another tenant is unknown.
    fn managed_user(&self, caller: &Caller, login: &str) -> Result<Arc<User>, RegistryError> {
        caller.check(Action::ManageUsers)?;
        let user = self.registry.user_by_login(login).filter(|user| user.tenant == caller.tenant());
        user.ok_or_else(|| RegistryError::unknown("user", login))
    }
}

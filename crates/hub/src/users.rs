//! Management of users, for callers with the permission.

use std::sync::Arc;

use crate::caller::{Action, Caller, Role};
use crate::hub::Hub;
use crate::registry::{RegistryError, User};

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

    /// Deletes a user and ends the user's sessions.
    pub fn delete_user(&self, caller: &Caller, login: &str) -> Result<Arc<User>, RegistryError> {
        let user = self.managed_user(caller, login)?;
        let user = self.registry.delete_user(&user.login)?;
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

    /// A user that the caller may manage. A user of another tenant is unknown.
    fn managed_user(&self, caller: &Caller, login: &str) -> Result<Arc<User>, RegistryError> {
        caller.check(Action::ManageUsers)?;
        let user = self.registry.user_by_login(login).filter(|user| user.tenant == caller.tenant());
        user.ok_or_else(|| RegistryError::unknown("user", login))
    }
}

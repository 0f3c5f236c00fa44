//! The caller of the hub.

use std::sync::Arc;

use uuid::Uuid;

use super::permission::{Action, Forbidden, Refused, Role};
use crate::registry::{ApiKey, User};

/// The party on whose behalf a door calls the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    tenant: Uuid,
    login: Arc<str>,
    role: Role,
    session: Option<UserSession>,
}

/// A user and the epoch of the user's sessions. A session ends when the user's epoch passes its own, and when its API key is
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UserSession {
    user: Uuid,
    epoch: i64,
    api_key: Option<Uuid>,
}

impl Caller {
    /// A user whose credentials were checked.
    pub fn user(user: &User) -> Self {
        let session = UserSession { user: user.id, epoch: user.session_epoch, api_key: None };
        let (tenant, login, role) = (user.tenant, user.login.as_str().into(), user.authority.role());
        Self { tenant, login, role, session: Some(session) }
    }

    /// A program with an API key of a user. It has the lower of both roles.
    pub(crate) fn api_key(user: &User, key: &ApiKey) -> Self {
        let session = UserSession { user: user.id, epoch: user.session_epoch, api_key: Some(key.id) };
        let role = key.role.min(user.authority.role());
        Self { role, session: Some(session), ..Self::user(user) }
    }

    /// A caller without a login.
    pub fn public(tenant: Uuid) -> Self {
        Self { tenant, login: Role::Public.name().into(), role: Role::Public, session: None }
    }

    /// A command that opens the data directory itself while no server runs.
    pub fn local(tenant: Uuid) -> Self {
        Self { tenant, login: "local".into(), role: Role::Administrator, session: None }
    }

    /// The tenant whose devices and tables the caller may see.
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// The login; `public` or `local` for a caller without one.
    pub fn login(&self) -> &str {
        &self.login
    }

    /// The role of the caller.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The id of the user; `None` for a caller without a login.
    pub fn user_id(&self) -> Option<Uuid> {
        self.session.map(|session| session.user)
    }

    /// The id of the API key that the caller has used.
    pub(crate) fn api_key_id(&self) -> Option<Uuid> {
        self.session.and_then(|session| session.api_key)
    }

    /// Whether the caller is a session of the user in the user's present epoch.
    pub(crate) fn is_of(&self, user: &User) -> bool {
        self.session.is_some_and(|session| session.user == user.id && session.epoch == user.session_epoch)
    }

    /// Whether the caller has the permission.
    pub fn may(&self, action: Action) -> bool {
        self.role >= action.needs()
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// [`Forbidden`] if the role of the caller lacks it.
    pub fn check(&self, action: Action) -> Result<(), Forbidden> {
        match self.may(action) {
            true => Ok(()),
            false => Err(self.forbidden(action, Refused::Role)),
        }
    }

    /// Checks that something belongs to the tenant of the caller.
    ///
    /// # Errors
    /// [`Forbidden`] if it belongs to another tenant.
    pub(crate) fn check_tenant(&self, owner: Uuid, action: Action) -> Result<(), Forbidden> {
        match self.tenant == owner {
            true => Ok(()),
            false => Err(self.forbidden(action, Refused::Tenant)),
        }
    }

    fn forbidden(&self, action: Action, refused: Refused) -> Forbidden {
        Forbidden { who: Arc::clone(&self.login), role: self.role, action, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_name_of_the_missing_role() {
        let public = Caller::public(Uuid::nil());
        assert!(public.check(Action::Read).is_ok());
        let refused = public.check(Action::ManageDevices).unwrap_err().to_string();
        assert_eq!(
            refused,
            "public has the role public and may not change devices; log in as a user with the role administrator"
        );
        assert!(Caller::local(Uuid::nil()).check(Action::ManageUsers).is_ok());
    }
}

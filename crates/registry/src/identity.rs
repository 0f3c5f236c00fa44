//! The caller of the hub.

use std::sync::Arc;

use uuid::Uuid;

use super::permission::{Action, Forbidden, Refused, Role, permits};
use super::user::{ApiKey, User};

/// The party on whose behalf a door calls the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    tenant: Uuid,
    customer: Option<Uuid>,
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
    /// The id of the session itself, if it has one.
    id: Option<Uuid>,
}

impl Caller {
    /// A user whose credentials were checked.
    pub fn user(user: &User) -> Self {
        let session = UserSession { user: user.id, epoch: user.session_epoch, api_key: None, id: None };
        let (tenant, customer, login) = (user.tenant, user.customer, user.login.as_str().into());
        Self { tenant, customer, login, role: user.role, session: Some(session) }
    }

    /// A program with an API key of a user. It may do what both roles permit.
    pub(crate) fn api_key(user: &User, key: &ApiKey) -> Self {
        let caller = Self::user(user);
        let session = caller.session.map(|session| UserSession { api_key: Some(key.id), ..session });
        Self { role: key.role.lower_of(user.role), session, ..caller }
    }

    /// The caller in a session that can be ended by its id.
    pub(crate) fn in_session(self, id: Option<Uuid>) -> Self {
        let session = self.session.map(|session| UserSession { id, ..session });
        Self { session, ..self }
    }

    /// A caller without a login.
    pub fn public(tenant: Uuid) -> Self {
        Self { login: Role::Public.name().into(), role: Role::Public, ..Self::local(tenant) }
    }

    /// A caller without a login to whom the operator gives a role in the tenant.
    pub fn open(tenant: Uuid, role: Role) -> Self {
        Self { login: "open".into(), role, ..Self::local(tenant) }
    }

    /// A device that asks for its credentials with the key and the secret of a device profile. The hub itself decides what it may.
    pub fn provisioning(tenant: Uuid) -> Self {
        Self { login: "provision".into(), ..Self::local(tenant) }
    }

    /// A command that opens the data directory itself while no server runs.
    pub fn local(tenant: Uuid) -> Self {
        let (customer, session) = (None, None);
        Self { tenant, customer, login: "local".into(), role: Role::Administrator, session }
    }

    /// The tenant whose devices and tables the caller may see.
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// The customer of the caller, who sees only what is assigned to it; `None` for a caller who sees the whole tenant.
    pub fn customer(&self) -> Option<Uuid> {
        self.customer
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
    pub fn api_key_id(&self) -> Option<Uuid> {
        self.session.and_then(|session| session.api_key)
    }

    /// The id of the caller's session, if it has one.
    pub(crate) fn session_id(&self) -> Option<Uuid> {
        self.session.and_then(|session| session.id)
    }

    /// Whether the caller is a session of the user in the user's present epoch.
    pub(crate) fn is_of(&self, user: &User) -> bool {
        self.session.is_some_and(|session| session.user == user.id && session.epoch == user.session_epoch)
    }

    /// Whether the caller has the permission.
    pub fn may(&self, action: Action) -> bool {
        permits(self.role, action)
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

    /// Whether the caller sees something of a tenant that is assigned to a customer, or to none. This is the only rule of visibility.
    pub fn sees(&self, tenant: Uuid, customer: Option<Uuid>) -> bool {
        self.tenant == tenant && (self.customer.is_none() || self.customer == customer)
    }

    /// Checks a permission on something of a tenant that is assigned to a customer, or to none.
    ///
    /// # Errors
    /// [`Forbidden`] if the role of the caller lacks the permission, or the caller does not see it.
    pub fn check_on(&self, action: Action, tenant: Uuid, customer: Option<Uuid>) -> Result<(), Forbidden> {
        self.check(action)?;
        match self.sees(tenant, customer) {
            true => Ok(()),
            false if self.tenant != tenant => Err(self.forbidden(action, Refused::Tenant)),
            false => Err(self.forbidden(action, Refused::Customer)),
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

    #[test]
    fn a_user_of_a_customer_sees_what_is_assigned_to_it() {
        let [tenant, customer, other] = [1, 2, 3].map(Uuid::from_u128);
        let user = User { tenant, customer: Some(customer), role: Role::Customer, ..User::default() };
        let caller = Caller::user(&user);
        assert!(caller.sees(tenant, Some(customer)));
        assert!(!caller.sees(tenant, Some(other)) && !caller.sees(tenant, None) && !caller.sees(other, None));
        let refused = caller.check_on(Action::Read, tenant, None).unwrap_err();
        assert_eq!(refused.refused, Refused::Customer);
        assert!(Caller::local(tenant).sees(tenant, Some(customer)));
        assert_eq!(
            Caller::local(tenant).check_on(Action::Read, other, None).unwrap_err().refused,
            Refused::Tenant
        );
    }
}

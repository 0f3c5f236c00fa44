//! Users and their API keys.

use model::Timestamp;
use uuid::Uuid;

use super::page::{Listed, SortProperty};
use crate::permission::Role;

/// A user, who logs in with a password.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the user.
    pub tenant: Uuid,
    /// The customer of the user, who then sees only what is assigned to it. A user has one exactly if the role is
    /// [`Role::Customer`].
    pub customer: Option<Uuid>,
    /// Login name in lower case, unique in the installation, such as `admin@tachograph.local`.
    pub login: String,
    /// Role of the user.
    pub role: Role,
    pub first_name: Option<Box<str>>,
    pub last_name: Option<Box<str>>,
    /// Phone number.
    pub phone: Option<Box<str>>,
    /// What clients keep with the user: JSON text.
    pub additional_info: Option<Box<str>>,
    /// When the user was added, in whole milliseconds.
    pub created_at: Timestamp,
    /// Whether the user may log in.
    pub enabled: bool,
    /// When the password was last set.
    pub password_changed_at: Timestamp,
    /// Grows with every new password, role or customer. Sessions of an earlier epoch are over.
    pub session_epoch: i64,
    /// Grows with each change.
    pub version: i64,
}

impl User {
    /// ThingsBoard's authority of the user. It has no word for viewers and operators of a tenant: they are shown like users of a
    /// customer.
    pub const fn authority(&self) -> &'static str {
        self.role.authority()
    }
}

impl Listed for User {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.login
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn text(&self, property: SortProperty) -> Option<&str> {
        match property {
            SortProperty::FirstName => self.first_name.as_deref(),
            SortProperty::LastName => self.last_name.as_deref(),
            _ => Some(&self.login),
        }
    }
}

/// A user to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewUser<'a> {
    /// Login name, unique in the installation.
    pub login: &'a str,
    /// The password. A user without one gets an activation link.
    pub password: Option<&'a str>,
    /// Role of the user; [`Role::Customer`] exactly with a customer.
    pub role: Role,
    /// The customer of the user.
    pub customer: Option<Uuid>,
    /// The other facts.
    pub facts: UserFacts<'a>,
}

/// What users and administrators write about a user.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserFacts<'a> {
    pub first_name: Option<&'a str>,
    pub last_name: Option<&'a str>,
    /// Phone number.
    pub phone: Option<&'a str>,
    /// What clients keep with the user: JSON text.
    pub additional_info: Option<&'a str>,
}

/// The token with which a user without a password chooses one.
#[derive(Clone, PartialEq, Eq)]
pub struct Activation {
    /// The secret of the link.
    pub token: String,
    /// When it expires; whole milliseconds.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Activation").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A key with which a program logs in as a user. The secret itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Identity.
    pub id: Uuid,
    pub user: Uuid,
    /// Name, unique for the user.
    pub name: String,
    /// The highest role of its sessions. A lower role of the user counts.
    pub role: Role,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// When it expires; never when it is `None`.
    pub expires_at: Option<Timestamp>,
}

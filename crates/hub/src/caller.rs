//! Who asks, and what they may do: decided here, once, for all doors.
//!
//! A door turns a credential into a [`Caller`] and asks [`Caller::check`] before it does what is asked.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::registry::User;

/// What somebody is within a tenant. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Anybody, where the operator allows reading without a login.
    Public,
    /// Reads devices and what they report.
    Viewer,
    /// Everything within the tenant.
    Administrator,
}

impl Role {
    /// The name that people write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Viewer => "viewer",
            Self::Administrator => "administrator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read devices and what they report: values, history, live updates, SQL.
    Read,
    /// Read what was refused and why: payloads that may hold what was meant for somebody else, such as a secret.
    ReadRefused,
    /// Add, rename and delete devices.
    ManageDevices,
    /// See or replace the credentials of devices.
    SeeCredentials,
    /// Look after tables: how long they keep rows.
    ManageTables,
    /// Import and export whole tables.
    MoveData,
    /// Check and back up the store.
    Maintenance,
    /// Add, change and delete users, and end their sessions.
    ManageUsers,
}

impl Action {
    /// The least role that may do it.
    const fn needs(self) -> Role {
        match self {
            Self::Read => Role::Public,
            Self::ReadRefused
            | Self::ManageDevices
            | Self::SeeCredentials
            | Self::ManageTables
            | Self::MoveData
            | Self::Maintenance
            | Self::ManageUsers => Role::Administrator,
        }
    }

    /// What follows after "may not".
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read devices and their values",
            Self::ReadRefused => "read refused messages",
            Self::ManageDevices => "change devices",
            Self::SeeCredentials => "see or change credentials of devices",
            Self::ManageTables => "look after tables",
            Self::MoveData => "import or export tables",
            Self::Maintenance => "check or back up the store",
            Self::ManageUsers => "manage users",
        }
    }
}

/// Somebody may not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{who} has the role {role} and may not {}; log in as a user with the role {}", .action.name(), .action.needs())]
pub struct Forbidden {
    /// Who asked.
    pub who: Arc<str>,
    /// What they are.
    pub role: Role,
    /// What they wanted.
    pub action: Action,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    tenant: Uuid,
    login: Arc<str>,
    role: Role,
    session: Option<UserSession>,
}

/// Which user, and which of the user's sessions: those of an earlier epoch are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UserSession {
    user: Uuid,
    epoch: i64,
}

impl Caller {
    /// A user who has proven to be it.
    pub fn user(user: &User) -> Self {
        let session = UserSession { user: user.id, epoch: user.session_epoch };
        let (tenant, login, role) = (user.tenant, user.login.as_str().into(), user.authority.role());
        Self { tenant, login, role, session: Some(session) }
    }

    /// Anybody.
    pub fn public(tenant: Uuid) -> Self {
        Self { tenant, login: Role::Public.name().into(), role: Role::Public, session: None }
    }

    /// Who has the data directory itself: a command on this machine while no server runs.
    pub fn local(tenant: Uuid) -> Self {
        Self { tenant, login: "local".into(), role: Role::Administrator, session: None }
    }

    /// The tenant whose things may be seen.
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// The login, or a word for who has none.
    pub fn login(&self) -> &str {
        &self.login
    }

    /// What the caller is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The user, if it is one.
    pub fn user_id(&self) -> Option<Uuid> {
        self.session.map(|session| session.user)
    }

    /// Whether the caller is the user as it is now.
    pub(crate) fn is_of(&self, user: &User) -> bool {
        self.session == Some(UserSession { user: user.id, epoch: user.session_epoch })
    }

    /// Whether the caller may do this.
    pub fn may(&self, action: Action) -> bool {
        self.role >= action.needs()
    }

    /// Refuses what the caller may not do.
    pub fn check(&self, action: Action) -> Result<(), Forbidden> {
        match self.may(action) {
            true => Ok(()),
            false => Err(Forbidden { who: Arc::clone(&self.login), role: self.role, action }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_reads_is_told_which_role_is_missing() {
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

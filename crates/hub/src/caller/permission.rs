//! Roles, and the operations that each role may do.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The role of a caller within a tenant. Each role includes the permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A caller without a login, if the operator allows public reading.
    Public,
    /// Reads devices and their values.
    Viewer,
    /// Does everything within the tenant.
    Administrator,
}

impl Role {
    /// The name in commands, requests and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Viewer => "viewer",
            Self::Administrator => "administrator",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let roles = [Self::Viewer, Self::Administrator];
        let found = roles.into_iter().find(|role| role.name() == name);
        found.ok_or_else(|| format!("unknown role {name:?}; use viewer or administrator"))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An operation that needs a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read devices and their values: latest values, history, live updates, SQL.
    Read,
    /// Read refused messages with their reasons. A payload may contain a secret that the device sent by mistake.
    ReadRefused,
    /// Read the administrative acts of all callers.
    ReadAudit,
    /// Write values and attributes of entities.
    Write,
    /// Add, rename and delete devices.
    ManageDevices,
    /// See or replace the credentials of devices.
    SeeCredentials,
    /// Set how long tables keep rows.
    ManageTables,
    /// Delete values, rows, series and tables.
    DeleteData,
    /// Import and export whole tables.
    MoveData,
    /// Check and back up the store.
    Maintain,
    /// Add, change and delete users, and end their sessions.
    ManageUsers,
    /// Add and delete tenants.
    ManageTenants,
}

impl Action {
    /// The lowest role that has the permission.
    pub(super) const fn needs(self) -> Role {
        match self {
            Self::Read => Role::Public,
            Self::ReadRefused
            | Self::ReadAudit
            | Self::Write
            | Self::ManageDevices
            | Self::SeeCredentials
            | Self::ManageTables
            | Self::DeleteData
            | Self::MoveData
            | Self::Maintain
            | Self::ManageUsers
            | Self::ManageTenants => Role::Administrator,
        }
    }

    /// The operation in words; they follow "may not" in an error.
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read devices and their values",
            Self::ReadRefused => "read refused messages",
            Self::ReadAudit => "read the audit table",
            Self::Write => "write values or attributes",
            Self::ManageDevices => "change devices",
            Self::SeeCredentials => "see or change credentials of devices",
            Self::ManageTables => "look after tables",
            Self::DeleteData => "delete data",
            Self::MoveData => "import or export tables",
            Self::Maintain => "check or back up the store",
            Self::ManageUsers => "manage users",
            Self::ManageTenants => "manage tenants",
        }
    }
}

/// The reason why a caller may not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The role lacks the permission.
    Role,
    /// It belongs to another tenant.
    Tenant,
}

/// The caller lacks a permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Forbidden {
    /// Login of the caller.
    pub who: Arc<str>,
    /// Role of the caller.
    pub role: Role,
    /// The refused operation.
    pub action: Action,
    /// The reason.
    pub refused: Refused,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, role, action, refused } = self;
        let (action_name, needs) = (action.name(), action.needs());
        match refused {
            Refused::Role => write!(
                f,
                "{who} has the role {role} and may not {action_name}; log in as a user with the role {needs}"
            ),
            Refused::Tenant => {
                write!(f, "{who} may not {action_name} of another tenant; log in as a user of that tenant")
            }
        }
    }
}

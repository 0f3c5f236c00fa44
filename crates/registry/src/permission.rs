//! Roles, and the operations that each role may do.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The role of a caller within a tenant. [`permits`] states what each may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// A caller without a login, if the operator allows public reading.
    #[default]
    Public,
    /// A user of a customer: reads, writes, commands and handles alarms of what is assigned to the customer.
    Customer,
    /// Reads within the tenant.
    Viewer,
    /// Reads, writes, commands and handles alarms within the tenant, and creates databases.
    Operator,
    /// Does everything within the tenant.
    Administrator,
}

impl Role {
    /// The roles that a user can have.
    pub const OF_USERS: [Self; 4] = [Self::Customer, Self::Viewer, Self::Operator, Self::Administrator];

    /// The name in commands, requests and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Customer => "customer",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// ThingsBoard's authority of a user with the role. It has no word for viewers and operators of a tenant: they are shown like
    /// users of a customer.
    pub const fn authority(self) -> &'static str {
        match self {
            Self::Administrator => "TENANT_ADMIN",
            Self::Public | Self::Customer | Self::Viewer | Self::Operator => "CUSTOMER_USER",
        }
    }

    /// Whether the role permits everything that another one permits.
    pub fn includes(self, other: Self) -> bool {
        Action::ALL.into_iter().all(|action| permits(self, action) || !permits(other, action))
    }

    /// The role that permits only what both permit.
    pub(crate) fn lower_of(self, other: Self) -> Self {
        if self.includes(other) { other } else { self }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::OF_USERS.into_iter().find(|role| role.name() == name);
        found.ok_or_else(|| {
            let names = Self::OF_USERS.map(Self::name).join(", ");
            format!("unknown role {name:?}; the roles are {names}")
        })
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
    /// Read entities and their values: latest values, history, live updates, SQL, attributes, alarms.
    Read,
    /// Write telemetry, and client and server attributes.
    Write,
    /// Call procedures of devices, read stored calls, and write shared attributes.
    Command,
    /// Acknowledge, clear, assign and comment alarms.
    ManageAlarms,
    /// Read refused messages with their reasons. A payload may contain a secret that the device sent by mistake.
    ReadRefused,
    /// Read the administrative acts of all callers.
    ReadAudit,
    /// Add, change, assign and delete devices.
    ManageDevices,
    /// Add, change, assign and delete customers, profiles, assets, entity views and relations.
    ManageEntities,
    /// See or replace the credentials of devices.
    SeeCredentials,
    /// Create databases for the time-series interfaces. Their writers do it before they write.
    CreateDatabases,
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

/// Whether a role permits an operation, within what the caller sees.
pub const fn permits(role: Role, action: Action) -> bool {
    match role {
        Role::Public | Role::Viewer => matches!(action, Action::Read),
        Role::Customer => is_of_operation(action),
        // A user of a customer has no tables.
        Role::Operator => is_of_operation(action) || matches!(action, Action::CreateDatabases),
        Role::Administrator => true,
    }
}

/// Whether an operation is one of who works with devices.
const fn is_of_operation(action: Action) -> bool {
    matches!(action, Action::Read | Action::Write | Action::Command | Action::ManageAlarms)
}

impl Action {
    /// All operations.
    pub const ALL: [Self; 16] = [
        Self::Read,
        Self::Write,
        Self::Command,
        Self::ManageAlarms,
        Self::ReadRefused,
        Self::ReadAudit,
        Self::ManageDevices,
        Self::ManageEntities,
        Self::SeeCredentials,
        Self::CreateDatabases,
        Self::ManageTables,
        Self::DeleteData,
        Self::MoveData,
        Self::Maintain,
        Self::ManageUsers,
        Self::ManageTenants,
    ];

    /// The lowest role of a tenant that permits the operation.
    fn needs(self) -> Role {
        let roles = [Role::Viewer, Role::Operator];
        roles.into_iter().find(|role| permits(*role, self)).unwrap_or(Role::Administrator)
    }

    /// The operation in words; they follow "may not" in an error.
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read devices and their values",
            Self::Write => "write values and attributes",
            Self::Command => "call devices or set their shared attributes",
            Self::ManageAlarms => "handle alarms",
            Self::ReadRefused => "read refused messages",
            Self::ReadAudit => "read the audit table",
            Self::ManageDevices => "change devices",
            Self::ManageEntities => "change customers, profiles, assets, entity views or relations",
            Self::SeeCredentials => "see or change credentials of devices",
            Self::CreateDatabases => "create databases",
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
    /// It is not assigned to the caller's customer.
    Customer,
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
            Refused::Customer => write!(
                f,
                "{who} may not {action_name} of what is not assigned to the customer; ask an administrator to assign it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_permits_what_the_table_says() {
        let permitted = |role| Action::ALL.into_iter().filter(|action| permits(role, *action)).count();
        let counts = [Role::Public, Role::Viewer, Role::Customer, Role::Operator, Role::Administrator];
        assert_eq!(counts.map(permitted), [1, 1, 4, 5, 16]);
        assert!(Role::Operator.includes(Role::Customer) && !Role::Customer.includes(Role::Operator));
        assert!(!permits(Role::Operator, Action::ManageDevices) && permits(Role::Customer, Action::Command));
        assert_eq!((Action::Read.needs(), Action::Write.needs()), (Role::Viewer, Role::Operator));
        assert_eq!(Action::DeleteData.needs(), Role::Administrator);
    }

    #[test]
    fn two_roles_permit_what_both_permit() {
        assert_eq!(Role::Customer.lower_of(Role::Viewer), Role::Viewer);
        assert_eq!(Role::Viewer.lower_of(Role::Administrator), Role::Viewer);
        assert_eq!(Role::Administrator.lower_of(Role::Operator), Role::Operator);
        assert!(!Role::Viewer.includes(Role::Customer));
    }

    #[test]
    fn roles_of_users_have_names_that_parse_back() {
        for role in Role::OF_USERS {
            assert_eq!(role.name().parse(), Ok(role));
        }
        assert!("public".parse::<Role>().unwrap_err().contains("customer, viewer, operator, administrator"));
    }
}

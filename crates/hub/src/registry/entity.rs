//! The entities of the registry: tenants, users, profiles, devices.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::{TableName, Timestamp};
use store::Durability;
use uuid::Uuid;

use super::error::RegistryError;
use crate::caller::Role;

/// A tenant. Users see only the devices of their own tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Identity.
    pub id: Uuid,
    /// Name, unique in the installation.
    pub name: String,
}

/// The authority of a user, in ThingsBoard's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// Administers the installation.
    SysAdmin,
    /// Does everything within the tenant.
    TenantAdmin,
    /// Reads within the tenant.
    CustomerUser,
}

impl Authority {
    /// All of them, most powerful first.
    pub const ALL: [Self; 3] = [Self::SysAdmin, Self::TenantAdmin, Self::CustomerUser];

    /// ThingsBoard's name, used in session tokens and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "SYS_ADMIN",
            Self::TenantAdmin => "TENANT_ADMIN",
            Self::CustomerUser => "CUSTOMER_USER",
        }
    }

    /// The role of a user with this authority.
    pub const fn role(self) -> Role {
        match self {
            Self::SysAdmin | Self::TenantAdmin => Role::Administrator,
            Self::CustomerUser => Role::Viewer,
        }
    }

    /// The authority for the role with this name.
    pub fn of_role(name: &str) -> Result<Self, RegistryError> {
        let roles = [Self::TenantAdmin, Self::CustomerUser];
        roles.into_iter().find(|authority| authority.role().name() == name).ok_or_else(|| {
            let (first, second) = (Role::Administrator, Role::Viewer);
            let reason = format!("{name:?} is not known; the roles are {first} and {second}");
            RegistryError::Invalid { what: "role", reason }
        })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Authority {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|authority| authority.name() == name).ok_or_else(|| {
            format!("unknown authority {name:?}; use SYS_ADMIN, TENANT_ADMIN or CUSTOMER_USER")
        })
    }
}

/// A user, who logs in with a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the user.
    pub tenant: Uuid,
    /// Login name in lower case, unique in the installation, such as `admin@tachograph.local`.
    pub login: String,
    /// Authority of the user.
    pub authority: Authority,
    /// When the password was last set.
    pub password_changed_at: Timestamp,
    /// Grows with every new password or role. Sessions of an earlier epoch are over.
    pub session_epoch: i64,
}

/// A key with which a program logs in as a user. The secret itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Identity.
    pub id: Uuid,
    /// Its user.
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

/// The type of a device: the table of its rows and the durability of its acks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the profile.
    pub tenant: Uuid,
    /// Name, unique in the tenant.
    pub name: String,
    /// Table of the rows of its devices.
    pub table: TableName,
    /// Durability that an ack to its devices promises.
    pub durability: Durability,
}

/// A device, which reports values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Identity.
    pub id: Uuid,
    /// Tenant of the device.
    pub tenant: Uuid,
    /// Name, unique in the tenant; the tag `device` of its series.
    pub name: String,
    /// Profile of the device. Devices of one profile share the object.
    pub profile: Arc<Profile>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
    /// Whether it is a gateway: it speaks for the devices behind it.
    pub gateway: bool,
    /// The id of the gateway that last connected this device, also after that gateway was deleted.
    pub last_gateway: Option<Uuid>,
}

/// A device to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewDevice<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Name of the profile; `default` when it is `None`.
    pub profile: Option<&'a str>,
    /// Access token; a random one when it is `None`.
    pub token: Option<&'a str>,
    /// Whether it is a gateway.
    pub gateway: bool,
}

/// New properties of a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceChange<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Whether it is a gateway; as before when it is `None`.
    pub gateway: Option<bool>,
}

/// Many devices to add: `<prefix><n>` for `count` numbers from `start_index` on.
#[derive(Debug, Clone, Copy, Default)]
pub struct BulkDevices<'a> {
    /// Number of devices.
    pub count: usize,
    /// The first number.
    pub start_index: u64,
    /// Prefix of the names.
    pub prefix: &'a str,
    /// Prefix of the access tokens; random tokens when it is `None`.
    pub token_prefix: Option<&'a str>,
    /// Name of the profile; `default` when it is `None`.
    pub profile: Option<&'a str>,
    /// Keep an existing device with the same name instead of refusing the whole request. Its token and profile must match,
    /// if the request names them.
    pub existing_ok: bool,
}

/// A device with its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Provisioned {
    /// The device.
    pub device: Arc<Device>,
    /// Its access token.
    pub token: Arc<str>,
    /// Whether this request created it; `false` for one that was kept.
    pub created: bool,
}

impl fmt::Debug for Provisioned {
    /// Leaves out the token: it is a secret, and debug output ends in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, created, .. } = self;
        f.debug_struct("Provisioned")
            .field("device", device)
            .field("created", created)
            .finish_non_exhaustive()
    }
}

/// A request for a page of a listing.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// Number of the page, from 0.
    pub page: usize,
    /// Entries per page, 1 to [`model::limits::PAGE_DEVICES_MAX`].
    pub page_size: usize,
    /// Only names that contain this text, ignoring case; all when it is `None` or empty.
    pub filter: Option<&'a str>,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, sorted by name.
    pub data: Vec<T>,
    /// Number of pages.
    pub total_pages: usize,
    /// Number of entries on all pages.
    pub total_elements: usize,
    /// Whether a page follows.
    pub has_next: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_have_names_that_parse_back() {
        for authority in Authority::ALL {
            assert_eq!(authority.name().parse(), Ok(authority));
        }
        assert_eq!(Authority::of_role("viewer").unwrap(), Authority::CustomerUser);
        assert!(Authority::of_role("public").unwrap_err().to_string().contains("administrator and viewer"));
        assert!("ROOT".parse::<Authority>().unwrap_err().contains("TENANT_ADMIN"));
    }
}

//! What the registry keeps.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::Timestamp;
use store::Durability;
use uuid::Uuid;

use super::RegistryError;
use crate::caller::Role;

/// An isolation boundary: users see the devices of their tenant only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Identity.
    pub id: Uuid,
    /// Name, unique in the installation.
    pub name: String,
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The installation: tenants.
    SysAdmin,
    /// Everything within the tenant.
    TenantAdmin,
    /// Reading within the tenant.
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

    /// The role that comes with it.
    pub const fn role(self) -> Role {
        match self {
            Self::SysAdmin | Self::TenantAdmin => Role::Administrator,
            Self::CustomerUser => Role::Viewer,
        }
    }

    /// What a user with the role of that name gets.
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

/// Somebody who logs in with a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Identity.
    pub id: Uuid,
    /// Where the user belongs.
    pub tenant: Uuid,
    /// Login name in lower case, unique in the installation, such as `admin@tachograph.local`.
    pub login: String,
    /// What the user may do.
    pub authority: Authority,
    /// When the password was set last.
    pub password_changed_at: Timestamp,
    /// Grows with every new password or role. Sessions of an earlier epoch are over.
    pub session_epoch: i64,
}

/// The type of devices: where their rows go and what their acks promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Identity.
    pub id: Uuid,
    /// Where the profile belongs.
    pub tenant: Uuid,
    /// Name, unique in the tenant.
    pub name: String,
    /// The table that its devices write to.
    pub table: String,
    /// What an ack to its devices promises.
    pub durability: Durability,
}

/// A named thing that reports values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Identity.
    pub id: Uuid,
    /// Where the device belongs.
    pub tenant: Uuid,
    /// Name, unique in the tenant; the tag `device` of its series.
    pub name: String,
    /// Its type. Devices of one profile share it.
    pub profile: Arc<Profile>,
    /// When it was added; whole milliseconds.
    pub created_at: Timestamp,
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
}

/// Many devices to add: `<prefix><n>` for `count` numbers from `start_index` on.
#[derive(Debug, Clone, Copy, Default)]
pub struct BulkDevices<'a> {
    /// How many.
    pub count: usize,
    /// The first number.
    pub start_index: u64,
    /// What stands before the number in the names.
    pub prefix: &'a str,
    /// What stands before the number in the access tokens; random tokens when it is `None`.
    pub token_prefix: Option<&'a str>,
    /// Name of the profile; `default` when it is `None`.
    pub profile: Option<&'a str>,
    /// Keep a device that is there already with the same name and the wanted token and profile (any token or profile
    /// when none is wanted) instead of refusing the whole request.
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
    /// Leaves the token out: it is a secret, and debug output ends in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, created, .. } = self;
        f.debug_struct("Provisioned")
            .field("device", device)
            .field("created", created)
            .finish_non_exhaustive()
    }
}

/// Which part of a listing is wanted.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// Number of the page, from 0.
    pub page: usize,
    /// Entries per page, 1 to [`model::limits::PAGE_DEVICES_MAX`].
    pub page_size: usize,
    /// Only names that hold this text, in whatever case; all when it is `None` or empty.
    pub filter: Option<&'a str>,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, sorted by name.
    pub data: Vec<T>,
    /// How many pages there are.
    pub total_pages: usize,
    /// How many entries there are on all pages.
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

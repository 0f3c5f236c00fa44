//! Tenants, device profiles and devices.

use std::fmt;
use std::sync::Arc;

use model::{Durability, TableName, Timestamp};
use payload_schema::PayloadSchemas;
use uuid::Uuid;

use super::contact::Contact;
use super::credentials::Credentials;
use super::package_ids::{PackageChange, PackageIds};
use super::page::{Listed, SortProperty};
use super::provision_terms::ProvisionTerms;
use super::tenant_limits::TenantLimits;
use crate::topic_rights::TopicRights;

/// A tenant. Users see only the devices of their own tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Identity.
    pub id: Uuid,
    /// Name, unique in the installation.
    pub name: String,
    pub contact: Contact,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<Box<str>>,
    /// What its devices and users may do in a second.
    pub limits: TenantLimits,
    /// When it was added, in whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

impl Listed for Tenant {
    fn id(&self) -> Uuid {
        self.id
    }

    /// A tenant belongs to itself.
    fn tenant(&self) -> Uuid {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn text(&self, property: SortProperty) -> Option<&str> {
        self.contact.text(property).unwrap_or(Some(&self.name))
    }
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
    /// Its kind for.
    pub description: Option<Box<str>>,
    /// ThingsBoard's `profileData`, as the client sent it: JSON text. [`provision`](Self::provision) has what it says of that.
    pub data: Option<Box<str>>,
    /// The topics that its devices may use, as [`data`](Self::data) lists them.
    pub topics: TopicRights,
    /// The form of the payloads of its devices, as [`data`](Self::data) says.
    pub payloads: PayloadSchemas,
    /// On which terms it gives credentials to devices that ask for them.
    pub provision: ProvisionTerms,
    /// The packages of its devices that have none of their own.
    pub packages: PackageIds,
    /// Whether devices that are added without a profile get it. One profile of each tenant is it.
    pub is_default: bool,
    /// When it was added, in whole milliseconds.
    pub created_at: Timestamp,
    /// Grows with each change.
    pub version: i64,
}

impl Listed for Profile {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }
}

/// The properties of a device profile that clients set.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProfileFields<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Its kind for.
    pub description: Option<&'a str>,
    /// ThingsBoard's `profileData`: JSON text.
    pub data: Option<&'a str>,
    /// On which terms it gives credentials. A profile keeps its terms if it is `None`.
    pub provision: Option<&'a ProvisionTerms>,
    /// The packages of its devices.
    pub packages: PackageChange,
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
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// A second name, for people.
    pub label: Option<Box<str>>,
    /// What clients keep with it: JSON text, without the members that [`gateway`](Self::gateway) and
    /// [`last_gateway`](Self::last_gateway) have. [`info`](Self::info) has all.
    pub additional_info: Option<Box<str>>,
    /// The packages of this device; for a kind without one that of the profile counts ([`packages`](Self::packages)).
    pub own_packages: PackageIds,
    /// Grows with each change.
    pub version: i64,
}

impl Device {
    /// The packages of the device: its own, and those of its profile.
    pub fn packages(&self) -> PackageIds {
        self.own_packages.or(self.profile.packages)
    }

    /// ThingsBoard's `additionalInfo`: what clients keep with the device, whether it is a gateway, and the gateway that last
    /// connected it. `null` without any.
    pub fn info(&self) -> serde_json::Value {
        let stored = self.additional_info.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let mut info = stored.unwrap_or(serde_json::Value::Null);
        if self.gateway {
            info["gateway"] = true.into();
        }
        if let Some(gateway) = self.last_gateway {
            info["lastConnectedGateway"] = gateway.to_string().into();
        }
        info
    }
}

impl Listed for Device {
    fn id(&self) -> Uuid {
        self.id
    }

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    fn text(&self, property: SortProperty) -> Option<&str> {
        match property {
            SortProperty::Label => self.label(),
            SortProperty::Type => Some(&self.profile.name),
            _ => Some(&self.name),
        }
    }
}

/// A device to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewDevice<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Name of the profile; `default` when it is `None`.
    pub profile: Option<&'a str>,
    /// Access token; a random one when it is `None` and there are no other credentials.
    pub token: Option<&'a str>,
    /// Credentials of any kind; `None` when it has a token.
    pub credentials: Option<&'a Credentials>,
    /// Whether it is a gateway.
    pub gateway: bool,
    /// A second name, for people.
    pub label: Option<&'a str>,
    /// What clients keep with it: JSON text of an object.
    pub additional_info: Option<&'a str>,
    /// The customer that it is assigned to.
    pub customer: Option<Uuid>,
    /// Packages of its own.
    pub packages: PackageIds,
}

/// New properties of a device. Those that are `None` stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceChange<'a> {
    /// Name, unique in the tenant.
    pub name: &'a str,
    /// Whether it is a gateway.
    pub gateway: Option<bool>,
    /// The id of its profile. Later values go to the table of that profile; earlier ones stay where they are.
    pub profile: Option<Uuid>,
    /// Its label; `Some(None)` removes it.
    pub label: Option<Option<&'a str>>,
    /// What clients keep with it; `Some(None)` removes it.
    pub additional_info: Option<Option<&'a str>>,
    /// Its customer; `Some(None)` ends the assignment.
    pub customer: Option<Option<Uuid>>,
    /// Its own packages.
    pub packages: PackageChange,
    /// The version that the caller has seen. Another one is refused; `None` overwrites any.
    pub version: Option<i64>,
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
    pub device: Arc<Device>,
    pub credentials: Credentials,
    /// Whether this request created it; `false` for one that was kept.
    pub created: bool,
}

impl fmt::Debug for Provisioned {
    /// Leaves out the credentials: they are secret, and debug output ends in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, created, .. } = self;
        f.debug_struct("Provisioned")
            .field("device", device)
            .field("created", created)
            .finish_non_exhaustive()
    }
}

//! Plans new devices: what a request creates, keeps or refuses.

use std::sync::Arc;

use model::Timestamp;
use model::name::check_tag_value;
use uuid::Uuid;

use super::credentials::Credentials;
use super::entity::{Device, Profile, Provisioned};
use super::error::RegistryError;
use super::file;
use super::index::Index;
use super::package_ids::PackageIds;

/// The common properties of all devices of a request.
pub(super) struct Request<'a> {
    pub(super) tenant: Uuid,
    pub(super) profile: Option<&'a str>,
    pub(super) existing_ok: bool,
    pub(super) kind: Kind,
}

/// The common parts of the new devices of a request besides their profile.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) gateway: bool,
    pub(super) last_gateway: Option<Uuid>,
    pub(super) customer: Option<Uuid>,
    pub(super) label: Option<Box<str>>,
    pub(super) additional_info: Option<Box<str>>,
    pub(super) packages: PackageIds,
}

/// A device to create.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// A random access token if it is `None`.
    pub(super) credentials: Option<NewCredentials>,
}

/// The credentials of a device to create.
#[derive(Debug)]
pub(super) enum NewCredentials {
    /// An access token that was not checked yet.
    Token(String),
    Checked(Credentials),
}

impl NewCredentials {
    /// What the registry will find them by.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Token(token) => token,
            Self::Checked(credentials) => credentials.id(),
        }
    }

    fn checked(self) -> Result<Credentials, RegistryError> {
        match self {
            Self::Token(token) => Credentials::access_token(&token),
            Self::Checked(credentials) => Ok(credentials),
        }
    }
}

impl Wanted {
    /// The device to create, or the one that is there already.
    pub(super) fn plan(
        self,
        index: &Index,
        request: &Request<'_>,
        profile: &Arc<Profile>,
        now: Timestamp,
    ) -> Result<Provisioned, RegistryError> {
        check_tag_value(&self.name)?;
        if let Some(device) = index.devices().by_name(request.tenant, &self.name) {
            return self.keep(index, request, device);
        }
        let credentials = match self.credentials {
            Some(credentials) => credentials.checked()?,
            None => Credentials::random_token(),
        };
        check_is_free(index, &credentials, request.tenant, (&self.name, None))?;
        let Kind { gateway, last_gateway, customer, label, additional_info, packages } = &request.kind;
        let device = Device {
            id: file::new_id(),
            tenant: request.tenant,
            name: self.name,
            profile: Arc::clone(profile),
            created_at: now,
            gateway: *gateway,
            last_gateway: *last_gateway,
            customer: *customer,
            label: label.clone(),
            additional_info: additional_info.clone(),
            own_packages: *packages,
            version: 1,
        };
        Ok(Provisioned { device: Arc::new(device), credentials, created: true })
    }

    fn keep(
        self,
        index: &Index,
        request: &Request<'_>,
        device: &Arc<Device>,
    ) -> Result<Provisioned, RegistryError> {
        // A gateway does not change the profile of a device that is there.
        let same_profile = request.kind.last_gateway.is_some()
            || request.profile.is_none_or(|profile| profile == device.profile.name);
        let wanted = self.credentials.map(NewCredentials::checked).transpose()?;
        match index.device(device.id) {
            Some((device, credentials))
                if request.existing_ok
                    && same_profile
                    && wanted.is_none_or(|wanted| wanted == *credentials) =>
            {
                let (device, credentials) = (Arc::clone(device), credentials.clone());
                Ok(Provisioned { device, credentials, created: false })
            }
            _ => Err(RegistryError::exists("device", self.name)),
        }
    }
}

/// Refuses credentials that no client can log in with, and those whose id another device has: one of this tenant, or of another one.
pub(super) fn check_is_free(
    index: &Index,
    credentials: &Credentials,
    tenant: Uuid,
    (name, device): (&str, Option<Uuid>),
) -> Result<(), RegistryError> {
    credentials.check_reserved()?;
    match index.device_by_credentials(credentials.id()) {
        Some((holder, _)) if Some(holder.id) != device => Err(RegistryError::CredentialsTaken {
            kind: credentials.kind(),
            wanted_by: name.into(),
            held_by: (holder.tenant == tenant).then(|| holder.name.clone()),
        }),
        _ => Ok(()),
    }
}

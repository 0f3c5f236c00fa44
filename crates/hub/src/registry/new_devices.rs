//! Plans new devices: what a request creates, keeps or refuses.

use std::sync::Arc;

use model::Timestamp;
use model::limits::ACCESS_TOKEN_BYTES_MAX;
use model::name::check_tag_value;
use uuid::Uuid;

use super::checks::over_limit;
use super::entity::{Device, Profile, Provisioned};
use super::error::RegistryError;
use super::index::Index;
use super::{file, random};

/// The common properties of all devices of a request.
pub(super) struct Request<'a> {
    pub(super) tenant: Uuid,
    pub(super) profile: Option<&'a str>,
    pub(super) existing_ok: bool,
    pub(super) kind: Kind,
}

/// What the new devices of a request have in common besides their profile.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) gateway: bool,
    pub(super) last_gateway: Option<Uuid>,
    pub(super) customer: Option<Uuid>,
    pub(super) label: Option<Box<str>>,
    pub(super) additional_info: Option<Box<str>>,
}

/// A device to create.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) token: Option<String>,
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
        if let Some(device) = index.device_by_name(request.tenant, &self.name) {
            return self.keep(index, request, device);
        }
        let token: Arc<str> = self.token.unwrap_or_else(random::token).into();
        check_token(&token)?;
        check_token_is_free(index, &token, &self.name, None)?;
        let Kind { gateway, last_gateway, customer, label, additional_info } = &request.kind;
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
            version: 1,
        };
        Ok(Provisioned { device: Arc::new(device), token, created: true })
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
        match index.device(device.id) {
            Some((device, token))
                if request.existing_ok
                    && same_profile
                    && self.token.is_none_or(|wanted| *wanted == **token) =>
            {
                Ok(Provisioned { device: Arc::clone(device), token: Arc::clone(token), created: false })
            }
            _ => Err(RegistryError::exists("device", self.name)),
        }
    }
}

/// Checks an access token: visible ASCII, because it is used as MQTT user name and in URL paths.
pub(super) fn check_token(token: &str) -> Result<(), RegistryError> {
    over_limit("access token's length in bytes", token.len(), ACCESS_TOKEN_BYTES_MAX)?;
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = "must be 1 or more visible ASCII characters without blanks".into();
        return Err(RegistryError::Invalid { what: "access token", reason });
    }
    Ok(())
}

pub(super) fn check_token_is_free(
    index: &Index,
    token: &str,
    wanted_by: &str,
    device: Option<Uuid>,
) -> Result<(), RegistryError> {
    match index.device_by_token(token) {
        Some(holder) if Some(holder.id) != device => {
            let held_by = holder.name.clone();
            Err(RegistryError::TokenTaken { wanted_by: wanted_by.into(), held_by })
        }
        _ => Ok(()),
    }
}

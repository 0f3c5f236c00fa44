//! Provisioning: devices without credentials ask for some with the key and the secret of a device profile, as in ThingsBoard.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use model::Value;

use crate::attributes::Scope;
use crate::caller::Caller;
use crate::certificate::Certificate;
use crate::error::Error;
use crate::hub::Hub;
use crate::logins::LoginRefused;
use crate::provision_rates::PROVISIONS_PER_PROFILE_PER_SECOND;
use crate::registry::{
    Credentials, Device, NewDevice, PROVISION_GATEWAYS_MEMBER, Profile, ProvisionStrategy, RegistryError,
    is_equal_secret, provisions_gateways, random_name,
};

/// The server attribute that states whether a device has asked for its credentials.
const STATE: &str = "provisionState";
/// Its value for a device that may ask, or has asked.
const PROVISIONED: &str = "provisioned";

/// A request for credentials.
#[derive(Debug, Clone, Copy)]
pub struct ProvisionRequest<'a> {
    /// The key of the profile.
    pub key: &'a str,
    /// The secret of the profile.
    pub secret: &'a str,
    /// The name of the device. A new device without one gets a random name.
    pub device: Option<&'a str>,
    /// What a new device wants to log in with; a random access token if it is `None`.
    pub credentials: Option<&'a Credentials>,
    /// Whether a new device is a gateway.
    pub gateway: bool,
}

/// Why a device cannot get credentials.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionRefused {
    /// No profile has the key and the secret, or the profile has no credentials.
    #[error("no device profile gives credentials for this provisionDeviceKey and provisionDeviceSecret")]
    NotFound,
    /// The address has sent too many wrong keys or secrets.
    #[error(transparent)]
    TooManyGuesses(#[from] LoginRefused),
    /// The profile has given credentials to many devices in this second.
    #[error("the profile gives credentials to at most {max} devices a second; try again in {} ms", wait.as_millis() + 1)]
    TooManyDevices {
        /// The limit.
        max: u32,
        /// When there is room again.
        wait: std::time::Duration,
    },
    /// The strategy of the profile does not fit the device.
    #[error("{0}")]
    Device(String),
    /// The device cannot be added, or the server failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<RegistryError> for ProvisionRefused {
    fn from(error: RegistryError) -> Self {
        Self::Failed(error.into())
    }
}

impl Hub {
    /// Gives a device its credentials, and adds it if the profile says so. Waits for the disk.
    ///
    /// # Errors
    /// See [`ProvisionRefused`]. Nothing has changed, except if the server failed after it had added the device.
    pub fn provision(
        &self,
        peer: Option<IpAddr>,
        request: &ProvisionRequest<'_>,
    ) -> Result<(Arc<Device>, Credentials), ProvisionRefused> {
        let profile = self.provisioning_profile(peer, request)?;
        let max = PROVISIONS_PER_PROFILE_PER_SECOND.get();
        let taken = self.provision_rates.take(profile.id, Instant::now());
        taken.map_err(|wait| ProvisionRefused::TooManyDevices { max, wait })?;
        let caller = Caller::provisioning(profile.tenant);
        let device = match profile.provision.strategy {
            ProvisionStrategy::Disabled | ProvisionStrategy::X509CertificateChain => {
                return Err(ProvisionRefused::NotFound);
            }
            ProvisionStrategy::AllowCreateNewDevices => self.provision_new(&caller, &profile, request)?,
            ProvisionStrategy::CheckPreProvisionedDevices => {
                self.provision_known(&caller, &profile, request)?
            }
        };
        self.provisioned(&caller, device)
    }

    /// The device that a certificate of an authority names, with the credentials that it has from now on. The profile indicates whether a
    /// device that is not there is added, with the certificate. A device with an earlier certificate gets this one. Waits for the disk.
    ///
    /// The door has checked that the client owns the certificate and that the authority of the profile has signed it.
    ///
    /// # Errors
    /// See [`ProvisionRefused`].
    pub fn provision_by_chain(
        &self,
        profile: &Profile,
        certificate: &Certificate,
    ) -> Result<(Arc<Device>, Credentials), ProvisionRefused> {
        let terms = profile.provision.chain.as_ref().ok_or(ProvisionRefused::NotFound)?;
        let refused = |text: String| Err(ProvisionRefused::Device(text));
        let Some(name) = terms.device_name(certificate) else {
            return refused(
                "certificateRegExPattern finds no name of a device in the common name".to_owned(),
            );
        };
        let caller = Caller::provisioning(profile.tenant);
        let credentials = Credentials::certificate(&certificate.to_text())?;
        let Some(device) = self.registry.device_by_name(profile.tenant, &name) else {
            if !terms.allows_new() {
                return refused(format!("no device {name:?} is there, and the profile allows no new ones"));
            }
            let (profile, credentials) = (Some(&*profile.name), Some(&credentials));
            let new = NewDevice { name: &name, profile, credentials, ..NewDevice::default() };
            let device = self.add_device(&caller, new)?.device;
            return self.provisioned(&caller, device);
        };
        if device.profile.id != profile.id {
            return refused(format!("the device {name:?} has another profile"));
        }
        let known = self.registry.credentials_of(device.id);
        if known.as_ref().is_some_and(|known| *known != credentials && known.kind() == credentials.kind()) {
            self.registry.set_credentials(device.id, credentials)?;
            let id = crate::registry::EntityId::device(device.id);
            self.audit_of(&caller, "replace credentials of device", &name, id);
        }
        let known = self.registry.credentials_of(device.id);
        let known = known.ok_or_else(|| RegistryError::unknown("device", &name))?;
        Ok((device, known))
    }

    /// Notes that a device has its credentials, and returns them.
    fn provisioned(
        &self,
        caller: &Caller,
        device: Arc<Device>,
    ) -> Result<(Arc<Device>, Credentials), ProvisionRefused> {
        let state = [(STATE.to_owned(), Value::String(PROVISIONED.into()))];
        self.set_attributes(caller, &*device, Scope::Server, &state).map_err(Error::from)?;
        // Somebody can delete the device at this moment.
        let credentials = self.registry.credentials_of(device.id);
        let credentials = credentials.ok_or_else(|| RegistryError::unknown("device", &device.name))?;
        Ok((device, credentials))
    }

    /// The profile with the key and the secret of a request. Wrong ones count as wrong passwords of devices.
    fn provisioning_profile(
        &self,
        peer: Option<IpAddr>,
        request: &ProvisionRequest<'_>,
    ) -> Result<Arc<Profile>, ProvisionRefused> {
        let now = Instant::now();
        let attempt = self.device_logins().begin(peer, request.key, now)?;
        let found = self.registry.profile_by_provision_key(request.key).filter(|profile| {
            let secret = profile.provision.secret.as_deref();
            secret.is_some_and(|secret| is_equal_secret(secret, request.secret.as_bytes()))
        });
        attempt.end(found.is_some(), now);
        found.ok_or(ProvisionRefused::NotFound)
    }

    fn provision_new(
        &self,
        caller: &Caller,
        profile: &Profile,
        request: &ProvisionRequest<'_>,
    ) -> Result<Arc<Device>, ProvisionRefused> {
        if request.gateway && !provisions_gateways(profile.data.as_deref()).unwrap_or(false) {
            return Err(ProvisionRefused::Device(format!(
                "the profile {:?} does not allow gateways; {PROVISION_GATEWAYS_MEMBER} of its profileData allows them",
                profile.name
            )));
        }
        let random = random_name();
        let new = NewDevice {
            name: request.device.unwrap_or(&random),
            profile: Some(&profile.name),
            credentials: request.credentials,
            gateway: request.gateway,
            ..NewDevice::default()
        };
        Ok(self.add_device(caller, new)?.device)
    }

    /// A device that an administrator has added. The server attribute `provisionState` can keep it from its credentials.
    fn provision_known(
        &self,
        caller: &Caller,
        profile: &Profile,
        request: &ProvisionRequest<'_>,
    ) -> Result<Arc<Device>, ProvisionRefused> {
        let refused = |text: String| Err(ProvisionRefused::Device(text));
        let Some(name) = request.device else {
            return refused("deviceName is missing; name a device that is there already".to_owned());
        };
        let found = self.registry.device_by_name(profile.tenant, name);
        let Some(device) = found.filter(|device| device.profile.id == profile.id) else {
            return refused(format!("no device {name:?} of this profile is there"));
        };
        let states = self.attributes(caller, &*device, Scope::Server, Some(&[STATE.to_owned()]));
        let states = states.map_err(Error::from)?;
        if states.iter().any(|state| state.value != Value::String(PROVISIONED.into())) {
            return refused(format!(
                "the server attribute {STATE} of the device {name:?} is not {PROVISIONED:?}"
            ));
        }
        self.audit_of(
            caller,
            "read credentials of device",
            name,
            crate::registry::EntityId::device(device.id),
        );
        Ok(device)
    }
}

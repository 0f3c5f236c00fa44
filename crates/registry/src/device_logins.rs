//! Devices by their credentials, and changes of credentials.

use std::sync::Arc;

use uuid::Uuid;

use super::credentials::{Credentials, basic_id};
use super::entity::Device;
use super::error::RegistryError;
use super::handle::Registry;
use super::index::Index;
use super::new_devices::check_is_free;
use super::save;

/// A device with the credentials that it has used.
pub(super) type LoggedIn = (Arc<Device>, Credentials);

/// Why a client is not a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceCredentialsFault {
    /// No device has the client identifier and the user name.
    Unknown,
    /// A device has them, with another password.
    WrongPassword,
}

impl Registry {
    /// The device with this access token: hash lookups in memory under a read lock.
    pub fn device_by_token(&self, token: &str) -> Option<Arc<Device>> {
        let index = self.index.read();
        let (device, credentials) = index.device_by_credentials(token)?;
        credentials.token().map(|_| Arc::clone(device))
    }

    /// The device of an MQTT client, in ThingsBoard's order: by client identifier and user name, by client identifier without a user
    /// name, by user name, which may be an access token. An access token needs no password.
    pub fn device_of_client(
        &self,
        client_id: &str,
        user_name: Option<&str>,
        password: Option<&[u8]>,
    ) -> Result<LoggedIn, DeviceCredentialsFault> {
        let index = self.index.read();
        let client_id_part = Some(client_id).filter(|id| !id.is_empty());
        let found = basic_id(client_id_part, user_name)
            .and_then(|id| client_of(&index, &id, client_id, user_name))
            .or_else(|| client_of(&index, user_name?, client_id, user_name));
        let (device, credentials) = found.ok_or(DeviceCredentialsFault::Unknown)?;
        if let Credentials::MqttBasic(basic) = credentials
            && basic
                .password()
                .is_some_and(|wanted| password.is_none_or(|sent| !is_equal_secret(wanted, sent)))
        {
            return Err(DeviceCredentialsFault::WrongPassword);
        }
        Ok((Arc::clone(device), credentials.clone()))
    }

    /// The device with the certificate of this fingerprint.
    pub fn device_by_certificate(&self, fingerprint: &str) -> Option<LoggedIn> {
        let index = self.index.read();
        let (device, credentials) = index.device_by_credentials(fingerprint)?;
        let is_certificate = matches!(credentials, Credentials::X509Certificate(_));
        is_certificate.then(|| (Arc::clone(device), credentials.clone()))
    }

    /// The credentials of a device.
    pub fn credentials_of(&self, device: Uuid) -> Option<Credentials> {
        self.index.read().device(device).map(|(_, credentials)| credentials.clone())
    }

    /// Gives a device other credentials. The old ones are invalid from now on. Waits for the disk.
    pub fn set_credentials(&self, device: Uuid, credentials: Credentials) -> Result<(), RegistryError> {
        let mut writer = self.writer.lock();
        let device = self.device_by_id(device).ok_or_else(|| RegistryError::unknown("device", device))?;
        check_is_free(&self.index.read(), &credentials, device.tenant, (&device.name, Some(device.id)))?;
        self.commit(&mut writer, "replace credentials", |transaction| {
            save::credentials(transaction, device.id, &credentials)
        })?;
        self.index.write().put_device(device, credentials);
        self.forget_cached();
        Ok(())
    }

    /// Gives a device an access token, a random one if `token` is `None`, like [`set_credentials`](Self::set_credentials).
    pub fn set_token(&self, device: Uuid, token: Option<&str>) -> Result<Arc<str>, RegistryError> {
        let credentials = match token {
            Some(token) => Credentials::access_token(token)?,
            None => Credentials::random_token(),
        };
        let token = Arc::clone(credentials.id());
        self.set_credentials(device, credentials)?;
        Ok(token)
    }
}

/// The device whose credentials have this id, if they are for the client.
fn client_of<'a>(
    index: &'a Index,
    id: &str,
    client_id: &str,
    user_name: Option<&str>,
) -> Option<(&'a Arc<Device>, &'a Credentials)> {
    let found = index.device_by_credentials(id)?;
    let is_for = match found.1 {
        Credentials::AccessToken(token) => user_name == Some(token),
        Credentials::MqttBasic(basic) => basic.is_for(client_id, user_name),
        Credentials::X509Certificate(_) => false,
    };
    is_for.then_some(found)
}

/// Compares a secret in a time that depends on the length only.
pub fn is_equal_secret(wanted: &str, sent: &[u8]) -> bool {
    let pairs = wanted.as_bytes().iter().zip(sent);
    wanted.len() == sent.len() && pairs.fold(0, |different, (one, other)| different | (one ^ other)) == 0
}

//! What a device logs in with. Each device has credentials of one kind; ThingsBoard's names and rules.

use std::fmt;
use std::sync::Arc;

use model::limits::ACCESS_TOKEN_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::checks::{check_short, over_limit};
use super::credentials_kind::CredentialsKind;
use super::defaults::PROVISION_USER_NAME;
use super::error::RegistryError;
use super::limits::CERTIFICATE_BYTES_MAX;
use super::random;
use crate::certificate::{Certificate, sha3_hex};

/// The credentials of a device. They are secret, so their `Debug` output shows only the kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    AccessToken(Arc<str>),
    /// What an MQTT client sends in CONNECT.
    MqttBasic(Arc<MqttBasic>),
    X509Certificate(Arc<X509Certificate>),
}

/// Credentials of an MQTT client. The members that are there must all match.
#[derive(Clone, PartialEq, Eq)]
pub struct MqttBasic {
    id: Arc<str>,
    parts: Parts,
}

/// ThingsBoard's `BasicMqttCredentials`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Parts {
    client_id: Option<Box<str>>,
    user_name: Option<Box<str>>,
    password: Option<Box<str>>,
}

/// The certificate of a device.
#[derive(Clone, PartialEq, Eq)]
pub struct X509Certificate {
    fingerprint: Arc<str>,
    /// The certificate in ThingsBoard's form.
    value: Box<str>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl Credentials {
    /// A random access token.
    pub fn random_token() -> Self {
        Self::AccessToken(random::token().into())
    }

    /// An access token: visible ASCII, because it is used as MQTT user name and in paths of URLs.
    pub fn access_token(token: &str) -> Result<Self, RegistryError> {
        over_limit("access token's length in bytes", token.len(), ACCESS_TOKEN_BYTES_MAX)?;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "must be 1 or more visible ASCII characters without blanks".into();
            return Err(RegistryError::Invalid { what: "access token", reason });
        }
        Ok(Self::AccessToken(token.into()))
    }

    /// Credentials of an MQTT client. Empty texts count as none.
    ///
    /// # Errors
    /// There is neither client identifier nor user name, a password without user name (MQTT 3.1.1 has no such CONNECT), or a text
    /// that is too long.
    pub fn mqtt_basic(
        client_id: Option<&str>,
        user_name: Option<&str>,
        password: Option<&str>,
    ) -> Result<Self, RegistryError> {
        let invalid =
            |reason: &str| RegistryError::Invalid { what: "MQTT credentials", reason: reason.into() };
        let [client_id, user_name, password] =
            [client_id, user_name, password].map(|text| text.filter(|text| !text.is_empty()));
        for (what, text) in [("clientId", client_id), ("userName", user_name), ("password", password)] {
            check_short(what, text)?;
        }
        let id = basic_id(client_id, user_name)
            .ok_or_else(|| invalid("have neither clientId nor userName; set one of them"))?;
        if user_name.is_none() && password.is_some() {
            return Err(invalid("have a password and no userName; set both"));
        }
        let [client_id, user_name, password] =
            [client_id, user_name, password].map(|text| text.map(Box::from));
        let parts = Parts { client_id, user_name, password };
        Ok(Self::MqttBasic(Arc::new(MqttBasic { id: id.into(), parts })))
    }

    /// Credentials of an MQTT client from ThingsBoard's JSON text of them.
    pub fn mqtt_basic_of_json(text: &str) -> Result<Self, RegistryError> {
        let parts: Parts = serde_json::from_str(text).map_err(|_| RegistryError::Invalid {
            what: "MQTT credentials",
            reason: "must be a JSON text such as {\"clientId\":\"a\",\"userName\":\"b\",\"password\":\"c\"}"
                .into(),
        })?;
        Self::mqtt_basic(parts.client_id.as_deref(), parts.user_name.as_deref(), parts.password.as_deref())
    }

    /// A certificate: PEM, or only its Base64.
    pub fn certificate(text: &str) -> Result<Self, RegistryError> {
        over_limit("certificate's length in bytes", text.len(), CERTIFICATE_BYTES_MAX)?;
        let read = Certificate::from_text(text)
            .map_err(|reason| RegistryError::Invalid { what: "certificate", reason: reason.into() })?;
        let (fingerprint, value) = (read.fingerprint().into(), read.to_text().into());
        Ok(Self::X509Certificate(Arc::new(X509Certificate { fingerprint, value })))
    }

    /// Credentials as the file has them. They were checked before they got there.
    pub(super) fn stored(
        kind: CredentialsKind,
        id: Arc<str>,
        value: Option<&str>,
    ) -> Result<Self, RegistryError> {
        match (kind, value) {
            (CredentialsKind::AccessToken, _) => Ok(Self::AccessToken(id)),
            (CredentialsKind::MqttBasic, value) => Self::mqtt_basic_of_json(value.unwrap_or_default()),
            (CredentialsKind::X509Certificate, value) => {
                let value = value.unwrap_or_default().into();
                Ok(Self::X509Certificate(Arc::new(X509Certificate { fingerprint: id, value })))
            }
        }
    }

    /// Refuses the name of clients that ask for credentials, because it logs no device in.
    pub(super) fn check_reserved(&self) -> Result<(), RegistryError> {
        let name = match self {
            Self::AccessToken(token) => Some(&**token),
            Self::MqttBasic(basic) => basic.parts.user_name.as_deref().or(basic.parts.client_id.as_deref()),
            Self::X509Certificate(_) => None,
        };
        if name != Some(PROVISION_USER_NAME) {
            return Ok(());
        }
        let reason =
            format!("is {PROVISION_USER_NAME:?}, which devices without credentials send; choose another one");
        Err(RegistryError::Invalid { what: self.kind().words(), reason })
    }

    pub fn kind(&self) -> CredentialsKind {
        match self {
            Self::AccessToken(_) => CredentialsKind::AccessToken,
            Self::MqttBasic(_) => CredentialsKind::MqttBasic,
            Self::X509Certificate(_) => CredentialsKind::X509Certificate,
        }
    }

    /// What the registry finds them by; ThingsBoard's `credentialsId`.
    pub fn id(&self) -> &Arc<str> {
        match self {
            Self::AccessToken(token) => token,
            Self::MqttBasic(basic) => &basic.id,
            Self::X509Certificate(certificate) => &certificate.fingerprint,
        }
    }

    /// ThingsBoard's `credentialsValue`: JSON text of an MQTT client's, the certificate, none of a token.
    pub fn value(&self) -> Option<String> {
        match self {
            Self::AccessToken(_) => None,
            Self::MqttBasic(basic) => Some(serde_json::json!(basic.parts).to_string()),
            Self::X509Certificate(certificate) => Some(certificate.value.to_string()),
        }
    }

    /// The user name that a client must send; with an access token it is the token. `None` if the client may send any.
    pub fn user_name(&self) -> Option<&str> {
        match self {
            Self::AccessToken(token) => Some(token),
            Self::MqttBasic(basic) => basic.parts.user_name.as_deref(),
            Self::X509Certificate(_) => None,
        }
    }

    /// The access token, if they are one.
    pub fn token(&self) -> Option<&Arc<str>> {
        if let Self::AccessToken(token) = self { Some(token) } else { None }
    }
}

impl MqttBasic {
    /// Whether client identifier and user name of a CONNECT match.
    pub(super) fn is_for(&self, client_id: &str, user_name: Option<&str>) -> bool {
        let Parts { client_id: wanted, user_name: wanted_user, .. } = &self.parts;
        wanted.as_deref().is_none_or(|wanted| wanted == client_id)
            && wanted_user.as_deref().is_none_or(|wanted| Some(wanted) == user_name)
    }

    /// The password, if there is one.
    pub(super) fn password(&self) -> Option<&str> {
        self.parts.password.as_deref()
    }
}

/// What credentials of an MQTT client are found by; `None` without client identifier and user name.
pub(super) fn basic_id(client_id: Option<&str>, user_name: Option<&str>) -> Option<String> {
    match (client_id, user_name) {
        (None, None) => None,
        (None, Some(user_name)) => Some(user_name.to_owned()),
        (Some(client_id), None) => Some(sha3_hex(client_id)),
        (Some(client_id), Some(user_name)) => Some(sha3_hex(&format!("{client_id}|{user_name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(client_id: &str, user_name: &str, password: &str) -> Result<Credentials, String> {
        Credentials::mqtt_basic(Some(client_id), Some(user_name), Some(password))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_id_of_mqtt_credentials_is_thingsboards() {
        let id = |client_id, user_name| basic(client_id, user_name, "").unwrap().id().to_string();
        assert_eq!(id("", "driver"), "driver");
        assert_eq!(id("c1", ""), sha3_hex("c1"));
        assert_eq!(id("c1", "driver"), sha3_hex("c1|driver"));
    }

    #[test]
    fn mqtt_credentials_that_no_client_can_send_are_refused() {
        assert!(basic("", "", "p").unwrap_err().contains("neither clientId nor userName"));
        assert!(basic("c", "", "p").unwrap_err().contains("no userName"));
        for reserved in [basic("c", "provision", "p"), basic("provision", "", "")] {
            let refused = reserved.unwrap().check_reserved().unwrap_err().to_string();
            assert!(refused.contains("devices without credentials"), "{refused}");
        }
        assert!(Credentials::access_token("provision").unwrap().check_reserved().is_err());
        assert!(basic("provision", "u", "p").unwrap().check_reserved().is_ok());
        assert!(basic(&"x".repeat(256), "u", "p").unwrap_err().contains("255"));
        assert!(Credentials::mqtt_basic_of_json("[]").is_err());
        for text in ["", "7", "{\"username\":\"b\"}", "{\"userName\":7}"] {
            let error = Credentials::mqtt_basic_of_json(text).unwrap_err().to_string();
            assert!(error.contains("must be a JSON text"), "{text}: {error}");
        }
    }

    #[test]
    fn stored_credentials_come_back_and_debug_output_has_no_secret() {
        let params = rcgen::CertificateParams::new(["car".to_owned()]).unwrap();
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        for credentials in [
            Credentials::random_token(),
            basic("c", "u", "secret").unwrap(),
            Credentials::certificate(&certificate.pem()).unwrap(),
        ] {
            let value = credentials.value();
            let stored =
                Credentials::stored(credentials.kind(), Arc::clone(credentials.id()), value.as_deref());
            assert_eq!(stored.unwrap(), credentials);
            let debug = format!("{credentials:?}");
            assert!(!debug.contains("secret") && !debug.contains(&**credentials.id()), "{debug}");
            assert_eq!(credentials.kind().name().parse(), Ok(credentials.kind()));
        }
        assert!(
            "LWM2M_CREDENTIALS".parse::<CredentialsKind>().unwrap_err().contains("ACCESS_TOKEN, MQTT_BASIC")
        );
    }
}

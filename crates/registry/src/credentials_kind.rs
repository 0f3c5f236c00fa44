//! The kinds of credentials, with the names of ThingsBoard.

use std::str::FromStr;

/// The kinds of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialsKind {
    /// An access token: the user name of MQTT, a part of the path of HTTP.
    AccessToken,
    /// Client identifier, user name and password of MQTT.
    MqttBasic,
    /// A client TLS certificate.
    X509Certificate,
}

impl CredentialsKind {
    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessToken => "ACCESS_TOKEN",
            Self::MqttBasic => "MQTT_BASIC",
            Self::X509Certificate => "X509_CERTIFICATE",
        }
    }

    /// The name in sentences.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::AccessToken => "access token",
            Self::MqttBasic => "client identifier and user name",
            Self::X509Certificate => "certificate",
        }
    }
}

impl FromStr for CredentialsKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::AccessToken, Self::MqttBasic, Self::X509Certificate];
        let found = all.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            format!("{name:?}; the kinds of credentials are {}", all.map(CredentialsKind::name).join(", "))
        })
    }
}

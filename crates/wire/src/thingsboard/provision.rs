//! Provisioning: a device asks for credentials with the key and the secret of a device profile (ThingsBoard, `JsonConverter`).

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

/// The topic of requests.
pub const REQUEST_TOPIC: &str = "/provision/request";
/// The topic of answers.
pub const RESPONSE_TOPIC: &str = "/provision/response";

/// A request for credentials. Texts that are absent and empty texts are the same.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionRequest {
    /// The name of the device. The server chooses one if there is none.
    pub device_name: Option<String>,
    /// The key of the profile.
    pub provision_device_key: Option<String>,
    /// The secret of the profile.
    pub provision_device_secret: Option<String>,
    /// The kind of the credentials that a new device wants; an access token if there is none.
    pub credentials_type: Option<String>,
    /// The access token that a new device wants.
    pub token: Option<String>,
    /// The client identifier of MQTT that a new device wants.
    pub client_id: Option<String>,
    /// The user name of MQTT that a new device wants.
    pub username: Option<String>,
    /// The password of MQTT that a new device wants.
    pub password: Option<String>,
    /// The certificate of a new device: PEM, or its Base64.
    pub hash: Option<String>,
    /// Whether a new device is a gateway.
    pub gateway: Option<bool>,
}

impl fmt::Debug for ProvisionRequest {
    /// Leaves out the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvisionRequest").field("device_name", &self.device_name).finish_non_exhaustive()
    }
}

/// A payload that is not a request. The text is for the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not a request for credentials: {reason}")]
pub struct ProvisionPayloadError {
    reason: String,
}

impl ProvisionRequest {
    /// Reads a payload that is JSON. Members that are not of a request have no effect, as in ThingsBoard.
    pub fn parse(payload: &[u8]) -> Result<Self, ProvisionPayloadError> {
        let read: Self = serde_json::from_slice(payload)
            .map_err(|error| ProvisionPayloadError { reason: without_texts(&error) })?;
        read.checked()
    }

    /// Leaves out empty texts, and checks that the request has a key and a secret.
    pub(super) fn checked(mut self) -> Result<Self, ProvisionPayloadError> {
        let read = &mut self;
        let refused = |reason: String| ProvisionPayloadError { reason };
        for text in [
            &mut read.device_name,
            &mut read.provision_device_key,
            &mut read.provision_device_secret,
            &mut read.credentials_type,
            &mut read.token,
            &mut read.client_id,
            &mut read.username,
            &mut read.password,
            &mut read.hash,
        ] {
            text.take_if(|text| text.is_empty());
        }
        match (&read.provision_device_key, &read.provision_device_secret) {
            (Some(_), Some(_)) => Ok(self),
            (None, _) => Err(refused("provisionDeviceKey is missing".to_owned())),
            (_, None) => Err(refused("provisionDeviceSecret is missing".to_owned())),
        }
    }
}

/// Where the JSON is wrong. The library's own text may quote a secret.
pub(super) fn without_texts(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "a member has the wrong type, or appears twice",
        _ => "it is not a JSON object",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The credentials of the device.
    Accepted {
        /// Their kind.
        kind: &'static str,
        /// The token, the certificate, or an object with client identifier, user name and password.
        value: Value,
    },
    /// No profile has the key and the secret, or the profile has no credentials.
    NotFound,
    /// The device gets no credentials for another reason.
    Failed(String),
}

impl Answer {
    /// The answer as JSON text.
    pub fn json(&self) -> String {
        let json = match self {
            Self::Accepted { kind, value } => {
                json!({ "credentialsType": kind, "credentialsValue": value, "status": "SUCCESS" })
            }
            Self::NotFound => json!({ "errorMsg": "Provision data was not found!", "status": "NOT_FOUND" }),
            Self::Failed(reason) => {
                json!({ "errorMsg": format!("Failed to provision device! {reason}"), "status": "FAILURE" })
            }
        };
        json.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_thingsboards_client_is_read() {
        let payload = br#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s","username":"u","password":null,"clientId":"",
                           "credentialsType":"MQTT_BASIC","deviceName":"pump","gateway":true,"other":1}"#;
        let text = |text: &str| Some(text.to_owned());
        let expected = ProvisionRequest {
            device_name: text("pump"),
            provision_device_key: text("k"),
            provision_device_secret: text("s"),
            credentials_type: text("MQTT_BASIC"),
            username: text("u"),
            gateway: Some(true),
            ..ProvisionRequest::default()
        };
        assert_eq!(ProvisionRequest::parse(payload), Ok(expected));
    }

    #[test]
    fn a_payload_that_is_not_a_request_is_refused_without_quoting_it() {
        for (payload, part) in [
            (&b"secret"[..], "not a JSON object (line 1"),
            (b"", "not a JSON object"),
            (b"[1]", "wrong type"),
            (br#"{"provisionDeviceKey":"k","provisionDeviceSecret":7,"token":"secret"}"#, "wrong type"),
            (br#"{"provisionDeviceKey":"k","gateway":"secret","provisionDeviceSecret":"s"}"#, "wrong type"),
            (br#"{"provisionDeviceSecret":"secret"}"#, "provisionDeviceKey is missing"),
            (
                br#"{"provisionDeviceKey":"secret","provisionDeviceSecret":""}"#,
                "provisionDeviceSecret is missing",
            ),
        ] {
            let refused = ProvisionRequest::parse(payload).unwrap_err().to_string();
            assert!(refused.contains(part) && !refused.contains("secret\""), "{refused}");
        }
        let read = ProvisionRequest::parse(br#"{"provisionDeviceKey":"k","provisionDeviceSecret":"hidden"}"#);
        assert!(!format!("{read:?}").contains("hidden"));
    }

    #[test]
    fn answers_are_those_of_thingsboard() {
        let accepted = Answer::Accepted { kind: "ACCESS_TOKEN", value: "T1".into() };
        assert_eq!(
            accepted.json(),
            r#"{"credentialsType":"ACCESS_TOKEN","credentialsValue":"T1","status":"SUCCESS"}"#
        );
        assert_eq!(
            Answer::NotFound.json(),
            r#"{"errorMsg":"Provision data was not found!","status":"NOT_FOUND"}"#
        );
        let failed = Answer::Failed("It exists.".to_owned()).json();
        assert!(failed.starts_with(r#"{"errorMsg":"Failed to provision device! It exists.""#));
    }
}

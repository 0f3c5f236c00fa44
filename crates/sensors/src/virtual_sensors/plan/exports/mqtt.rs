//! `MQTTExporter`: the broker and the topic.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::plan::broker::{self, BrokerAddress, BrokerTls};
use crate::virtual_sensors::plan::params::Params;
use crate::virtual_sensors::plan::secret::Secret;

/// A topic of a broker that rows are published under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttExport {
    /// The name or address of the machine.
    pub host: String,
    pub port: u16,
    /// The certificates of an encrypted connection; `None` if it is not encrypted.
    pub tls: Option<BrokerTls>,
    /// The identifier of the client.
    pub client_id: String,
    pub topic: String,
    /// The user, if the broker wants one. GSN does not have the word.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<Secret>,
}

impl MqttExport {
    pub(super) fn target(&self) -> String {
        let scheme = if self.tls.is_some() { "mqtts" } else { "tcp" };
        format!("{scheme}://{}:{}, topic {}", self.host, self.port, self.topic)
    }
}

pub(super) fn read(params: &mut Params<'_>, sensor: &str) -> Result<MqttExport, Fault> {
    let uri = &params.needed("uri")?.value;
    let Some(address) = broker::address(&uri.value) else {
        // It may hold a password, so no message has it.
        let reason = "uri is not tcp://HOST:PORT or mqtts://HOST:PORT; the parameters user and password have the login";
        return Err(Fault::invalid(uri.place, reason));
    };
    let tls = address.tls(["cafile", "certfile", "keyfile"].map(|key| params.take(key)))?;
    let BrokerAddress { host, port, .. } = address;
    let client_id = params.text("client_id").unwrap_or_else(|| format!("tachograph-{sensor}"));
    let topic = match params.take("topic").map(|pair| &pair.value) {
        Some(said) if said.value.is_empty() || said.value.contains(['+', '#', '\0']) => {
            let reason = format!("topic is {:?}; it is the name of a topic, without + and #", said.value);
            return Err(Fault::invalid(said.place, reason));
        }
        Some(said) => said.value.clone(),
        None => sensor.to_owned(),
    };
    let (user, password) = (params.text("user"), params.text("password").map(Secret::new));
    Ok(MqttExport { host, port, tls, client_id, topic, user, password })
}

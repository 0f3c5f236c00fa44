//! `MQTTExporter`: the broker and the topic.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::plan::classes::Params;
use crate::virtual_sensors::plan::secret::Secret;

/// A topic of a broker that rows are published under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttExport {
    /// The name or address of the machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The identifier of the client.
    pub client_id: String,
    /// The topic.
    pub topic: String,
    /// The user, if the broker wants one. GSN does not have the word.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<Secret>,
}

impl MqttExport {
    pub(super) fn target(&self) -> String {
        format!("tcp://{}:{}, topic {}", self.host, self.port, self.topic)
    }
}

const SCHEMES: [&str; 2] = ["tcp://", "mqtt://"];

pub(super) fn read(params: &mut Params<'_>, sensor: &str) -> Result<MqttExport, Fault> {
    let uri = &params.needed("uri")?.value;
    let place = SCHEMES.iter().find_map(|scheme| uri.value.strip_prefix(scheme));
    let Some((host, port)) = place.and_then(address) else {
        let reason =
            format!("uri is {:?}; it is tcp://HOST:PORT, encrypted connections are not there", uri.value);
        return Err(Fault::invalid(uri.place, reason));
    };
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
    Ok(MqttExport { host, port, client_id, topic, user, password })
}

/// Host and port.
fn address(place: &str) -> Option<(String, u16)> {
    let place = place.trim_end_matches('/');
    let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0)?),
        None => (place, 1883),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty() && !host.contains('/')).then(|| (host.to_owned(), port))
}

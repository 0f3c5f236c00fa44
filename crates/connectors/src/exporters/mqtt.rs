//! The class MQTTExporter: each row is a message at QoS 1.

use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use virtual_sensors::{MqttExport, OutputRow, SensorOutput};
use wire::mqtt::client::{Event, Limits, Session};
use wire::mqtt::{Connect, ProtocolVersion, Publish, QoS};

use super::limits::{MQTT_ANSWER_TIMEOUT, MQTT_MESSAGES_MAX, MQTT_PACKET_BYTES_MAX, MQTT_READ_BYTES};
use super::row;
use crate::broker::{self, Stream};
use crate::exporter::Exporter;

/// The field whose text is the whole message, as in GSN.
const RAW_FIELD: &str = "raw_packet";

/// The version of GSN's client, which every broker speaks.
const VERSION: ProtocolVersion = ProtocolVersion::V311;

/// The topic of a broker.
pub(super) struct MqttExporter {
    output: Arc<SensorOutput>,
    export: MqttExport,
    targets: Arc<AllowedTargets>,
    connection: Option<Connection>,
}

impl MqttExporter {
    pub(super) fn new(output: Arc<SensorOutput>, export: MqttExport, targets: Arc<AllowedTargets>) -> Self {
        Self { output, export, targets, connection: None }
    }

    fn payload(&self, one: &OutputRow) -> Vec<u8> {
        match row::text(&self.output, one, RAW_FIELD) {
            Some(text) => text.as_bytes().to_vec(),
            None => row::row(&self.output, one).to_string().into_bytes(),
        }
    }
}

impl Exporter for MqttExporter {
    /// Connects again: what an earlier connection still held is sent again.
    async fn prepare(&mut self) -> Result<(), String> {
        self.connection = None;
        self.connection = Some(in_time(Connection::open(&self.export, &self.targets)).await?);
        Ok(())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        for rows in rows.chunks(MQTT_MESSAGES_MAX) {
            let payloads: Vec<_> = rows.iter().map(|one| self.payload(one)).collect();
            let connection = self.connection.as_mut().ok_or("there is no connection")?;
            in_time(connection.publish(&self.export.topic, &payloads)).await?;
        }
        Ok(())
    }
}

/// A connection to a broker. Between two batches nobody reads it, so it asks for no keep-alive.
struct Connection {
    stream: Box<dyn Stream>,
    session: Session,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Connection {
    async fn open(export: &MqttExport, targets: &AllowedTargets) -> Result<Self, String> {
        let stream = broker::connect(targets, &export.host, export.port, export.tls.as_ref()).await;
        let stream = stream.map_err(|error| format!("cannot connect to the broker: {error}"))?;
        let limits = Limits { packet_bytes_max: MQTT_PACKET_BYTES_MAX, messages_max: MQTT_MESSAGES_MAX };
        let session = Session::new(VERSION, limits);
        let mut connection = Self { stream, session, input: Vec::new(), output: Vec::new() };
        let connect = Connect {
            username: export.user.as_deref(),
            password: export.password.as_ref().map(|password| password.reveal().as_bytes()),
            ..Connect::new(VERSION, &export.client_id)
        };
        let begun = connection.session.connect(&connect, &mut connection.output);
        begun.map_err(|error| format!("cannot connect to the broker: {error}"))?;
        while !connection.session.connection().is_open() {
            connection.exchange().await?;
        }
        Ok(connection)
    }

    /// Publishes messages, and waits until the broker has acknowledged each.
    async fn publish(&mut self, topic: &str, payloads: &[Vec<u8>]) -> Result<(), String> {
        for payload in payloads {
            let message = Publish::new(topic, QoS::AtLeastOnce, payload);
            let sent = self.session.publish(&message, &mut self.output);
            sent.map_err(|error| format!("a row cannot be published: {error}"))?;
        }
        let mut waiting = payloads.len();
        while waiting > 0 {
            waiting = waiting.saturating_sub(self.exchange().await?);
        }
        Ok(())
    }

    /// Writes what waits, and reads what comes. Returns how many messages were acknowledged.
    async fn exchange(&mut self) -> Result<usize, String> {
        let lost = |error: std::io::Error| format!("the connection to the broker: {error}");
        self.stream.write_all(&self.output).await.map_err(lost)?;
        self.stream.flush().await.map_err(lost)?;
        self.output.clear();
        let mut bytes = vec![0; MQTT_READ_BYTES];
        let read = self.stream.read(&mut bytes).await.map_err(lost)?;
        if read == 0 {
            return Err("the broker closed the connection".to_owned());
        }
        self.input.extend_from_slice(&bytes[..read]);
        let mut acknowledged = 0;
        loop {
            let next = self.session.next(&self.input, &mut self.output);
            let next = next.map_err(|error| format!("the broker broke the protocol: {error}"))?;
            let Some((event, used)) = next else { return Ok(acknowledged) };
            match event {
                Event::Refused(refusal) => {
                    return Err(format!("the broker refuses the connection: {}", refusal.refusal(VERSION)));
                }
                Event::Acknowledged { .. } => acknowledged += 1,
                Event::Settled { reason, .. } => {
                    return Err(format!("the broker does not accept such a message: {reason}"));
                }
                Event::Disconnected(_) => return Err("the broker ended the connection".to_owned()),
                _ => {}
            }
            self.input.drain(..used);
        }
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match timeout(MQTT_ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("the broker did not answer within {} s", MQTT_ANSWER_TIMEOUT.as_secs())),
    }
}

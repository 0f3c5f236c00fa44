//! The wrapper `mqtt`: messages of a broker. A message is acknowledged when its row is durable.

use std::time::{Duration, Instant};

use clients::outgoing::AllowedTargets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use virtual_sensors::MqttTopic;
use wire::mqtt::client::{Event, Limits, Session};
use wire::mqtt::{Connect, Filter, Properties, ProtocolVersion, Publish, ReasonCode};

use super::failure::Failure;
use super::payload;
use super::sink::ElementSink;
use crate::broker::{self, Stream};
use crate::limits::{MQTT_KEEP_ALIVE, MQTT_PACKET_BYTES_MAX, MQTT_READ_BYTES};

/// The field with the whole message, as in GSN.
const RAW_FIELD: &str = "raw_packet";
/// SUBACK has a code of this bit for a subscription that is refused.
const REFUSED: u8 = 0x80;
/// The longest time without bytes to the broker.
const PING_INTERVAL: Duration = Duration::from_secs(MQTT_KEEP_ALIVE.as_secs() / 2);
/// The client only receives.
const LIMITS: Limits = Limits { packet_bytes_max: MQTT_PACKET_BYTES_MAX, messages_max: 1 };

/// Reads a topic until the connection is lost. The connection is not read while the messages before are stored.
pub(super) async fn read(
    targets: &AllowedTargets,
    topic: &MqttTopic,
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    let mut client = Client::connect(targets, topic).await?;
    loop {
        let mut taken = BrokerState::default();
        let used = client.take_all(topic, &mut taken, sink)?;
        if used == 0 {
            client.receive().await?;
            continue;
        }
        if taken.is_subscribed {
            sink.connected();
        }
        sink.store(&client.input[..used]).await?;
        client.input.drain(..used);
        client.acknowledge(&taken.unacknowledged)?;
        client.send().await?;
    }
}

/// A connection to a broker.
struct Client {
    stream: Box<dyn Stream>,
    session: Session,
    input: Vec<u8>,
    output: Vec<u8>,
    heard: Instant,
    /// When bytes were sent last. The broker ends a connection without them, also while it sends messages itself.
    sent: Instant,
    broker: String,
}

/// What the broker has said.
#[derive(Default)]
struct BrokerState {
    is_subscribed: bool,
    /// The identifiers of messages that wait for their acknowledgement.
    unacknowledged: Vec<u16>,
}

impl Client {
    async fn connect(targets: &AllowedTargets, topic: &MqttTopic) -> Result<Self, Failure> {
        let broker = format!("the broker {}:{}", topic.host, topic.port);
        let connecting = broker::connect(targets, &topic.host, topic.port, topic.tls.as_ref());
        let connected = timeout(MQTT_KEEP_ALIVE, connecting).await;
        let connected = connected.map_err(|_| Failure::new(format!("{broker} does not answer")))?;
        let stream =
            connected.map_err(|error| Failure::while_(format_args!("cannot connect to {broker}"), error))?;
        let session = Session::new(ProtocolVersion::V311, LIMITS);
        let (input, output) = (Vec::new(), Vec::new());
        let now = Instant::now();
        let mut client = Self { stream, session, input, output, heard: now, sent: now, broker };
        let connect = Connect {
            // The broker keeps messages for the time without a connection, if they are to be acknowledged.
            clean_start: topic.qos == 0,
            keep_alive_s: u16::try_from(MQTT_KEEP_ALIVE.as_secs()).unwrap_or(u16::MAX),
            username: topic.username.as_deref(),
            password: topic.password.as_deref().map(str::as_bytes),
            ..Connect::new(ProtocolVersion::V311, &topic.client_id)
        };
        let begun = client.session.connect(&connect, &mut client.output);
        begun.map_err(|error| client.fail(&error))?;
        client.send().await?;
        Ok(client)
    }

    /// Waits for bytes. Meanwhile it pings, which keeps the connection, and makes a silent broker answer.
    async fn receive(&mut self) -> Result<(), Failure> {
        self.input.reserve(MQTT_READ_BYTES);
        loop {
            if self.sent.elapsed() >= PING_INTERVAL {
                self.session.ping(&mut self.output);
                self.send().await?;
            }
            let until_ping = PING_INTERVAL.saturating_sub(self.sent.elapsed());
            match timeout(until_ping, self.stream.read_buf(&mut self.input)).await {
                Ok(Ok(0)) => return Err(self.fail(&"it closed the connection")),
                Ok(Ok(_)) => {
                    self.heard = Instant::now();
                    return Ok(());
                }
                Ok(Err(error)) => return Err(self.fail(&error)),
                Err(_) if self.heard.elapsed() > MQTT_KEEP_ALIVE * 2 => {
                    return Err(self.fail(&"it is silent"));
                }
                Err(_) => {}
            }
        }
    }

    /// Takes the packets that are complete, and returns their bytes.
    fn take_all(
        &mut self,
        topic: &MqttTopic,
        taken: &mut BrokerState,
        sink: &mut ElementSink,
    ) -> Result<usize, Failure> {
        let Self { session, input, output, broker, .. } = self;
        let fail = |error: &dyn std::fmt::Display| Failure::while_(&*broker, error);
        let mut used = 0;
        while let Some((event, bytes)) = session.next(&input[used..], output).map_err(|error| fail(&error))? {
            used += bytes;
            match event {
                Event::Connected(_) => {
                    let filter = [Filter { topic: &topic.topic, options: topic.qos }];
                    session.subscribe(&filter, Properties::NONE, output).map_err(|error| fail(&error))?;
                }
                Event::Refused(connack) => return Err(fail(&connack.refusal(ProtocolVersion::V311))),
                Event::Subscribed(suback) if suback.codes.iter().any(|code| code & REFUSED != 0) => {
                    return Err(fail(&format_args!("it refuses the subscription to {:?}", topic.topic)));
                }
                Event::Subscribed(_) => taken.is_subscribed = true,
                Event::Message(message) => {
                    element(&message, sink);
                    taken.unacknowledged.extend(message.packet_id);
                }
                _ => {}
            }
            if sink.is_full() {
                break;
            }
        }
        Ok(used)
    }

    /// The rows of these messages are durable.
    fn acknowledge(&mut self, messages: &[u16]) -> Result<(), Failure> {
        for message in messages {
            let acked = self.session.acknowledge(*message, ReasonCode::SUCCESS, &mut self.output);
            acked.map_err(|error| self.fail(&error))?;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let Self { stream, output, .. } = self;
        let sending = async {
            stream.write_all(output).await?;
            stream.flush().await
        };
        let sent = timeout(MQTT_KEEP_ALIVE, sending).await;
        let sent = sent.map_err(|_| self.fail(&"it does not accept bytes"))?;
        sent.map_err(|error| self.fail(&error))?;
        if !self.output.is_empty() {
            self.output.clear();
            self.sent = Instant::now();
        }
        Ok(())
    }

    fn fail(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::while_(&self.broker, error)
    }
}

fn element(message: &Publish<'_>, sink: &mut ElementSink) {
    if let Err(reason) = payload::add(message.payload, RAW_FIELD, Some(message.topic), sink) {
        sink.refuse(&format!("a message of {:?}: {reason}", message.topic), message.payload);
    }
}

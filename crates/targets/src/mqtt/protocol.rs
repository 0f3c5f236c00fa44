//! Devices that publish telemetry over MQTT 3.1.1 or 5 at QoS 0, 1 or 2, for themselves or as gateways.

use std::sync::atomic::{AtomicU32, Ordering};

use load::payload::Template;
use load::protocol::{Answer, Completion, DueTime, Opening, Protocol, Received, Started};
use load::schedule::SECOND_NS;
use wire::mqtt::client::Connection;
use wire::mqtt::{Connect, Disconnect, Packet, QoS};

use super::acks::{PacketIds, acknowledgement};
use super::gateway::{Gateway, GatewayDevices};
use super::tally::Tally;
use super::template::PublishTemplate;
use super::version::Version;
use crate::limits::PACKET_BYTES_MAX;
use crate::plan::place_of;

/// The number of runs of this process so far.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// The common configuration of all devices.
#[derive(Debug, Clone)]
pub struct Config {
    /// Protocol version of all connections.
    pub version: Version,
    /// The messages of the devices of each group, in the order of [`load::engine::Plan::groups`].
    pub groups: Vec<Messages>,
    /// Device n authenticates with the user name `<token_prefix>n`.
    pub token_prefix: String,
    /// The keep-alive to announce and to keep.
    pub keep_alive_s: u16,
    /// The earliest timestamp of a message, milliseconds since the epoch.
    pub floor_ts_ms: u64,
}

/// The messages of the devices of one group.
#[derive(Debug, Clone)]
pub struct Messages {
    /// The number of devices, which is the number of connections.
    pub devices: u32,
    /// Quality of service of the messages.
    pub qos: QoS,
    /// Class of the messages in the recorder.
    pub class: u16,
    /// The payload of each message; of a gateway, that of each device in it.
    pub payload: Template,
    /// The devices behind each of them, if they are gateways.
    pub gateway: Option<Gateway>,
}

/// The driver: every connection is one device, every operation one message.
#[derive(Debug)]
pub struct Mqtt {
    config: Config,
    /// The template of each group.
    publish: Vec<PublishTemplate>,
    /// The prefix of client identifiers. It must be unique on a broker.
    client_prefix: String,
}

/// One device.
#[derive(Debug)]
pub struct Session {
    device: u32,
    group: usize,
    qos: QoS,
    connection: Connection,
    packet_ids: PacketIds,
    /// The counts of sent and acknowledged messages. A gateway has none of its own.
    pub tally: Tally,
    /// The devices behind a gateway.
    behind: Option<Box<GatewayDevices>>,
}

impl Session {
    /// The number of the device, which is that of its connection.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// The group of the device.
    pub fn group(&self) -> usize {
        self.group
    }

    /// The numbers and the counts of the devices that it speaks for: itself, or those behind it.
    pub fn tallies(&self) -> Vec<(u32, Tally)> {
        match &self.behind {
            None => vec![(self.device, self.tally)],
            Some(behind) => behind.tallies().collect(),
        }
    }
}

impl Mqtt {
    /// A driver for all devices of a run.
    pub fn new(config: Config) -> Self {
        let of_group = |of: &Messages| PublishTemplate::new(config.version, of.qos, of.payload.clone());
        let publish = config.groups.iter().map(of_group).collect();
        // Two alternating runs of one process use one broker at the same time.
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Self { config, publish, client_prefix: format!("bench-{}-{run}-", std::process::id()) }
    }
}

impl Protocol for Mqtt {
    type Session = Session;

    fn session(&self, number: u32) -> Session {
        let last_ts_ms = self.config.floor_ts_ms.saturating_sub(1);
        let tally = Tally { last_ts_ms, ..Tally::default() };
        let (group, _) = place_of(self.config.groups.iter().map(|of| of.devices), number);
        let of = &self.config.groups[group];
        let connection = Connection::new(self.config.version.on_the_wire(), PACKET_BYTES_MAX);
        let behind = of.gateway.as_ref().map(|gateway| Box::new(GatewayDevices::new(gateway, number, tally)));
        Session {
            device: number,
            group,
            qos: of.qos,
            connection,
            packet_ids: PacketIds::default(),
            tally,
            behind,
        }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        let token = format!("{}{}", self.config.token_prefix, session.device);
        let client_id = format!("{}{}", self.client_prefix, session.device);
        // ThingsBoard devices send their access token as the user name.
        let connect = Connect {
            keep_alive_s: self.config.keep_alive_s,
            username: Some(&token),
            ..Connect::new(session.connection.version(), &client_id)
        };
        session
            .connection
            .connect(&connect, out)
            .expect("BUG: tokens and client ids are checked to be short");
        Opening::Wait
    }

    fn window(&self, session: &Session) -> usize {
        session.connection.server().receive_maximum.into()
    }

    fn answers_can_wait(&self) -> bool {
        // The PUBREC of QoS 2 requires a PUBREL.
        self.config.groups.iter().all(|of| of.qos != QoS::ExactlyOnce)
    }

    fn start(&self, session: &mut Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        let of = &self.config.groups[session.group];
        let packet_id = session.packet_ids.next();
        let answer = match session.qos {
            QoS::AtMostOnce => Answer::None,
            QoS::AtLeastOnce | QoS::ExactlyOnce => Answer::Key(packet_id.into()),
        };
        let started = Started { class: of.class, answer };
        if let Some(behind) = &mut session.behind {
            let version = session.connection.version();
            let is_sent = behind.publish(&of.payload, due.wall_ms, (session.qos, packet_id, version), out);
            return is_sent.then_some(started);
        }
        // Two messages of a device never have the same timestamp, so that none overwrites another.
        let ts_ms = due.wall_ms.max(session.tally.last_ts_ms + 1);
        self.publish[session.group].render(out, packet_id, ts_ms, session.device, session.tally.sent);
        session.tally.last_ts_ms = ts_ms;
        session.tally.sent += 1;
        Some(started)
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while let Some((packet, length)) =
            session.connection.next(&bytes[received.used..]).map_err(|error| error.to_string())?
        {
            received.used += length;
            match acknowledgement(&packet, session.qos, session.connection.version(), out) {
                Some(Some(last)) => {
                    let is_taken = last.report(length, done);
                    match &mut session.behind {
                        None => session.tally.acked += u64::from(is_taken),
                        Some(behind) => behind.answered(last.packet_id(), is_taken),
                    }
                    continue;
                }
                Some(None) => continue,
                None => {}
            }
            match packet {
                Packet::ConnAck(connack) if connack.is_accepted() => received.ready = true,
                Packet::ConnAck(connack) => return Err(connack.refusal(session.connection.version())),
                Packet::PingResp => {}
                Packet::Disconnect(disconnect) => return Err(disconnect.to_string()),
                other => return Err(format!("an unexpected packet: {other:?}")),
            }
        }
        Ok(received)
    }

    fn quiet_ns(&self) -> u64 {
        u64::from(self.config.keep_alive_s) * SECOND_NS / 2
    }

    fn keep_alive(&self, session: &mut Session, out: &mut Vec<u8>) {
        session.connection.ping(out);
    }

    fn close(&self, session: &mut Session, out: &mut Vec<u8>) {
        let disconnected = session.connection.disconnect(&Disconnect::NORMAL, out);
        disconnected.expect("BUG: a DISCONNECT without properties is always valid");
    }
}

//! A device: it reports telemetry, answers calls, and receives attributes.

use load::protocol::{Answer, AnswerStatus, Completion, DueTime, Received};
use load::recorder::Operation;
use wire::mqtt::client::Connection;
use wire::mqtt::{Connect, Disconnect, Packet, ProtocolVersion, Publish, QoS, encode_puback, encode_publish};

use super::command::{Command, Content, response};
use crate::broker::{Arrived, Sequence};
use crate::limits::PACKET_BYTES_MAX;
use crate::mqtt::{PacketIds, PublishTemplate, acknowledgement, subscribe};

/// The quality of service of telemetry and of messages to the device.
pub(super) const QOS: QoS = QoS::AtLeastOnce;

/// The common parts of all devices.
#[derive(Debug, Clone)]
pub(super) struct DeviceConfig {
    pub(super) command: Command,
    pub(super) run: u32,
    pub(super) version: ProtocolVersion,
    pub(super) telemetry: PublishTemplate,
    pub(super) token_prefix: String,
    pub(super) client_prefix: String,
    pub(super) keep_alive_s: u16,
    /// The class of telemetry.
    pub(super) publish: u16,
    /// The class of attributes that arrive.
    pub(super) push: u16,
}

#[derive(Debug)]
pub(super) struct Device {
    number: u32,
    connection: Connection,
    packet_ids: PacketIds,
    last_ts_ms: u64,
    sent: u64,
    /// The numbers of its commands.
    pub(super) commands: Sequence,
    /// Messages that are not a command for this device.
    pub(super) foreign: u64,
}

impl Device {
    pub(super) fn new(number: u32, config: &DeviceConfig) -> Self {
        Self {
            number,
            connection: Connection::new(config.version, PACKET_BYTES_MAX),
            packet_ids: PacketIds::default(),
            last_ts_ms: 0,
            sent: 0,
            commands: Sequence::default(),
            foreign: 0,
        }
    }

    pub(super) fn open(&mut self, config: &DeviceConfig, out: &mut Vec<u8>) {
        let token = format!("{}{}", config.token_prefix, self.number);
        let client_id = format!("{}{}", config.client_prefix, self.number);
        let connect = Connect {
            keep_alive_s: config.keep_alive_s,
            username: Some(&token),
            ..Connect::new(config.version, &client_id)
        };
        self.connection.connect(&connect, out).expect("BUG: tokens and client ids are checked to be short");
    }

    pub(super) fn window(&self) -> usize {
        self.connection.server().receive_maximum.into()
    }

    /// Appends a message of telemetry. Returns its key.
    pub(super) fn start(&mut self, config: &DeviceConfig, due: DueTime, out: &mut Vec<u8>) -> u32 {
        let packet_id = self.packet_ids.next();
        let ts_ms = due.wall_ms.max(self.last_ts_ms + 1);
        config.telemetry.render(out, packet_id, ts_ms, self.number, self.sent);
        self.last_ts_ms = ts_ms;
        self.sent += 1;
        packet_id.into()
    }

    /// Handles what the server sent. Returns how many new commands arrived as well.
    pub(super) fn receive(
        &mut self,
        config: &DeviceConfig,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(Received, u64), String> {
        let (mut received, mut commands) = (Received::default(), 0);
        while let Some((packet, length)) =
            self.connection.next(&bytes[received.used..]).map_err(|error| error.to_string())?
        {
            received.used += length;
            if let Some(step) = acknowledgement(&packet, QOS, config.version, out) {
                step.map(|last| last.report(length, done));
                continue;
            }
            match packet {
                Packet::Publish(publish) => {
                    commands += u64::from(self.message(config, &publish, length, out, done));
                }
                Packet::ConnAck(connack) if connack.is_accepted() => {
                    subscribe(&[config.command.filter()], QOS, config.version, out)?;
                }
                Packet::ConnAck(connack) => return Err(connack.refusal(config.version)),
                Packet::SubAck(suback) => match suback.codes {
                    [code] if *code < 0x80 => received.ready = true,
                    codes => return Err(format!("SUBACK {codes:02X?} for {}", config.command.filter())),
                },
                Packet::PingResp => {}
                Packet::Disconnect(disconnect) => return Err(disconnect.to_string()),
                other => return Err(format!("an unexpected packet: {other:?}")),
            }
        }
        Ok((received, commands))
    }

    /// Handles a message for the device. Returns whether it is a new command.
    fn message(
        &mut self,
        config: &DeviceConfig,
        publish: &Publish<'_>,
        length: usize,
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> bool {
        if let Some(packet_id) = publish.packet_id {
            encode_puback(packet_id, config.version, out);
        }
        let content = config.command.content(publish.payload);
        let Some(content) = content.filter(|of| of.run == config.run && of.device == self.number) else {
            self.foreign += 1;
            return false;
        };
        if self.commands.note(content.number) == Arrived::Again {
            return false;
        }
        match config.command {
            Command::Rpc => self.answer(config, publish.topic, &content, out),
            Command::Attributes => {
                let Content { intended_ns, sent_ns, .. } = content;
                let operation = Operation { class: config.push, intended_ns, sent_ns };
                let (answer, bytes) = (Answer::Delivery(operation), length as u32);
                done(Completion { answer, status: AnswerStatus::Good, bytes });
            }
        }
        true
    }

    /// Answers a call. Without the right topic the call fails, because nobody answers it.
    fn answer(&mut self, config: &DeviceConfig, topic: &str, content: &Content, out: &mut Vec<u8>) {
        let Some((topic, payload)) = response(topic, content) else {
            self.foreign += 1;
            return;
        };
        encode_publish(&topic, QoS::AtMostOnce, 0, payload.as_bytes(), config.version, out)
            .expect("BUG: a topic like that of the request and a short payload");
    }

    pub(super) fn keep_alive(&self, out: &mut Vec<u8>) {
        self.connection.ping(out);
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        let disconnected = self.connection.disconnect(&Disconnect::NORMAL, out);
        disconnected.expect("BUG: a DISCONNECT without properties is always valid");
    }
}

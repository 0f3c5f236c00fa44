//! A device: it publishes telemetry and knows which messages the server has acknowledged.

use std::collections::VecDeque;
use std::time::Instant;

use load::protocol::{Completion, DueTime, Received};
use wire::mqtt::client::Connection;
use wire::mqtt::{Connect, Disconnect, Packet, ProtocolVersion};

use super::message::{MessageTemplate, QOS, Stamp};
use super::newest_messages::NewestMessages;
use super::watch::{Raised, Watch};
use crate::limits::PACKET_BYTES_MAX;
use crate::mqtt::{PacketIds, acknowledgement};

/// The common parts of all devices.
#[derive(Debug, Clone)]
pub(super) struct DeviceConfig {
    pub(super) run: u32,
    pub(super) version: ProtocolVersion,
    pub(super) message: MessageTemplate,
    pub(super) token_prefix: String,
    pub(super) client_prefix: String,
    pub(super) keep_alive_s: u16,
    /// The class of telemetry.
    pub(super) publish: u16,
    /// One message of a device in this many raises an alarm; `None` for none.
    pub(super) raise_every: Option<u64>,
    /// The devices, by number, before the phase.
    pub(super) before: Vec<DeviceState>,
}

/// What is known of a device between phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceState {
    /// The number of its next message.
    pub(super) next: u64,
    /// The time of its newest message, milliseconds.
    pub(super) last_ts_ms: u64,
    /// Its newest acknowledged message.
    pub(super) newest: Option<Stamp>,
}

#[derive(Debug)]
pub(super) struct Device {
    number: u32,
    connection: Connection,
    packet_ids: PacketIds,
    pub(super) state: DeviceState,
    /// Messages without an acknowledgement.
    in_flight: VecDeque<(u16, Stamp)>,
    /// The numbers of acknowledged messages that raise an alarm.
    pub(super) raised: Vec<u64>,
}

impl DeviceConfig {
    /// Whether a message raises an alarm. The messages of all devices that do are spread over time. The first one of a device
    /// never does, so that each alarm begins with a change.
    pub(super) fn raises(&self, device: u32, number: u64) -> bool {
        self.raise_every.is_some_and(|every| number > 0 && (number + u64::from(device)).is_multiple_of(every))
    }
}

impl Device {
    pub(super) fn new(number: u32, config: &DeviceConfig) -> Self {
        Self {
            number,
            connection: Connection::new(config.version, PACKET_BYTES_MAX),
            packet_ids: PacketIds::default(),
            state: config.before[number as usize],
            in_flight: VecDeque::new(),
            raised: Vec::new(),
        }
    }

    /// The number of the device.
    pub(super) fn number(&self) -> u32 {
        self.number
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
    pub(super) fn start(
        &mut self,
        config: &DeviceConfig,
        followed: &NewestMessages,
        due: DueTime,
        out: &mut Vec<u8>,
    ) -> u32 {
        let packet_id = self.packet_ids.next();
        let DeviceState { next: number, last_ts_ms, .. } = self.state;
        let ts_ms = due.wall_ms.max(last_ts_ms + 1);
        let (due_us, sent_us) = (due.intended_ns / 1_000, due.sent_ns / 1_000);
        let stamp = Stamp { run: config.run, device: self.number, number, due_us, sent_us };
        let raises = config.raises(self.number, number);
        config.message.render(out, packet_id, ts_ms, &stamp, raises);
        self.in_flight.push_back((packet_id, stamp));
        followed.sent(self.number, number);
        (self.state.next, self.state.last_ts_ms) = (number + 1, ts_ms);
        packet_id.into()
    }

    pub(super) fn receive(
        &mut self,
        config: &DeviceConfig,
        (followed, watch): (&NewestMessages, Option<&Watch>),
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while let Some((packet, length)) =
            self.connection.next(&bytes[received.used..]).map_err(|error| error.to_string())?
        {
            received.used += length;
            if let Some(Some(last)) = acknowledgement(&packet, QOS, config.version, out) {
                let is_taken = last.report(length, done);
                if let Packet::PubAck(ack) = packet {
                    self.acknowledged(config, (followed, watch), ack.packet_id, is_taken);
                }
                continue;
            }
            match packet {
                Packet::ConnAck(connack) if connack.is_accepted() => received.ready = true,
                Packet::ConnAck(connack) => return Err(connack.refusal(config.version)),
                Packet::PingResp => {}
                Packet::Disconnect(disconnect) => return Err(disconnect.to_string()),
                other => return Err(format!("an unexpected packet: {other:?}")),
            }
        }
        Ok(received)
    }

    fn acknowledged(
        &mut self,
        config: &DeviceConfig,
        (followed, watch): (&NewestMessages, Option<&Watch>),
        packet_id: u16,
        is_taken: bool,
    ) {
        let Some(at) = self.in_flight.iter().position(|(known, _)| *known == packet_id) else { return };
        let Some((_, stamp)) = self.in_flight.remove(at) else { return };
        if !is_taken {
            return;
        }
        if self.state.newest.is_none_or(|newest| newest.number < stamp.number) {
            self.state.newest = Some(stamp);
        }
        followed.acknowledged(self.number, stamp.number);
        if config.raises(self.number, stamp.number) {
            self.raised.push(stamp.number);
            if let Some(watch) = watch {
                let Stamp { device, number, .. } = stamp;
                watch.raised(Raised { device, number, acknowledged: Instant::now() });
            }
        }
    }

    /// The numbers of messages that raise an alarm and were not acknowledged: it may be there or not.
    pub(super) fn unknown<'a>(&'a self, config: &'a DeviceConfig) -> impl Iterator<Item = u64> + 'a {
        let numbers = self.in_flight.iter().map(|(_, stamp)| stamp.number);
        numbers.filter(|number| config.raises(self.number, *number))
    }

    pub(super) fn keep_alive(&self, out: &mut Vec<u8>) {
        self.connection.ping(out);
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        let disconnected = self.connection.disconnect(&Disconnect::NORMAL, out);
        disconnected.expect("BUG: a DISCONNECT without properties is always valid");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::Version;

    fn config(raise_every: Option<u64>) -> DeviceConfig {
        DeviceConfig {
            run: 1,
            version: Version::V311.on_the_wire(),
            message: MessageTemplate::new(Version::V311),
            token_prefix: "tok".to_owned(),
            client_prefix: "c".to_owned(),
            keep_alive_s: 60,
            publish: 0,
            raise_every,
            before: vec![DeviceState::default(); 10],
        }
    }

    #[test]
    fn alarms_are_raised_by_other_devices_each_time_and_end_with_the_next_message() {
        let config = config(Some(5));
        for number in 1..50 {
            let raising: Vec<u32> = (0..10).filter(|device| config.raises(*device, number)).collect();
            assert_eq!(raising.len(), 2, "{number}");
            assert!(raising.iter().all(|device| !config.raises(*device, number + 1)));
        }
        assert!((0..10).all(|device| !config.raises(device, 0)));
    }

    #[test]
    fn only_what_is_acknowledged_is_the_newest_message() {
        let (config, followed) = (config(Some(2)), NewestMessages::new(&[(0, 0); 10], 1, 1));
        let mut device = Device::new(3, &config);
        let due = |ms: u64| DueTime { intended_ns: ms * 1_000_000, wall_ms: ms, sent_ns: ms * 1_000_000 };
        let keys: Vec<u32> =
            (0..4).map(|ms| device.start(&config, &followed, due(ms), &mut Vec::new())).collect();
        assert_eq!((device.state.next, device.state.last_ts_ms), (4, 4), "two messages never have one time");
        for (key, is_taken) in [(keys[1], true), (keys[0], true), (keys[3], false)] {
            device.acknowledged(&config, (&followed, None), key as u16, is_taken);
        }
        assert_eq!((device.state.newest.map(|stamp| stamp.number), followed.newest_of(3)), (Some(1), 2));
        assert_eq!(device.raised, [1]);
        assert_eq!(device.unknown(&config).count(), 0, "the refused one raised no alarm");
    }
}

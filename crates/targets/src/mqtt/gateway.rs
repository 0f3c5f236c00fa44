//! A gateway (ThingsBoard's gateway API): one connection that connects the devices behind it, or publishes telemetry of several of
//! them in one message.

use std::collections::VecDeque;

use load::payload::Template;
use wire::mqtt::{ProtocolVersion, QoS, encode_publish};
use wire::thingsboard::gateway::Topic;

use super::tally::Tally;

/// The devices behind each gateway of a group, and its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The number of devices behind each gateway. Gateway n has those from n times this number on.
    pub devices: u32,
    /// The number of devices in one message of telemetry, at most `devices`.
    pub devices_per_message: u32,
    /// Device n is called `<device_prefix>n`.
    pub device_prefix: String,
    /// The data that the gateway sends.
    pub sends: GatewaySends,
}

/// The data that a gateway sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewaySends {
    /// One message for each device, which connects it. Then the gateway has nothing more to send.
    Connect,
    /// Telemetry of the next devices, in turn.
    Telemetry,
}

impl Gateway {
    /// The size of the longest message of telemetry with this payload for each device.
    pub(super) fn message_bytes(&self, payload: &Template, gateways: u32) -> usize {
        let last = u64::from(self.devices) * u64::from(gateways);
        let name = json_name(&self.device_prefix, last).len();
        self.devices_per_message as usize * (name + payload.size_bytes() + PART_FRAME_BYTES)
            + OBJECT_FRAME_BYTES
    }
}

/// `:[` and `]` around a payload, and the comma before the next device.
const PART_FRAME_BYTES: usize = 4;
/// `{` and `}` around all devices.
const OBJECT_FRAME_BYTES: usize = 2;

/// The devices behind one gateway.
#[derive(Debug)]
pub(super) struct GatewayDevices {
    /// The number of the first device.
    first: u32,
    devices: Vec<Device>,
    devices_per_message: usize,
    sends: GatewaySends,
    /// The index of the device that the next message begins with.
    next: usize,
    /// The messages of telemetry without an acknowledgement: packet identifier, and index of the first device.
    unacknowledged: VecDeque<(u16, usize)>,
    payload: Vec<u8>,
}

#[derive(Debug)]
struct Device {
    /// The name as JSON text.
    name: Box<str>,
    tally: Tally,
}

fn json_name(prefix: &str, number: u64) -> String {
    serde_json::Value::String(format!("{prefix}{number}")).to_string()
}

impl GatewayDevices {
    /// The devices of the gateway with this number. `tally` is that of a device which has sent nothing.
    pub(super) fn new(gateway: &Gateway, number: u32, tally: Tally) -> Self {
        let first = number * gateway.devices;
        let device = |number: u32| Device {
            name: json_name(&gateway.device_prefix, number.into()).into_boxed_str(),
            tally,
        };
        Self {
            first,
            devices: (first..first + gateway.devices).map(device).collect(),
            devices_per_message: gateway.devices_per_message as usize,
            sends: gateway.sends,
            next: 0,
            unacknowledged: VecDeque::new(),
            payload: Vec::new(),
        }
    }

    /// The numbers of the devices and their counts.
    pub(super) fn tallies(&self) -> impl Iterator<Item = (u32, Tally)> {
        (self.first..).zip(self.devices.iter().map(|device| device.tally))
    }

    /// Appends the next message, which is due at `now_ms`. Returns `false` if there is none: all devices are connected.
    pub(super) fn publish(
        &mut self,
        template: &Template,
        now_ms: u64,
        (qos, packet_id, version): (QoS, u16, ProtocolVersion),
        out: &mut Vec<u8>,
    ) -> bool {
        self.payload.clear();
        let topic = match self.sends {
            GatewaySends::Connect => {
                let Some(device) = self.devices.get(self.next) else { return false };
                self.payload.extend_from_slice(format!("{{\"device\":{}}}", device.name).as_bytes());
                self.next += 1;
                Topic::Connect
            }
            GatewaySends::Telemetry => {
                if qos != QoS::AtMostOnce {
                    self.unacknowledged.push_back((packet_id, self.next));
                }
                self.render_telemetry(template, now_ms);
                Topic::Telemetry
            }
        };
        encode_publish(topic.name(), qos, packet_id, &self.payload, version, out)
            .expect("BUG: topic and payload are within MQTT's limits");
        true
    }

    fn render_telemetry(&mut self, template: &Template, now_ms: u64) {
        self.payload.push(b'{');
        for part in 0..self.devices_per_message {
            let index = (self.next + part) % self.devices.len();
            let number = self.first + index as u32;
            let Device { name, tally } = &mut self.devices[index];
            if part > 0 {
                self.payload.push(b',');
            }
            self.payload.extend_from_slice(name.as_bytes());
            self.payload.extend_from_slice(b":[");
            let begin = self.payload.len();
            self.payload.extend_from_slice(template.bytes());
            // Two rows of a device never have the same timestamp, so that none overwrites another.
            tally.last_ts_ms = now_ms.max(tally.last_ts_ms + 1);
            template.patch(&mut self.payload[begin..], tally.last_ts_ms, number, tally.sent);
            tally.sent += 1;
            self.payload.push(b']');
        }
        self.payload.push(b'}');
        self.next = (self.next + self.devices_per_message) % self.devices.len();
    }

    /// Handles the last answer to a message. With `is_taken` the server has taken what it has for each device.
    pub(super) fn answered(&mut self, packet_id: u16, is_taken: bool) {
        // Most servers answer in order, so it is the first one.
        let Some(at) = self.unacknowledged.iter().position(|(known, _)| *known == packet_id) else { return };
        let Some((_, begin)) = self.unacknowledged.remove(at) else { return };
        if is_taken {
            let count = self.devices.len();
            for part in 0..self.devices_per_message {
                self.devices[(begin + part) % count].tally.acked += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wire::mqtt::{Packet, decode};

    use super::*;
    use load::payload::{PAYLOAD_BYTES_MIN, SEQUENCE_BASE};

    const VERSION: ProtocolVersion = ProtocolVersion::V5;
    const NOW_MS: u64 = 1_790_000_000_000;

    fn gateway(sends: GatewaySends) -> Gateway {
        Gateway { devices: 3, devices_per_message: 2, device_prefix: "a \"b\" ".to_owned(), sends }
    }

    /// The topic and the payload of the next message, with its identifier.
    fn next(behind: &mut GatewayDevices, packet_id: u16) -> Option<(String, Value)> {
        let mut out = Vec::new();
        let template = Template::new(PAYLOAD_BYTES_MIN);
        if !behind.publish(&template, NOW_MS, (QoS::AtLeastOnce, packet_id, VERSION), &mut out) {
            return None;
        }
        let decoded = decode(&out, Some(VERSION), usize::MAX).unwrap().unwrap();
        let Packet::Publish(publish) = decoded.packet else { panic!("{decoded:?}") };
        assert_eq!((publish.packet_id, decoded.consumed), (Some(packet_id), out.len()));
        Some((publish.topic.to_owned(), serde_json::from_slice(publish.payload).unwrap()))
    }

    #[test]
    fn each_device_is_connected_once() {
        let mut behind = GatewayDevices::new(&gateway(GatewaySends::Connect), 1, Tally::default());
        for device in 3..6 {
            let (topic, payload) = next(&mut behind, device).unwrap();
            assert_eq!(topic, "v1/gateway/connect");
            assert_eq!(payload, json!({ "device": format!("a \"b\" {device}") }));
            behind.answered(device, true);
        }
        assert_eq!(next(&mut behind, 9), None);
        assert!(behind.tallies().all(|(_, tally)| tally == Tally::default()));
    }

    #[test]
    fn telemetry_has_the_next_devices_in_turn_and_an_ack_counts_for_each() {
        let mut behind = GatewayDevices::new(&gateway(GatewaySends::Telemetry), 1, Tally::default());
        let row = |number: u64, after_ms: u64| json!([{ "ts": NOW_MS + after_ms, "values": { "seq": SEQUENCE_BASE + number } }]);
        let (topic, payload) = next(&mut behind, 1).unwrap();
        assert_eq!(topic, "v1/gateway/telemetry");
        assert_eq!(payload, json!({ "a \"b\" 3": row(0, 0), "a \"b\" 4": row(0, 0) }));
        // Device 3 comes again within the same millisecond.
        let (_, payload) = next(&mut behind, 2).unwrap();
        assert_eq!(payload, json!({ "a \"b\" 5": row(0, 0), "a \"b\" 3": row(1, 1) }));
        let (_, payload) = next(&mut behind, 3).unwrap();
        assert_eq!(payload, json!({ "a \"b\" 4": row(1, 1), "a \"b\" 5": row(1, 1) }));
        // Out of order, one refused, one repeated.
        behind.answered(2, true);
        behind.answered(1, false);
        behind.answered(2, true);
        let counts: Vec<_> =
            behind.tallies().map(|(device, tally)| (device, tally.sent, tally.acked)).collect();
        assert_eq!(counts, [(3, 2, 1), (4, 2, 0), (5, 2, 1)]);
    }

    #[test]
    fn the_size_of_a_message_is_known_before_it_is_made() {
        let known = Gateway { devices: 10, devices_per_message: 10, ..gateway(GatewaySends::Telemetry) };
        let template = Template::new(60);
        let mut behind = GatewayDevices::new(&known, 0, Tally::default());
        behind.render_telemetry(&template, NOW_MS);
        let (most, size) = (known.message_bytes(&template, 1), behind.payload.len());
        // The names have a digit less than that of device 10, and the last device has no comma.
        assert_eq!(most, size + 10 + 1, "{}", String::from_utf8_lossy(&behind.payload));
    }
}

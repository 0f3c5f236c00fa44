//! The data that a device sends: a text that states which message it is and when it was due, a speed, and a number of revolutions.

use load::payload::{Values, digits};
use wire::mqtt::QoS;

use crate::mqtt::{PublishPacket, TELEMETRY_TOPIC, Version};

/// The quality of service of all messages.
pub(super) const QOS: QoS = QoS::AtLeastOnce;
/// The key with the [`Stamp`].
pub(super) const STAMP_KEY: &str = "bench";
/// The other keys.
pub(super) const SPEED_KEY: &str = "speed";
pub(super) const RPM_KEY: &str = "rpm";
/// A speed above this one raises an alarm, one below it clears it.
pub(super) const SPEED_LIMIT: u64 = 1_000;
/// The speed of the first message that raises an alarm; each further one has one more, so that an alarm states which message raised it.
const RAISING_SPEED: u64 = 1_000_000_000;

/// The first character of a stamp, so that no server takes it for a number.
const MARK: u8 = b't';
/// The widths of the fields of a stamp, hexadecimal digits.
const WIDTHS: [usize; 5] = [8, 6, 8, 10, 10];
const STAMP_BYTES: usize = 1 + 8 + 6 + 8 + 10 + 10;
/// Telemetry as it is sent, with these digits replaced.
const NORMAL: &str = r#"{"ts":0000000000000,"values":{"bench":"t000000000000000000000000000000000000000000","speed":000.0,"rpm":0000}}"#;
const RAISING: &str = r#"{"ts":0000000000000,"values":{"bench":"t000000000000000000000000000000000000000000","speed":0000000000.0,"rpm":0000}}"#;

/// The statement of a message about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The run that sent it.
    pub(super) run: u32,
    /// The number of the device.
    pub(super) device: u32,
    /// The number of the message among those of the device.
    pub(super) number: u64,
    /// When it was due, microseconds after the start of the segment, rounded down.
    pub(super) due_us: u64,
    /// When it was sent.
    pub(super) sent_us: u64,
}

impl Stamp {
    /// Overwrites the digits of a stamp.
    fn write(&self, mut place: &mut [u8]) {
        let fields = [self.run.into(), self.device.into(), self.number, self.due_us, self.sent_us];
        for (width, field) in WIDTHS.into_iter().zip(fields) {
            let (digits, rest) = place.split_at_mut(width);
            for (at, digit) in digits.iter_mut().rev().enumerate() {
                *digit = char::from_digit((field >> (4 * at)) as u32 & 0xF, 16).map_or(b'0', |it| it as u8);
            }
            place = rest;
        }
    }

    /// Reads a text; `None` if it is not a stamp.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix(char::from(MARK)).filter(|_| text.len() == STAMP_BYTES)?;
        let mut fields = [0; WIDTHS.len()];
        for (width, field) in WIDTHS.into_iter().zip(&mut fields) {
            let digits = rest.get(..width)?;
            *field = u64::from_str_radix(digits, 16).ok()?;
            rest = &rest[width..];
        }
        let [run, device, number, due_us, sent_us] = fields;
        Some(Self { run: run as u32, device: device as u32, number, due_us, sent_us })
    }

    /// The text of the stamp.
    pub(super) fn text(&self) -> String {
        let Self { run, device, number, due_us, sent_us } = self;
        format!("t{run:08x}{device:06x}{number:08x}{due_us:010x}{sent_us:010x}")
    }

    /// The speed and the revolutions of the message.
    pub(super) fn numbers(&self) -> (f64, f64) {
        let values = Values::of(self.device, self.number);
        (values.speed_tenths as f64 / 10.0, values.rpm as f64)
    }
}

/// The number of the message that raised an alarm with this speed.
pub(super) fn raised_by(speed: f64) -> Option<u64> {
    let number = speed - RAISING_SPEED as f64;
    (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
}

/// The packets of a device.
#[derive(Debug, Clone)]
pub(super) struct MessageTemplate {
    normal: Packet,
    raising: Packet,
}

#[derive(Debug, Clone)]
struct Packet {
    packet: PublishPacket,
    ts: usize,
    stamp: usize,
    speed: usize,
    rpm: usize,
}

impl Packet {
    fn new(version: Version, text: &str) -> Self {
        let place = |before: &str| text.find(before).expect("BUG: the template has it") + before.len();
        Self {
            packet: PublishPacket::new(version.on_the_wire(), QOS, TELEMETRY_TOPIC, text.as_bytes()),
            ts: place("\"ts\":"),
            stamp: place("\"bench\":\"t"),
            speed: place("\"speed\":"),
            rpm: place("\"rpm\":"),
        }
    }
}

impl MessageTemplate {
    pub(super) fn new(version: Version) -> Self {
        Self { normal: Packet::new(version, NORMAL), raising: Packet::new(version, RAISING) }
    }

    /// Appends a message, with a speed that raises an alarm if `raises`.
    pub(super) fn render(&self, out: &mut Vec<u8>, packet_id: u16, ts_ms: u64, stamp: &Stamp, raises: bool) {
        let of = if raises { &self.raising } else { &self.normal };
        let payload = of.packet.render(out, packet_id);
        let values = Values::of(stamp.device, stamp.number);
        digits(&mut payload[of.ts..of.ts + 13], ts_ms);
        stamp.write(&mut payload[of.stamp..of.stamp + STAMP_BYTES - 1]);
        if raises {
            digits(&mut payload[of.speed..of.speed + 10], RAISING_SPEED + stamp.number);
        } else {
            digits(&mut payload[of.speed..of.speed + 3], values.speed_tenths / 10);
            digits(&mut payload[of.speed + 4..of.speed + 5], values.speed_tenths % 10);
        }
        digits(&mut payload[of.rpm..of.rpm + 4], values.rpm);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wire::mqtt::{Packet as MqttPacket, decode};

    use super::*;

    const STAMP: Stamp =
        Stamp { run: 0xDEAD_BEEF, device: 9_999, number: 70_000, due_us: 1 << 39, sent_us: 17 };

    fn sent(raises: bool) -> Value {
        let mut out = Vec::new();
        MessageTemplate::new(Version::V311).render(&mut out, 7, 1_790_000_000_123, &STAMP, raises);
        let decoded = decode(&out, Some(Version::V311.on_the_wire()), usize::MAX).unwrap().unwrap();
        let MqttPacket::Publish(publish) = decoded.packet else { panic!("{decoded:?}") };
        assert_eq!((publish.topic, publish.packet_id), (TELEMETRY_TOPIC, Some(7)));
        serde_json::from_slice(publish.payload).unwrap()
    }

    #[test]
    fn a_message_says_which_one_it_is() {
        let message = sent(false);
        let values = &message["values"];
        assert_eq!(message["ts"], 1_790_000_000_123_u64);
        let text = values[STAMP_KEY].as_str().unwrap();
        assert_eq!((Stamp::read(text), text), (Some(STAMP), STAMP.text().as_str()));
        let (speed, rpm) = STAMP.numbers();
        assert_eq!((values[SPEED_KEY].as_f64(), values[RPM_KEY].as_f64()), (Some(speed), Some(rpm)));
        assert!(speed < SPEED_LIMIT as f64, "it clears the alarm");
        assert_eq!(raised_by(speed), None);
    }

    #[test]
    fn an_alarm_says_which_message_raised_it() {
        let speed = sent(true)["values"][SPEED_KEY].as_f64().unwrap();
        assert!(speed > SPEED_LIMIT as f64);
        assert_eq!(raised_by(speed), Some(STAMP.number));
        assert_eq!(raised_by(speed + 0.5), None);
    }

    #[test]
    fn a_changed_stamp_is_none() {
        let text = STAMP.text();
        assert_eq!(Stamp::read(&text[1..]), None);
        assert_eq!(Stamp::read(&text.replace('t', "u")), None);
        assert_eq!(Stamp::read(&format!("{}g", &text[..text.len() - 1])), None);
        assert_eq!(Stamp::read(""), None);
    }
}

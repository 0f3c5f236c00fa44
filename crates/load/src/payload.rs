//! Telemetry payloads: a JSON template of fixed width in which only digits are overwritten, so that a message costs a
//! copy and some digits but no formatting. Every value follows from (device, sequence), so that a reader can check
//! values without a record of them.

/// An offset of the sequence number, so that its width never changes.
pub const SEQUENCE_BASE: u64 = 1_000_000_000;
/// The key that every payload has, whatever its size.
pub const SEQUENCE_KEY: &str = "seq";
/// The smallest payload: timestamp and sequence number.
pub const PAYLOAD_BYTES_MIN: usize = SMALLEST.len();
/// The largest payload a load run offers.
pub const PAYLOAD_BYTES_MAX: usize = 60_000;

const SMALLEST: &str = r#"{"ts":0000000000000,"values":{"seq":0000000000}}"#;
const SPEED: &str = r#","speed_kmh":000.0"#;
const COOLANT: &str = r#","coolant":00.00"#;
const RPM: &str = r#","engine_rpm":0000"#;
/// The payload of the article's generator: one temperature, 13 bytes.
const ARTICLE: &str = r#"{"temp":73.2}"#;
/// A water meter of ThingsBoard's own load test.
const METER: &str =
    r#"{"ts":0000000000000,"values":{"pulseCounter":0000000000,"leakage":false,"batteryLevel":00}}"#;
const VEHICLE: &str = r#"{"ts":0000000000000,"values":{"seq":0000000000,"speed_kmh":000.0,"coolant":00.00,"engine_rpm":0000,"latitude":48.000000,"longitude":11.000000,"heading":100,"fuel_percent":00,"odometer_km":100000,"gear":0,"brake":false}}"#;
const NOTE_FRAME: &str = r#","note":"""#;

/// The values of one message, besides its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    /// `speed_kmh` in tenths of km/h, 100.0 to 199.9.
    pub speed_tenths: u64,
    /// `coolant` in hundredths of a degree, 50.00 to 99.99.
    pub coolant_hundredths: u64,
    /// `engine_rpm`, 1000 to 8999.
    pub rpm: u64,
}

impl Values {
    /// The values of a device's n-th message.
    pub fn of(device: u32, sequence: u64) -> Self {
        let mixed = message_bits(device, sequence);
        Self {
            speed_tenths: 1_000 + mixed % 1_000,
            coolant_hundredths: 5_000 + (mixed >> 16) % 5_000,
            rpm: 1_000 + (mixed >> 32) % 8_000,
        }
    }
}

/// A payload of fixed size with the offsets of its digits.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    ts: Option<usize>,
    sequence: Option<usize>,
    speed: Option<usize>,
    coolant: Option<usize>,
    rpm: Option<usize>,
    /// Numbers that are not read back.
    more: Vec<Number>,
}

/// Digits that change with each message.
#[derive(Debug, Clone, Copy)]
struct Number {
    at: usize,
    width: usize,
    min: u64,
    span: u64,
    /// The bits of the message's random number that it uses.
    shift: u32,
}

impl Template {
    /// A payload of exactly `bytes` bytes. Keys are added while they fit; the rest is filled with the text key `note`,
    /// or with blanks if that does not fit.
    pub fn new(bytes: usize) -> Self {
        let mut text = String::from(&SMALLEST[..SMALLEST.len() - 2]);
        let speed = push_number(&mut text, SPEED, bytes);
        let coolant = push_number(&mut text, COOLANT, bytes);
        let rpm = push_number(&mut text, RPM, bytes);
        if fits(&text, NOTE_FRAME, bytes) {
            let filler = bytes - text.len() - NOTE_FRAME.len() - 2;
            text.push_str(NOTE_FRAME.trim_end_matches('"'));
            text.push('"');
            text.extend(('a'..='z').cycle().take(filler));
            text.push('"');
        }
        text.push_str(&" ".repeat(bytes.saturating_sub(text.len() + 2)));
        text.push_str("}}");
        let ts = Some(place(&text, "\"ts\":"));
        let sequence = Some(place(&text, "\"seq\":"));
        Self { ts, sequence, speed, coolant, rpm, more: Vec::new(), bytes: text.into_bytes() }
    }

    /// The article's 13 bytes: a temperature from 50.0 to 99.9. The server adds the time.
    pub fn article() -> Self {
        let at = place(ARTICLE, ":");
        let number = |at, width, min, span, shift| Number { at, width, min, span, shift };
        Self {
            bytes: ARTICLE.into(),
            ts: None,
            sequence: None,
            speed: None,
            coolant: None,
            rpm: None,
            more: vec![number(at, 2, 50, 50, 0), number(at + 3, 1, 0, 10, 16)],
        }
    }

    /// A smart meter: a pulse counter that grows with every message, a leak, a battery.
    pub fn meter() -> Self {
        let battery = Number { at: place(METER, "Level\":"), width: 2, min: 10, span: 90, shift: 8 };
        Self {
            bytes: METER.into(),
            ts: Some(place(METER, "\"ts\":")),
            sequence: Some(place(METER, "Counter\":")),
            speed: None,
            coolant: None,
            rpm: None,
            more: vec![battery],
        }
    }

    /// A vehicle: speed, engine, position, tank, odometer.
    pub fn vehicle() -> Self {
        let number = |key: &str, skip, width, min, span, shift| {
            let at = place(VEHICLE, key) + skip;
            Number { at, width, min, span, shift }
        };
        Self {
            bytes: VEHICLE.into(),
            ts: Some(place(VEHICLE, "\"ts\":")),
            sequence: Some(place(VEHICLE, "\"seq\":")),
            speed: Some(place(VEHICLE, "\"speed_kmh\":")),
            coolant: Some(place(VEHICLE, "\"coolant\":")),
            rpm: Some(place(VEHICLE, "\"engine_rpm\":")),
            more: vec![
                number("\"latitude\":", 3, 6, 0, 1_000_000, 3),
                number("\"longitude\":", 3, 6, 0, 1_000_000, 21),
                number("\"heading\":", 0, 3, 100, 260, 40),
                number("\"fuel_percent\":", 0, 2, 10, 90, 44),
                number("\"odometer_km\":", 0, 6, 100_000, 900_000, 13),
                number("\"gear\":", 0, 1, 1, 6, 50),
            ],
        }
    }

    /// The key with the sequence number of the message, by which stored points are counted.
    pub fn sequence_key(&self) -> Option<&'static str> {
        self.keys().into_iter().find(|key| *key == SEQUENCE_KEY)
    }

    /// The keys of the payload whose values can be checked.
    pub fn keys(&self) -> Vec<&'static str> {
        let seq = self.sequence.filter(|at| self.bytes[..*at].ends_with(b"\"seq\":"));
        let optional = [
            (seq, SEQUENCE_KEY),
            (self.speed, "speed_kmh"),
            (self.coolant, "coolant"),
            (self.rpm, "engine_rpm"),
        ];
        let mut keys = Vec::new();
        keys.extend(optional.into_iter().filter_map(|(place, key)| place.map(|_| key)));
        keys
    }

    /// The size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the template.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Overwrites the digits in `payload`, a copy of [`Self::bytes`].
    pub fn patch(&self, payload: &mut [u8], ts_ms: u64, device: u32, sequence: u64) {
        let values = Values::of(device, sequence);
        if let Some(at) = self.ts {
            digits(&mut payload[at..at + 13], ts_ms);
        }
        if let Some(at) = self.sequence {
            digits(&mut payload[at..at + 10], SEQUENCE_BASE + sequence);
        }
        if let Some(at) = self.speed {
            digits(&mut payload[at..at + 3], values.speed_tenths / 10);
            digits(&mut payload[at + 4..at + 5], values.speed_tenths % 10);
        }
        if let Some(at) = self.coolant {
            digits(&mut payload[at..at + 2], values.coolant_hundredths / 100);
            digits(&mut payload[at + 3..at + 5], values.coolant_hundredths % 100);
        }
        if let Some(at) = self.rpm {
            digits(&mut payload[at..at + 4], values.rpm);
        }
        if !self.more.is_empty() {
            let mixed = message_bits(device, sequence);
            for number in &self.more {
                let value = number.min + (mixed >> number.shift) % number.span;
                digits(&mut payload[number.at..number.at + number.width], value);
            }
        }
    }
}

fn fits(text: &str, piece: &str, bytes: usize) -> bool {
    text.len() + piece.len() + 2 <= bytes
}

/// Appends `,"key":digits` if it fits, and returns the offset of the digits.
fn push_number(text: &mut String, piece: &str, bytes: usize) -> Option<usize> {
    if !fits(text, piece, bytes) {
        return None;
    }
    let digits_at = text.len() + piece.find(':').expect("BUG: every piece has a value") + 1;
    text.push_str(piece);
    Some(digits_at)
}

/// The offset of the text after `key`.
fn place(text: &str, key: &str) -> usize {
    text.find(key).expect("BUG: the template has it") + key.len()
}

/// Random bits that follow from device and sequence.
fn message_bits(device: u32, sequence: u64) -> u64 {
    mix(u64::from(device) << 40 ^ sequence)
}

/// Overwrites a place with the last decimal digits of a value.
pub fn digits(place: &mut [u8], mut value: u64) {
    for byte in place.iter_mut().rev() {
        *byte = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The finalizer of MurmurHash3, which spreads adjacent numbers over all bits.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(bytes: usize, ts_ms: u64, device: u32, sequence: u64) -> serde_json::Value {
        let template = Template::new(bytes);
        assert_eq!(template.size_bytes(), bytes, "{:?}", String::from_utf8_lossy(template.bytes()));
        let mut payload = template.bytes().to_vec();
        template.patch(&mut payload, ts_ms, device, sequence);
        serde_json::from_slice(&payload)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&payload)))
    }

    #[test]
    fn the_digits_are_the_values() {
        let json = patched(100, 1_790_000_000_123, 17, 42);
        let values = Values::of(17, 42);
        assert_eq!(json["ts"], 1_790_000_000_123_u64);
        assert_eq!(json["values"]["seq"], SEQUENCE_BASE + 42);
        assert_eq!(json["values"]["speed_kmh"], values.speed_tenths as f64 / 10.0);
        assert_eq!(json["values"]["coolant"], values.coolant_hundredths as f64 / 100.0);
        assert_eq!(json["values"]["engine_rpm"], values.rpm);
    }

    #[test]
    fn every_size_is_json_of_that_size() {
        for bytes in PAYLOAD_BYTES_MIN..400 {
            let json = patched(bytes, 1_790_000_000_000, 3, 999_999);
            assert_eq!(json["values"]["seq"], SEQUENCE_BASE + 999_999);
            assert_eq!(json["values"].as_object().unwrap().len(), {
                let keys = Template::new(bytes).keys().len();
                keys + usize::from(json["values"].get("note").is_some())
            });
        }
    }

    #[test]
    fn every_kind_of_payload_is_json_for_every_message() {
        for (template, bytes) in
            [(Template::article(), 13), (Template::meter(), 91), (Template::vehicle(), 219)]
        {
            assert_eq!(template.size_bytes(), bytes);
            let mut texts = std::collections::BTreeSet::new();
            for n in 0..2_000_u64 {
                let mut payload = template.bytes().to_vec();
                template.patch(&mut payload, 1_790_000_000_000 + n, (n % 7) as u32, n);
                let text = String::from_utf8(payload).unwrap();
                serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
                texts.insert(text);
            }
            assert!(texts.len() > 400, "values change");
        }
        assert_eq!(Template::meter().sequence_key(), None);
        assert_eq!(Template::vehicle().keys(), ["seq", "speed_kmh", "coolant", "engine_rpm"]);
    }

    #[test]
    fn values_stay_in_their_width_for_every_message() {
        for n in 0..200_000_u64 {
            let v = Values::of((n % 20_000) as u32, n);
            assert!((1_000..2_000).contains(&v.speed_tenths));
            assert!((5_000..10_000).contains(&v.coolant_hundredths));
            assert!((1_000..9_000).contains(&v.rpm));
        }
    }
}

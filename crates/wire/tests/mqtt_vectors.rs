//! Golden vectors: the files `testdata/mqtt/*.txt` describe their columns.

use wire::mqtt::{PacketType, ProtocolVersion, decode, encode};

const ACCEPTED: &str = include_str!("../testdata/mqtt/accepted.txt");
const REWRITTEN: &str = include_str!("../testdata/mqtt/rewritten.txt");
const REFUSED: &str = include_str!("../testdata/mqtt/refused.txt");
const PACKET_BYTES_MAX: usize = 16_384;

struct Vector<'a> {
    name: &'a str,
    version: Option<ProtocolVersion>,
    bytes: Vec<u8>,
    expected: Vec<&'a str>,
}

fn vectors(text: &str) -> Vec<Vector<'_>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(vector).collect()
}

fn vector(line: &str) -> Vector<'_> {
    let mut columns = line.split('|').map(str::trim);
    let mut next = || columns.next().unwrap_or_else(|| panic!("a column is missing in: {line}"));
    let name = next();
    let version = match next() {
        "-" => None,
        "3" => Some(ProtocolVersion::V31),
        "4" => Some(ProtocolVersion::V311),
        "5" => Some(ProtocolVersion::V5),
        other => panic!("unknown version {other} in: {line}"),
    };
    let bytes = unhex(next());
    Vector { name, version, bytes, expected: columns.collect() }
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "half a byte in {text}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn accepted_packets_decode_and_encode_to_the_same_bytes() {
    for Vector { name, version, bytes, expected } in vectors(ACCEPTED) {
        let decoded = decode(&bytes, version, PACKET_BYTES_MAX)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .unwrap_or_else(|| panic!("{name}: needs more bytes"));
        assert_eq!(decoded.consumed, bytes.len(), "{name}");
        let rendering = format!("{:?}", decoded.packet);
        for fragment in expected[0].split(';').map(str::trim) {
            assert!(rendering.contains(fragment), "{name}: {fragment} is not in {rendering}");
        }
        let version = version.unwrap_or_else(|| match decoded.packet {
            wire::mqtt::Packet::Connect(connect) => connect.version,
            _ => panic!("{name}: only CONNECT comes before a version"),
        });
        let mut again = Vec::new();
        encode(&decoded.packet, version, &mut again).unwrap();
        assert_eq!(again, bytes, "{name}");
    }
}

#[test]
fn longer_forms_decode_and_encode_to_the_shortest() {
    for Vector { name, version, bytes, expected } in vectors(REWRITTEN) {
        let decoded = decode(&bytes, version, PACKET_BYTES_MAX).unwrap().unwrap();
        assert_eq!(decoded.consumed, bytes.len(), "{name}");
        let mut again = Vec::new();
        encode(&decoded.packet, version.unwrap_or(ProtocolVersion::V311), &mut again).unwrap();
        assert_eq!(again, unhex(expected[0]), "{name}");
    }
}

#[test]
fn a_refusal_code_can_always_be_sent_to_the_peer() {
    for Vector { name, version, bytes, .. } in vectors(REFUSED) {
        let code = decode(&bytes, version, PACKET_BYTES_MAX).unwrap_err().reason_code();
        let farewell = if version.is_some() { PacketType::Disconnect } else { PacketType::ConnAck };
        assert!(code.belongs_to(farewell), "{name}: {code}");
    }
}

#[test]
fn every_cut_off_beginning_needs_more_bytes() {
    for Vector { name, version, bytes, .. } in vectors(ACCEPTED) {
        for len in 0..bytes.len() {
            let result = decode(&bytes[..len], version, PACKET_BYTES_MAX);
            assert_eq!(result, Ok(None), "{name}, first {len} bytes");
        }
        let mut followed = bytes.clone();
        followed.push(0);
        let consumed = decode(&followed, version, PACKET_BYTES_MAX).unwrap().unwrap().consumed;
        assert_eq!(consumed, bytes.len(), "{name}");
    }
}

#[test]
fn refused_packets_have_reason_position_and_clause() {
    let mut faults = Vec::new();
    for Vector { name, version, bytes, expected } in vectors(REFUSED) {
        let [code, offset, cause] = expected[..] else { panic!("{name}: three columns are expected") };
        let fault = match decode(&bytes, version, PACKET_BYTES_MAX) {
            Ok(other) => Some(format!("was taken as {other:?}")),
            Err(error) => {
                let same_code = format!("{:02x}", error.reason_code().0) == code;
                let same = same_code && error.offset.to_string() == offset && error.cause.contains(cause);
                (!same).then(|| error.to_string())
            }
        };
        faults.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_packet_type_and_version_has_a_vector() {
    for (version, types) in [(ProtocolVersion::V311, 1..=14), (ProtocolVersion::V5, 1..=15)] {
        for packet_type in types {
            let present = vectors(ACCEPTED).iter().any(|vector| {
                let level = if version == ProtocolVersion::V5 { 5 } else { 4 };
                let same_version = match vector.version {
                    Some(own) => own == version,
                    None => vector.bytes[8] == level,
                };
                // The packets without a body are the same in both.
                let shared = matches!(packet_type, 7 | 12 | 13) || (packet_type == 2 && same_version);
                vector.bytes[0] >> 4 == packet_type && (same_version || shared)
            });
            assert!(present, "no vector of type {packet_type} in {version:?}");
        }
    }
}

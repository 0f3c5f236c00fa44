//! What one small message costs the MQTT codec: `cargo bench -p wire`.

use divan::{Bencher, black_box};
use wire::mqtt::{
    Ack, Packet, PropertiesBuilder, Property, PropertyId, ProtocolVersion, Publish, QoS, decode, encode,
    encode_puback, encode_publish,
};

const VERSIONS: [ProtocolVersion; 2] = [ProtocolVersion::V311, ProtocolVersion::V5];
const TOPIC: &str = "v1/devices/me/telemetry";
const PACKET_BYTES_MAX: usize = 64 * 1024;

fn main() {
    divan::main();
}

/// A message of about 100 bytes, as the scenarios send them.
fn payload() -> [u8; 100] {
    [b'7'; 100]
}

fn message(version: ProtocolVersion) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_publish(TOPIC, QoS::AtLeastOnce, 7, &payload(), version, &mut bytes).expect("a valid message");
    bytes
}

#[divan::bench(args = VERSIONS)]
fn decode_publish(bencher: Bencher<'_, '_>, version: ProtocolVersion) {
    let bytes = message(version);
    bencher.bench(|| decode(black_box(&bytes), Some(version), PACKET_BYTES_MAX).is_ok());
}

#[divan::bench]
fn decode_publish_with_properties(bencher: Bencher<'_, '_>) {
    let mut properties = PropertiesBuilder::new();
    for property in [
        Property::TwoBytes(PropertyId::TopicAlias, 3),
        Property::Text(PropertyId::ContentType, "application/json"),
        Property::Pair(PropertyId::UserProperty, "unit", "km/h"),
    ] {
        properties.push(property).expect("a valid property");
    }
    let publish = Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: TOPIC,
        packet_id: Some(7),
        properties: properties.as_properties(),
        payload: &payload(),
    };
    let mut bytes = Vec::new();
    encode(&Packet::Publish(publish), ProtocolVersion::V5, &mut bytes).expect("a valid packet");
    bencher.bench(|| decode(black_box(&bytes), Some(ProtocolVersion::V5), PACKET_BYTES_MAX).is_ok());
}

#[divan::bench(args = VERSIONS)]
fn decode_puback(bencher: Bencher<'_, '_>, version: ProtocolVersion) {
    let bytes = [0x40, 2, 0, 7];
    bencher.bench(|| decode(black_box(&bytes), Some(version), PACKET_BYTES_MAX).is_ok());
}

#[divan::bench(args = VERSIONS)]
fn encode_message(bencher: Bencher<'_, '_>, version: ProtocolVersion) {
    let mut out = Vec::with_capacity(1024);
    bencher.bench_local(|| {
        out.clear();
        encode_publish(black_box(TOPIC), QoS::AtLeastOnce, 7, &payload(), version, &mut out).is_ok()
    });
}

#[divan::bench(args = VERSIONS)]
fn encode_ack_by_shortcut(bencher: Bencher<'_, '_>, version: ProtocolVersion) {
    let mut out = Vec::with_capacity(64);
    bencher.bench_local(|| {
        out.clear();
        encode_puback(black_box(7), version, &mut out);
    });
}

#[divan::bench(args = VERSIONS)]
fn encode_ack(bencher: Bencher<'_, '_>, version: ProtocolVersion) {
    let mut out = Vec::with_capacity(64);
    bencher.bench_local(|| {
        out.clear();
        encode(&Packet::PubAck(Ack::success(black_box(7))), version, &mut out).is_ok()
    });
}

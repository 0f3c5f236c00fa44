//! Arbitrary packets of every type, as the bytes they encode to.
//!
//! This file repeats which packet may have which property. Its source is the specification's table, not the codec's.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use wire::mqtt::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filter, Packet, Properties, PropertiesBuilder, Property,
    PropertyId as Id, ProtocolVersion, Publish, QoS, ReasonCode, SubAck, Subscribe, UnsubAck, Unsubscribe,
    Will, decode, encode,
};

const PACKET_BYTES_MAX: usize = 1 << 20;

const CONNECT: &[Id] = &[
    Id::SessionExpiryInterval,
    Id::ReceiveMaximum,
    Id::MaximumPacketSize,
    Id::TopicAliasMaximum,
    Id::RequestResponseInformation,
    Id::RequestProblemInformation,
    Id::UserProperty,
    Id::AuthenticationMethod,
];
const CONNACK: &[Id] = &[
    Id::SessionExpiryInterval,
    Id::ReceiveMaximum,
    Id::MaximumQos,
    Id::RetainAvailable,
    Id::MaximumPacketSize,
    Id::AssignedClientIdentifier,
    Id::TopicAliasMaximum,
    Id::ReasonString,
    Id::UserProperty,
    Id::WildcardSubscriptionAvailable,
    Id::SubscriptionIdentifierAvailable,
    Id::SharedSubscriptionAvailable,
    Id::ServerKeepAlive,
    Id::ResponseInformation,
    Id::ServerReference,
    Id::AuthenticationMethod,
];
const PUBLISH: &[Id] = &[
    Id::PayloadFormatIndicator,
    Id::MessageExpiryInterval,
    Id::TopicAlias,
    Id::ResponseTopic,
    Id::CorrelationData,
    Id::UserProperty,
    Id::SubscriptionIdentifier,
    Id::ContentType,
];
const WILL: &[Id] = &[
    Id::WillDelayInterval,
    Id::PayloadFormatIndicator,
    Id::MessageExpiryInterval,
    Id::ContentType,
    Id::ResponseTopic,
    Id::CorrelationData,
    Id::UserProperty,
];
const SUBSCRIBE: &[Id] = &[Id::SubscriptionIdentifier, Id::UserProperty];
const UNSUBSCRIBE: &[Id] = &[Id::UserProperty];
const ACK: &[Id] = &[Id::ReasonString, Id::UserProperty];
const DISCONNECT: &[Id] =
    &[Id::SessionExpiryInterval, Id::ReasonString, Id::UserProperty, Id::ServerReference];

/// One packet of a version and its bytes, which decode to the same packet.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) version: ProtocolVersion,
    pub(crate) bytes: Vec<u8>,
}

impl Encoded {
    fn new(packet: &Packet<'_>, version: ProtocolVersion) -> Self {
        let mut bytes = vec![0xaa];
        encode(packet, version, &mut bytes).unwrap();
        assert_eq!(bytes.remove(0), 0xaa, "what was in the buffer stays");
        let known = (!matches!(packet, Packet::Connect(_))).then_some(version);
        let decoded = decode(&bytes, known, PACKET_BYTES_MAX).unwrap().unwrap();
        assert_eq!((decoded.packet, decoded.consumed), (*packet, bytes.len()));
        Self { version, bytes }
    }
}

/// Any packet but CONNECT.
pub(crate) fn any_packet(version: ProtocolVersion) -> BoxedStrategy<Encoded> {
    let both = prop_oneof![
        connack(version),
        publish(version),
        ack(version),
        subscribe(version),
        suback(version),
        unsubscribe(version),
        unsuback(version),
        disconnect(version),
        select(vec![Packet::PingReq, Packet::PingResp])
            .prop_map(move |packet| Encoded::new(&packet, version)),
    ];
    if version == ProtocolVersion::V5 { prop_oneof![9 => both, 1 => auth()].boxed() } else { both.boxed() }
}

/// A CONNECT.
pub(crate) fn connect(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let will = (properties(version, WILL), topic(), bytes(), qos(), any::<bool>());
    let start = (any::<bool>(), any::<bool>(), any::<u16>(), properties(version, CONNECT));
    (start, "[a-z0-9ü]{0,40}", option::of(will), option::of("[ -~]{0,40}"), option::of(bytes())).prop_map(
        move |((is_bridge, clean_start, keep_alive_s, properties), client_id, will, username, password)| {
            let will = will.as_ref().map(|(properties, topic, payload, qos, retain)| Will {
                qos: *qos,
                retain: *retain,
                properties: properties.as_properties(),
                topic,
                payload,
            });
            let password_allowed = version == ProtocolVersion::V5 || username.is_some();
            let connect = Connect {
                version,
                is_bridge: is_bridge && version != ProtocolVersion::V5,
                clean_start,
                keep_alive_s,
                properties: properties.as_properties(),
                client_id: &client_id,
                will,
                username: username.as_deref(),
                password: password.as_deref().filter(|_| password_allowed),
            };
            Encoded::new(&Packet::Connect(connect), version)
        },
    )
}

fn connack(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let codes: &[u8] = if is_v5(version) { &[0, 0x80, 0x84, 0x87, 0x9F] } else { &[0, 1, 2, 3, 4, 5] };
    (any::<bool>(), select(codes), properties(version, CONNACK)).prop_map(
        move |(present, code, properties)| {
            let properties = properties.as_properties();
            let connack = ConnAck { session_present: present && code == 0, code, properties };
            Encoded::new(&Packet::ConnAck(connack), version)
        },
    )
}

fn publish(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    // Lengths around the borders of one and two length bytes, and short ones, which most are.
    let payload =
        prop_oneof![4 => bytes(), 1 => vec(any::<u8>(), 100..140), 1 => vec(any::<u8>(), 16_300..16_500)];
    (any::<(bool, bool, bool)>(), qos(), topic(), packet_id(), properties(version, PUBLISH), payload)
        .prop_map(move |((dup, retain, by_alias), qos, topic, id, properties, payload)| {
            let properties = properties.as_properties();
            let by_alias = by_alias && properties.topic_alias().is_some();
            let publish = Publish {
                dup: dup && qos != QoS::AtMostOnce,
                qos,
                retain,
                topic: if by_alias { "" } else { &topic },
                packet_id: (qos != QoS::AtMostOnce).then_some(id),
                properties,
                payload: &payload,
            };
            Encoded::new(&Packet::Publish(publish), version)
        })
}

fn ack(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    (0..4_u8, any::<bool>(), packet_id(), properties(version, ACK)).prop_map(
        move |(which, failed, packet_id, properties)| {
            let failure = if which < 2 { 0x99 } else { 0x92 };
            let reason = ReasonCode(if failed && is_v5(version) { failure } else { 0 });
            let ack = Ack { packet_id, reason, properties: properties.as_properties() };
            let packet = match which {
                0 => Packet::PubAck(ack),
                1 => Packet::PubRec(ack),
                2 => Packet::PubRel(ack),
                _ => Packet::PubComp(ack),
            };
            Encoded::new(&packet, version)
        },
    )
}

fn subscribe(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let options = if is_v5(version) { (0..3_u8, 0..3_u8).boxed() } else { (0..3_u8, Just(0)).boxed() };
    (packet_id(), properties(version, SUBSCRIBE), vec((filter(), options), 1..5)).prop_map(
        move |(packet_id, properties, filters)| {
            let filters: Vec<_> = filters
                .iter()
                .map(|(topic, (qos, handling))| Filter { topic, options: qos | handling << 4 })
                .collect();
            let layout = Subscribe::layout(&filters).unwrap();
            let subscribe = Subscribe::new(packet_id, properties.as_properties(), &layout);
            assert_eq!(subscribe.filters().collect::<Vec<_>>(), filters);
            Encoded::new(&Packet::Subscribe(subscribe), version)
        },
    )
}

fn suback(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let codes: &[u8] = if is_v5(version) { &[0, 1, 2, 0x80, 0x8F, 0xA2] } else { &[0, 1, 2, 0x80] };
    (packet_id(), properties(version, ACK), vec(select(codes), 1..6)).prop_map(
        move |(packet_id, properties, codes)| {
            let suback = SubAck { packet_id, properties: properties.as_properties(), codes: &codes };
            Encoded::new(&Packet::SubAck(suback), version)
        },
    )
}

fn unsubscribe(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    (packet_id(), properties(version, UNSUBSCRIBE), vec(filter(), 1..5)).prop_map(
        move |(packet_id, properties, filters)| {
            let filters: Vec<_> = filters.iter().map(String::as_str).collect();
            let layout = Unsubscribe::layout(&filters).unwrap();
            let unsubscribe = Unsubscribe::new(packet_id, properties.as_properties(), &layout);
            assert_eq!(unsubscribe.filters().collect::<Vec<_>>(), filters);
            Encoded::new(&Packet::Unsubscribe(unsubscribe), version)
        },
    )
}

fn unsuback(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let codes = vec(select(&[0_u8, 0x11, 0x80, 0x91][..]), 1..6);
    (packet_id(), properties(version, ACK), codes).prop_map(move |(packet_id, properties, codes)| {
        let codes = if is_v5(version) { &codes[..] } else { &[] };
        let unsuback = UnsubAck { packet_id, properties: properties.as_properties(), codes };
        Encoded::new(&Packet::UnsubAck(unsuback), version)
    })
}

fn disconnect(version: ProtocolVersion) -> impl Strategy<Value = Encoded> {
    let codes: &[u8] = if is_v5(version) { &[0, 4, 0x81, 0x8B, 0x95, 0xA2] } else { &[0] };
    (select(codes), properties(version, DISCONNECT)).prop_map(move |(code, properties)| {
        let disconnect = Disconnect { reason: ReasonCode(code), properties: properties.as_properties() };
        Encoded::new(&Packet::Disconnect(disconnect), version)
    })
}

fn auth() -> impl Strategy<Value = Encoded> {
    let version = ProtocolVersion::V5;
    (select(&[0_u8, 0x18, 0x19][..]), bytes(), properties(version, ACK)).prop_map(
        move |(code, data, others)| {
            let mut properties = PropertiesBuilder::new();
            properties.push(Property::Binary(Id::AuthenticationData, &data)).unwrap();
            properties.push(Property::Text(Id::AuthenticationMethod, "SCRAM")).unwrap();
            for property in others.as_properties().iter() {
                properties.push(property).unwrap();
            }
            let auth = Auth { reason: ReasonCode(code), properties: properties.as_properties() };
            assert_eq!(auth.properties.authentication_method(), Some("SCRAM"));
            Encoded::new(&Packet::Auth(auth), version)
        },
    )
}

/// Some of the allowed properties, user properties possibly several times; none in MQTT 3.1.1.
fn properties(version: ProtocolVersion, allowed: &'static [Id]) -> BoxedStrategy<PropertiesBuilder> {
    if !is_v5(version) {
        return Just(PropertiesBuilder::new()).boxed();
    }
    let chosen = prop_oneof![2 => Just(Vec::new()), 3 => subsequence(allowed, 0..=allowed.len())];
    (chosen, any::<u32>(), topic(), bytes(), 1..3_usize)
        .prop_map(|(chosen, number, text, bytes, times)| {
            let mut properties = PropertiesBuilder::new();
            for id in chosen {
                let repeated = if id == Id::UserProperty { times } else { 1 };
                for _ in 0..repeated {
                    properties.push(property(id, number, &text, &bytes)).unwrap();
                }
            }
            assert!(
                properties.as_properties().iter().count()
                    >= usize::from(properties.as_properties() != Properties::NONE)
            );
            properties
        })
        .boxed()
}

fn property<'a>(id: Id, number: u32, text: &'a str, bytes: &'a [u8]) -> Property<'a> {
    match id {
        Id::PayloadFormatIndicator
        | Id::RequestProblemInformation
        | Id::RequestResponseInformation
        | Id::MaximumQos
        | Id::RetainAvailable
        | Id::WildcardSubscriptionAvailable
        | Id::SubscriptionIdentifierAvailable
        | Id::SharedSubscriptionAvailable => Property::Byte(id, number as u8 & 1),
        Id::ServerKeepAlive | Id::ReceiveMaximum | Id::TopicAliasMaximum | Id::TopicAlias => {
            Property::TwoBytes(id, number as u16 | 1)
        }
        Id::MessageExpiryInterval
        | Id::SessionExpiryInterval
        | Id::WillDelayInterval
        | Id::MaximumPacketSize => Property::FourBytes(id, number | 1),
        Id::SubscriptionIdentifier => Property::VariableInt(id, (number & 0x0fff_ffff) | 1),
        Id::CorrelationData | Id::AuthenticationData => Property::Binary(id, bytes),
        Id::UserProperty => Property::Pair(id, text, text),
        _ => Property::Text(id, text),
    }
}

fn is_v5(version: ProtocolVersion) -> bool {
    version == ProtocolVersion::V5
}

fn packet_id() -> impl Strategy<Value = u16> {
    1..=u16::MAX
}

fn qos() -> impl Strategy<Value = QoS> {
    select(vec![QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce])
}

fn topic() -> impl Strategy<Value = String> {
    "[a-zß逗/0-9$ ]{1,30}"
}

fn filter() -> impl Strategy<Value = String> {
    select(vec!["#", "+", "a/#", "+/b/+", "$share/group/a/+", "/", "ä//b"]).prop_map(str::to_owned)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..60)
}

//! The properties of MQTT 5: which packets allow each of them, and its type and range [MQTT5 2.2.2].

use super::error::DecodeError;
use super::packet_type::PacketType;
use super::reader::Reader;
use super::reason::ReasonCode;
use super::topic::is_valid_name;
type Result<T> = std::result::Result<T, DecodeError>;

/// One property and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property<'a> {
    /// One byte.
    Byte(PropertyId, u8),
    /// Two bytes.
    TwoBytes(PropertyId, u16),
    /// Four bytes.
    FourBytes(PropertyId, u32),
    /// A variable byte integer.
    VariableInt(PropertyId, u32),
    /// Text.
    Text(PropertyId, &'a str),
    /// Bytes.
    Binary(PropertyId, &'a [u8]),
    /// Two texts.
    Pair(PropertyId, &'a str, &'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Byte,
    TwoBytes,
    FourBytes,
    VariableInt,
    Text,
    Binary,
    Pair,
}

/// Scope of a will's properties. A scope has one bit per packet type; bit 0 is the will.
pub(super) const WILL: u16 = 1;

const fn bit(packet: PacketType) -> u16 {
    1 << packet as u16
}

/// Scope of a packet's own properties.
pub(super) const fn scope_of(packet: PacketType) -> u16 {
    bit(packet)
}

const ACKS: u16 =
    bit(PacketType::PubAck) | bit(PacketType::PubRec) | bit(PacketType::PubRel) | bit(PacketType::PubComp);
const CONNECT: u16 = bit(PacketType::Connect);
const CONNACK: u16 = bit(PacketType::ConnAck);
const PUBLISH: u16 = bit(PacketType::Publish);
const SUBSCRIBE: u16 = bit(PacketType::Subscribe);
const SUBACKS: u16 = bit(PacketType::SubAck) | bit(PacketType::UnsubAck);
const DISCONNECT: u16 = bit(PacketType::Disconnect);
const AUTH: u16 = bit(PacketType::Auth);
const ALL: u16 = CONNECT
    | CONNACK
    | PUBLISH
    | ACKS
    | SUBSCRIBE
    | SUBACKS
    | bit(PacketType::Unsubscribe)
    | DISCONNECT
    | AUTH
    | WILL;

macro_rules! property_ids {
    ($($name:ident = $id:literal $kind:ident $allowed:expr;)*) => {
        /// The identifier of a property [MQTT5 table 2-4].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // The names are the specification's.
        pub enum PropertyId { $($name = $id,)* }

        impl PropertyId {
            fn from_code(code: u32) -> Option<Self> {
                match code { $($id => Some(Self::$name),)* _ => None }
            }

            const fn kind(self) -> Kind {
                match self { $(Self::$name => Kind::$kind,)* }
            }

            pub(super) const fn allowed(self) -> u16 {
                match self { $(Self::$name => $allowed,)* }
            }
        }
    };
}

property_ids! {
    PayloadFormatIndicator = 0x01 Byte PUBLISH | WILL;
    MessageExpiryInterval = 0x02 FourBytes PUBLISH | WILL;
    ContentType = 0x03 Text PUBLISH | WILL;
    ResponseTopic = 0x08 Text PUBLISH | WILL;
    CorrelationData = 0x09 Binary PUBLISH | WILL;
    SubscriptionIdentifier = 0x0B VariableInt PUBLISH | SUBSCRIBE;
    SessionExpiryInterval = 0x11 FourBytes CONNECT | CONNACK | DISCONNECT;
    AssignedClientIdentifier = 0x12 Text CONNACK;
    ServerKeepAlive = 0x13 TwoBytes CONNACK;
    AuthenticationMethod = 0x15 Text CONNECT | CONNACK | AUTH;
    AuthenticationData = 0x16 Binary CONNECT | CONNACK | AUTH;
    RequestProblemInformation = 0x17 Byte CONNECT;
    WillDelayInterval = 0x18 FourBytes WILL;
    RequestResponseInformation = 0x19 Byte CONNECT;
    ResponseInformation = 0x1A Text CONNACK;
    ServerReference = 0x1C Text CONNACK | DISCONNECT;
    ReasonString = 0x1F Text CONNACK | ACKS | SUBACKS | DISCONNECT | AUTH;
    ReceiveMaximum = 0x21 TwoBytes CONNECT | CONNACK;
    TopicAliasMaximum = 0x22 TwoBytes CONNECT | CONNACK;
    TopicAlias = 0x23 TwoBytes PUBLISH;
    MaximumQos = 0x24 Byte CONNACK;
    RetainAvailable = 0x25 Byte CONNACK;
    UserProperty = 0x26 Pair ALL;
    MaximumPacketSize = 0x27 FourBytes CONNECT | CONNACK;
    WildcardSubscriptionAvailable = 0x28 Byte CONNACK;
    SubscriptionIdentifierAvailable = 0x29 Byte CONNACK;
    SharedSubscriptionAvailable = 0x2A Byte CONNACK;
}

impl PropertyId {
    /// Whether the property may appear several times [MQTT5 3.3.2.3.7, 3.3.2.3.8].
    pub(super) fn may_repeat(self, scope: u16) -> bool {
        self == Self::UserProperty || (self == Self::SubscriptionIdentifier && scope == PUBLISH)
    }
}

impl<'a> Property<'a> {
    /// The identifier.
    pub const fn id(&self) -> PropertyId {
        match *self {
            Self::Byte(id, _)
            | Self::TwoBytes(id, _)
            | Self::FourBytes(id, _)
            | Self::VariableInt(id, _)
            | Self::Text(id, _)
            | Self::Binary(id, _)
            | Self::Pair(id, _, _) => id,
        }
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let offset = reader.offset();
        let code = reader.variable_int()?;
        let id = PropertyId::from_code(code)
            .ok_or(DecodeError::malformed("unknown property [MQTT5 2.2.2.2]").at(offset))?;
        Ok(match id.kind() {
            Kind::Byte => Self::Byte(id, reader.u8()?),
            Kind::TwoBytes => Self::TwoBytes(id, reader.u16()?),
            Kind::FourBytes => Self::FourBytes(id, reader.u32()?),
            Kind::VariableInt => Self::VariableInt(id, reader.variable_int()?),
            Kind::Text => Self::Text(id, reader.string()?),
            Kind::Binary => Self::Binary(id, reader.binary()?),
            Kind::Pair => Self::Pair(id, reader.string()?, reader.string()?),
        })
    }

    /// Whether the value has the type of the identifier. Decoded properties always have it.
    pub(super) fn is_well_typed(&self) -> bool {
        let kind = match self {
            Self::Byte(..) => Kind::Byte,
            Self::TwoBytes(..) => Kind::TwoBytes,
            Self::FourBytes(..) => Kind::FourBytes,
            Self::VariableInt(..) => Kind::VariableInt,
            Self::Text(..) => Kind::Text,
            Self::Binary(..) => Kind::Binary,
            Self::Pair(..) => Kind::Pair,
        };
        kind == self.id().kind()
    }

    /// Checks the range of the value.
    pub(super) fn check_value(&self) -> Result<()> {
        use PropertyId as Id;
        let fault = match *self {
            Self::Byte(Id::MaximumQos, value) if value > 1 => {
                "Maximum QoS is neither 0 nor 1 [MQTT5 3.2.2.3.4]"
            }
            Self::Byte(_, value) if value > 1 => "the property's value must be 0 or 1",
            Self::TwoBytes(Id::ReceiveMaximum, 0) => "Receive Maximum is zero [MQTT5 3.1.2.11.3]",
            Self::TwoBytes(Id::TopicAlias, 0) => {
                let code = ReasonCode::TOPIC_ALIAS_INVALID;
                return Err(DecodeError::new(code, "Topic Alias is zero [MQTT-3.3.2-8]"));
            }
            Self::FourBytes(Id::MaximumPacketSize, 0) => "Maximum Packet Size is zero [MQTT5 3.1.2.11.4]",
            Self::VariableInt(Id::SubscriptionIdentifier, 0) => {
                "Subscription Identifier is zero [MQTT5 3.8.2.1.2]"
            }
            Self::Text(Id::ResponseTopic, topic) if !is_valid_name(topic) => {
                "Response Topic holds wildcards [MQTT-3.3.2-14]"
            }
            _ => return Ok(()),
        };
        Err(DecodeError::protocol(fault))
    }
}

//! Properties of MQTT 5 packets [MQTT5 2.2.2].

use super::error::{DecodeError, EncodeError};
use super::packet::PacketType;
use super::reader::Reader;
use super::writer;

type Result<T> = std::result::Result<T, DecodeError>;

/// The properties of one packet: checked when it was decoded, read again when somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

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

/// Where a property may stand: a bit per packet type, bit 0 for the will.
pub(super) const WILL: u16 = 1;

const fn bit(packet: PacketType) -> u16 {
    1 << packet as u16
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

            const fn allowed(self) -> u16 {
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
    /// May stand several times [MQTT5 3.3.2.3.7, 3.3.2.3.8].
    fn may_repeat(self, place: u16) -> bool {
        self == Self::UserProperty || (self == Self::SubscriptionIdentifier && place == PUBLISH)
    }
}

impl<'a> Property<'a> {
    /// Which property it is.
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

    fn read(reader: &mut Reader<'a>) -> Result<Self> {
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

    /// Ranges that the type of a property does not express.
    fn check_value(&self) -> Result<()> {
        use PropertyId as Id;
        let fault = match *self {
            Self::Byte(_, value) if value > 1 => "the property's value must be 0 or 1",
            Self::TwoBytes(Id::ReceiveMaximum, 0) => "Receive Maximum is zero [MQTT5 3.1.2.11.3]",
            Self::TwoBytes(Id::TopicAlias, 0) => {
                let code = super::ReasonCode::TOPIC_ALIAS_INVALID;
                return Err(DecodeError::new(code, "Topic Alias is zero [MQTT-3.3.2-8]"));
            }
            Self::FourBytes(Id::MaximumPacketSize, 0) => "Maximum Packet Size is zero [MQTT5 3.1.2.11.4]",
            Self::VariableInt(Id::SubscriptionIdentifier, 0) => {
                "Subscription Identifier is zero [MQTT5 3.8.2.1.2]"
            }
            Self::Text(Id::ResponseTopic, topic) if !super::is_valid_name(topic) => {
                "Response Topic holds wildcards [MQTT-3.3.2-14]"
            }
            _ => return Ok(()),
        };
        Err(DecodeError::protocol(fault))
    }
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Self = Self { raw: &[] };

    pub(super) fn read(reader: &mut Reader<'a>, place: u16) -> Result<Self> {
        let len = reader.variable_int()?;
        let base = reader.offset();
        let raw = reader.take(len as usize)?;
        if !raw.is_empty() {
            check(Reader::new(raw, base), place)?;
        }
        Ok(Self { raw })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        writer::variable_int(self.raw.len() as u32, out);
        out.extend_from_slice(self.raw);
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// All properties in their order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let mut reader = Reader::new(self.raw, 0);
        std::iter::from_fn(move || {
            if reader.is_at_end() {
                return None;
            }
            Some(Property::read(&mut reader).expect("BUG: properties are checked before they are kept"))
        })
    }

    /// The first property with this identifier.
    pub fn get(&self, id: PropertyId) -> Option<Property<'a>> {
        self.iter().find(|property| property.id() == id)
    }

    /// The value of a numeric property.
    pub fn number(&self, id: PropertyId) -> Option<u32> {
        match self.get(id)? {
            Property::Byte(_, value) => Some(u32::from(value)),
            Property::TwoBytes(_, value) => Some(u32::from(value)),
            Property::FourBytes(_, value) | Property::VariableInt(_, value) => Some(value),
            Property::Text(..) | Property::Binary(..) | Property::Pair(..) => None,
        }
    }

    /// The value of a text property.
    pub fn text(&self, id: PropertyId) -> Option<&'a str> {
        match self.get(id)? {
            Property::Text(_, text) => Some(text),
            _ => None,
        }
    }

    /// The reason that the peer gives in words.
    pub fn reason_string(&self) -> Option<&'a str> {
        self.text(PropertyId::ReasonString)
    }

    /// Receive Maximum; 65,535 when absent [MQTT5 3.1.2.11.3].
    pub fn receive_maximum(&self) -> u16 {
        self.number(PropertyId::ReceiveMaximum).and_then(|value| value.try_into().ok()).unwrap_or(u16::MAX)
    }

    /// Names and values of the user properties.
    pub fn user_properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.iter().filter_map(|property| match property {
            Property::Pair(PropertyId::UserProperty, name, value) => Some((name, value)),
            _ => None,
        })
    }
}

fn check(mut reader: Reader<'_>, place: u16) -> Result<()> {
    // A bit per identifier; the largest is 0x2A.
    let mut seen = 0_u64;
    while !reader.is_at_end() {
        let offset = reader.offset();
        let property = Property::read(&mut reader)?;
        let id = property.id();
        if id.allowed() & place == 0 {
            return Err(DecodeError::protocol(
                "the property does not belong into this packet [MQTT5 2.2.2.2]",
            )
            .at(offset));
        }
        let mask = 1_u64 << id as u8;
        if seen & mask != 0 && !id.may_repeat(place) {
            return Err(DecodeError::protocol("the property stands twice [MQTT5 2.2.2.2]").at(offset));
        }
        seen |= mask;
        property.check_value().map_err(|error| error.at(offset))?;
    }
    let has = |id: PropertyId| seen & (1 << id as u8) != 0;
    if has(PropertyId::AuthenticationData) && !has(PropertyId::AuthenticationMethod) {
        return Err(DecodeError::protocol("Authentication Data without a method [MQTT5 3.1.2.11.10]")
            .at(reader.offset()));
    }
    Ok(())
}

/// The place of a packet's own properties.
pub(super) const fn place_of(packet: PacketType) -> u16 {
    bit(packet)
}

/// Properties to send.
#[derive(Debug, Clone, Default)]
pub struct PropertiesBuilder {
    raw: Vec<u8>,
}

impl PropertiesBuilder {
    /// No properties yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a property. Whether it belongs into the packet is the caller's business.
    pub fn push(&mut self, property: Property<'_>) -> std::result::Result<&mut Self, EncodeError> {
        let start = self.raw.len();
        self.raw.push(property.id() as u8);
        let written = self.push_value(property);
        if written.is_err() {
            self.raw.truncate(start);
        }
        written.map(|()| self)
    }

    fn push_value(&mut self, property: Property<'_>) -> std::result::Result<(), EncodeError> {
        let out = &mut self.raw;
        match property {
            Property::Byte(_, value) => out.push(value),
            Property::TwoBytes(_, value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::FourBytes(_, value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::VariableInt(_, value) => writer::variable_int(value, out),
            Property::Text(_, text) => writer::binary("a property", text.as_bytes(), out)?,
            Property::Binary(_, bytes) => writer::binary("a property", bytes, out)?,
            Property::Pair(_, name, value) => {
                writer::binary("a user property's name", name.as_bytes(), out)?;
                writer::binary("a user property's value", value.as_bytes(), out)?;
            }
        }
        Ok(())
    }

    /// The properties as a packet carries them.
    pub fn as_properties(&self) -> Properties<'_> {
        Properties { raw: &self.raw }
    }
}

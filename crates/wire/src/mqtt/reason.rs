//! Reason MQTT codes 5 and return MQTT codes 3.1.1.

use std::fmt;

use super::packet_type::PacketType;

/// An MQTT 5 reason code [MQTT5 2.4]. Codes below 0x80 mean success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReasonCode(pub u8);

macro_rules! reason_codes {
    ($($name:ident = $code:literal $text:literal),* $(,)?) => {
        impl ReasonCode {
            $(#[doc = concat!("0x", stringify!($code), ": ", $text, ".")] pub const $name: Self = Self($code);)*

            /// The specification's name for the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($code => Some($text),)* _ => None }
            }
        }
    };
}

reason_codes! {
    SUCCESS = 0x00 "success",
    GRANTED_QOS_1 = 0x01 "granted QoS 1",
    GRANTED_QOS_2 = 0x02 "granted QoS 2",
    DISCONNECT_WITH_WILL = 0x04 "disconnect with will message",
    NO_MATCHING_SUBSCRIBERS = 0x10 "no matching subscribers",
    NO_SUBSCRIPTION_EXISTED = 0x11 "no subscription existed",
    CONTINUE_AUTHENTICATION = 0x18 "continue authentication",
    REAUTHENTICATE = 0x19 "re-authenticate",
    UNSPECIFIED_ERROR = 0x80 "unspecified error",
    MALFORMED_PACKET = 0x81 "malformed packet",
    PROTOCOL_ERROR = 0x82 "protocol error",
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83 "implementation specific error",
    UNSUPPORTED_PROTOCOL_VERSION = 0x84 "unsupported protocol version",
    CLIENT_IDENTIFIER_NOT_VALID = 0x85 "client identifier not valid",
    BAD_USER_NAME_OR_PASSWORD = 0x86 "bad user name or password",
    NOT_AUTHORIZED = 0x87 "not authorized",
    SERVER_UNAVAILABLE = 0x88 "server unavailable",
    SERVER_BUSY = 0x89 "server busy",
    BANNED = 0x8A "banned",
    SERVER_SHUTTING_DOWN = 0x8B "server shutting down",
    BAD_AUTHENTICATION_METHOD = 0x8C "bad authentication method",
    KEEP_ALIVE_TIMEOUT = 0x8D "keep alive timeout",
    SESSION_TAKEN_OVER = 0x8E "session taken over",
    TOPIC_FILTER_INVALID = 0x8F "topic filter invalid",
    TOPIC_NAME_INVALID = 0x90 "topic name invalid",
    PACKET_IDENTIFIER_IN_USE = 0x91 "packet identifier in use",
    PACKET_IDENTIFIER_NOT_FOUND = 0x92 "packet identifier not found",
    RECEIVE_MAXIMUM_EXCEEDED = 0x93 "receive maximum exceeded",
    TOPIC_ALIAS_INVALID = 0x94 "topic alias invalid",
    PACKET_TOO_LARGE = 0x95 "packet too large",
    MESSAGE_RATE_TOO_HIGH = 0x96 "message rate too high",
    QUOTA_EXCEEDED = 0x97 "quota exceeded",
    ADMINISTRATIVE_ACTION = 0x98 "administrative action",
    PAYLOAD_FORMAT_INVALID = 0x99 "payload format invalid",
    RETAIN_NOT_SUPPORTED = 0x9A "retain not supported",
    QOS_NOT_SUPPORTED = 0x9B "QoS not supported",
    USE_ANOTHER_SERVER = 0x9C "use another server",
    SERVER_MOVED = 0x9D "server moved",
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E "shared subscriptions not supported",
    CONNECTION_RATE_EXCEEDED = 0x9F "connection rate exceeded",
    MAXIMUM_CONNECT_TIME = 0xA0 "maximum connect time",
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1 "subscription identifiers not supported",
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2 "wildcard subscriptions not supported",
}

impl ReasonCode {
    /// Whether the code means failure.
    pub const fn is_error(self) -> bool {
        self.0 >= 0x80
    }

    /// Whether MQTT 5 lets this packet carry the code [MQTT5 table 2-6 and the tables of chapter 3].
    pub const fn belongs_to(self, packet: PacketType) -> bool {
        match packet {
            PacketType::ConnAck => {
                matches!(self.0, 0x00 | 0x80..=0x8A | 0x8C | 0x90 | 0x95 | 0x97 | 0x99..=0x9D | 0x9F)
            }
            PacketType::PubAck | PacketType::PubRec => {
                matches!(self.0, 0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99)
            }
            PacketType::PubRel | PacketType::PubComp => matches!(self.0, 0x00 | 0x92),
            PacketType::SubAck => {
                matches!(self.0, 0x00..=0x02 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91 | 0x97 | 0x9E | 0xA1 | 0xA2)
            }
            PacketType::UnsubAck => matches!(self.0, 0x00 | 0x11 | 0x80 | 0x83 | 0x87 | 0x8F | 0x91),
            // Table 2-6 has 0x8C, the table of 3.14.2.1 does not. We accept it.
            PacketType::Disconnect => {
                matches!(self.0, 0x00 | 0x04 | 0x80..=0x83 | 0x87 | 0x89 | 0x8B..=0x90 | 0x93..=0xA2)
            }
            PacketType::Auth => matches!(self.0, 0x00 | 0x18 | 0x19),
            _ => false,
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02X} ({})", self.0, self.name().unwrap_or("unnamed"))
    }
}

/// CONNACK return MQTT codes 3.1.1 [MQTT-3.2.2-4].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectReturnCode;

impl ConnectReturnCode {
    /// Connection accepted.
    pub const ACCEPTED: u8 = 0;
    /// The level of the protocol is not supported.
    pub const UNACCEPTABLE_PROTOCOL_VERSION: u8 = 1;
    /// The client identifier is not allowed.
    pub const IDENTIFIER_REJECTED: u8 = 2;
    /// The service is unavailable.
    pub const SERVER_UNAVAILABLE: u8 = 3;
    /// User name or password are malformed.
    pub const BAD_USER_NAME_OR_PASSWORD: u8 = 4;
    /// The client may not connect.
    pub const NOT_AUTHORIZED: u8 = 5;

    /// The meaning of a return code.
    pub const fn name(code: u8) -> Option<&'static str> {
        Some(match code {
            Self::ACCEPTED => "accepted",
            Self::UNACCEPTABLE_PROTOCOL_VERSION => "unacceptable protocol version",
            Self::IDENTIFIER_REJECTED => "client identifier rejected",
            Self::SERVER_UNAVAILABLE => "server unavailable",
            Self::BAD_USER_NAME_OR_PASSWORD => "bad user name or password",
            Self::NOT_AUTHORIZED => "not authorized",
            _ => return None,
        })
    }
}

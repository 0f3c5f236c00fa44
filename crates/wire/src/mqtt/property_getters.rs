//! Getters for single properties, with the defaults of the specification.

use super::properties::Properties;
use super::property::{Property, PropertyId as Id};
use super::qos::QoS;

impl<'a> Properties<'a> {
    /// Seconds that a session outlives its connection; 0 when absent in CONNECT [MQTT5 3.1.2.11.2].
    pub fn session_expiry_interval(&self) -> Option<u32> {
        self.number(Id::SessionExpiryInterval)
    }

    /// Receive maximum: unacknowledged QoS 1 and 2 messages that the peer accepts; 65,535 when absent [MQTT5 3.1.2.11.3].
    pub fn receive_maximum(&self) -> u16 {
        self.two_bytes(Id::ReceiveMaximum).unwrap_or(u16::MAX)
    }

    /// Bytes of the largest packet that the peer accepts; no bound when absent [MQTT5 3.1.2.11.4].
    pub fn maximum_packet_size(&self) -> Option<u32> {
        self.number(Id::MaximumPacketSize)
    }

    /// The highest topic alias that the peer accepts; 0 (none) when absent [MQTT5 3.1.2.11.5].
    pub fn topic_alias_maximum(&self) -> u16 {
        self.two_bytes(Id::TopicAliasMaximum).unwrap_or(0)
    }

    /// The number that stands for the topic of a PUBLISH [MQTT5 3.3.2.3.4].
    pub fn topic_alias(&self) -> Option<u16> {
        self.two_bytes(Id::TopicAlias)
    }

    /// Whether CONNECT requests Response Information; false when absent [MQTT5 3.1.2.11.6].
    pub fn request_response_information(&self) -> bool {
        self.number(Id::RequestResponseInformation) == Some(1)
    }

    /// Whether the client wants reason strings everywhere; true when absent [MQTT5 3.1.2.11.7].
    pub fn request_problem_information(&self) -> bool {
        self.number(Id::RequestProblemInformation) != Some(0)
    }

    /// The name of an extended authentication [MQTT5 3.1.2.11.9].
    pub fn authentication_method(&self) -> Option<&'a str> {
        self.text(Id::AuthenticationMethod)
    }

    /// Data of the authentication method [MQTT5 3.1.2.11.10].
    pub fn authentication_data(&self) -> Option<&'a [u8]> {
        self.binary(Id::AuthenticationData)
    }

    /// Seconds between the end of a connection and its will; 0 when absent [MQTT5 3.1.3.2.2].
    pub fn will_delay_interval(&self) -> u32 {
        self.number(Id::WillDelayInterval).unwrap_or(0)
    }

    /// Whether the sender declares the payload as UTF-8; false when absent [MQTT5 3.3.2.3.2].
    pub fn payload_is_utf8(&self) -> bool {
        self.number(Id::PayloadFormatIndicator) == Some(1)
    }

    /// Seconds after which the message expires; never when absent [MQTT5 3.3.2.3.3].
    pub fn message_expiry_interval(&self) -> Option<u32> {
        self.number(Id::MessageExpiryInterval)
    }

    /// Content type of the payload [MQTT5 3.3.2.3.9].
    pub fn content_type(&self) -> Option<&'a str> {
        self.text(Id::ContentType)
    }

    /// Topic for the answer [MQTT5 3.3.2.3.5].
    pub fn response_topic(&self) -> Option<&'a str> {
        self.text(Id::ResponseTopic)
    }

    /// Correlation data, which the answer repeats [MQTT5 3.3.2.3.6].
    pub fn correlation_data(&self) -> Option<&'a [u8]> {
        self.binary(Id::CorrelationData)
    }

    /// The numbers of the subscriptions that a message matched, or the number of a SUBSCRIBE [MQTT5 3.3.2.3.8].
    pub fn subscription_identifiers(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.iter().filter_map(|property| match property {
            Property::VariableInt(Id::SubscriptionIdentifier, value) => Some(value),
            _ => None,
        })
    }

    /// The client identifier that the server chose [MQTT5 3.2.2.3.7].
    pub fn assigned_client_identifier(&self) -> Option<&'a str> {
        self.text(Id::AssignedClientIdentifier)
    }

    /// The keep-alive that the server uses, in seconds [MQTT5 3.2.2.3.14].
    pub fn server_keep_alive(&self) -> Option<u16> {
        self.two_bytes(Id::ServerKeepAlive)
    }

    /// The highest QoS that the server takes; 2 when absent [MQTT5 3.2.2.3.4].
    pub fn maximum_qos(&self) -> QoS {
        match self.number(Id::MaximumQos) {
            Some(0) => QoS::AtMostOnce,
            Some(_) => QoS::AtLeastOnce,
            None => QoS::ExactlyOnce,
        }
    }

    /// Whether the server offers the feature of an `*Available` property; true when absent [MQTT5 3.2.2.3].
    pub fn is_available(&self, id: Id) -> bool {
        self.number(id) != Some(0)
    }

    /// Basis for response topics [MQTT5 3.2.2.3.15].
    pub fn response_information(&self) -> Option<&'a str> {
        self.text(Id::ResponseInformation)
    }

    /// Another server to use [MQTT5 4.13].
    pub fn server_reference(&self) -> Option<&'a str> {
        self.text(Id::ServerReference)
    }

    /// The reason as text.
    pub fn reason_string(&self) -> Option<&'a str> {
        self.text(Id::ReasonString)
    }

    /// Names and values of the user properties, in their order.
    pub fn user_properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.iter().filter_map(|property| match property {
            Property::Pair(Id::UserProperty, name, value) => Some((name, value)),
            _ => None,
        })
    }

    fn two_bytes(&self, id: Id) -> Option<u16> {
        match self.get(id)? {
            Property::TwoBytes(_, value) => Some(value),
            _ => None,
        }
    }
}

//! The options of a subscription [MQTT5 3.8.3.1].

use std::num::NonZeroU32;

/// The quality of service of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Quality {
    /// QoS 0.
    AtMostOnce = 0,
    /// QoS 1.
    AtLeastOnce = 1,
    /// QoS 2.
    ExactlyOnce = 2,
}

impl Quality {
    /// The quality of a number from 0 to 2.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

/// The options of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionOptions {
    /// The highest quality of service with which the subscriber wants messages.
    pub qos: Quality,
    /// The subscriber gets no messages that it has published itself.
    pub no_local: bool,
    /// Messages keep the retain flag of their publisher.
    pub retain_as_published: bool,
    /// The identifier that messages of this subscription carry; MQTT 5 only.
    pub identifier: Option<NonZeroU32>,
}

/// When a subscription gets the retained messages that match it [MQTT5 3.8.3.1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainHandling {
    /// At every SUBSCRIBE.
    Always,
    /// If the session did not have the subscription.
    IfNew,
    Never,
}

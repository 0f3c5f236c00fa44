//! The quality of service of a message.

/// Quality of service: how often a message may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QoS {
    /// 0: at most once.
    AtMostOnce = 0,
    /// 1: at least once.
    AtLeastOnce = 1,
    /// 2: exactly once.
    ExactlyOnce = 2,
}

impl QoS {
    /// The quality of service of two bits; `None` for 3.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

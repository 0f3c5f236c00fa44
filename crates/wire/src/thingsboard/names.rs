//! The names of topics.

/// The names of topics that a device uses. An answer goes to the names of its request, and a message to the names that the device has
/// subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// `v1/devices/me/...`
    Long,
    /// `v2/a...`, `v2/r/...`
    Short,
    /// `v2/a/j`, `v2/r/req/j/...`, which say that the payload is JSON.
    ShortJson,
    /// `v2/a/p`, `v2/r/req/p/...`, which say that the payload is Protobuf.
    ShortProtobuf,
}

impl Names {
    /// All of them. The names [`Short`](Self::Short) are the beginnings of those that say what the payload is, so they come last.
    pub(super) const ALL: [Self; 4] = [Self::Long, Self::ShortJson, Self::ShortProtobuf, Self::Short];
}

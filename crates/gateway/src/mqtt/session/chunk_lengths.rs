//! The lengths of chunks of packages that a client has named.

use wire::thingsboard::packages::ChunkRequest;

/// The number of a request and the length of its chunks.
type RequestLength = (u32, usize);

/// The lengths of chunks that a client has named, for the last request of each kind: later chunks of the request may leave it out.
/// Most clients name none, so it takes memory only when it is needed.
#[derive(Debug, Default)]
pub(super) struct ChunkLengths(Option<Box<[Option<RequestLength>; 2]>>);

impl ChunkLengths {
    /// The length for a request: that of this payload, or the one of an earlier payload of the request.
    pub(super) fn of(&mut self, topic: ChunkRequest, named: usize) -> usize {
        if named > 0 {
            self.0.get_or_insert_default()[topic.kind as usize] = Some((topic.request, named));
        }
        let known = self.0.as_ref().and_then(|known| known[topic.kind as usize]);
        known.filter(|(request, _)| *request == topic.request).map_or(0, |(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use wire::thingsboard::packages::PackageTopics;

    use super::*;

    #[test]
    fn a_request_keeps_its_length_until_another_one_begins() {
        let topic = |kind, request| ChunkRequest { kind, request, chunk: 0 };
        let mut lengths = ChunkLengths::default();
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 1), 0), 0);
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 1), 100), 100);
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 1), 0), 100);
        assert_eq!(lengths.of(topic(PackageTopics::Software, 1), 0), 0);
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 2), 0), 0);
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 2), 50), 50);
        assert_eq!(lengths.of(topic(PackageTopics::Firmware, 1), 0), 0);
    }
}

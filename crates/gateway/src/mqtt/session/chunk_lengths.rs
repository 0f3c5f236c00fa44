//! The lengths of chunks of packages that a client has named.

use wire::thingsboard::packages::ChunkRequest;

/// The lengths of chunks that a client has named, for the last request of each kind: later chunks of the request may leave it out.
#[derive(Debug, Default)]
pub(super) struct ChunkLengths([Option<(u32, usize)>; 2]);

impl ChunkLengths {
    /// The length for a request: that of this payload, or the one of an earlier payload of the request.
    pub(super) fn of(&mut self, topic: ChunkRequest, named: usize) -> usize {
        let known = &mut self.0[topic.kind as usize];
        if named > 0 {
            *known = Some((topic.request, named));
        }
        known.filter(|(request, _)| *request == topic.request).map_or(0, |(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use wire::thingsboard::packages::Kind;

    use super::*;

    #[test]
    fn a_request_keeps_its_length_until_another_one_begins() {
        let topic = |kind, request| ChunkRequest { kind, request, chunk: 0 };
        let mut lengths = ChunkLengths::default();
        assert_eq!(lengths.of(topic(Kind::Firmware, 1), 0), 0);
        assert_eq!(lengths.of(topic(Kind::Firmware, 1), 100), 100);
        assert_eq!(lengths.of(topic(Kind::Firmware, 1), 0), 100);
        assert_eq!(lengths.of(topic(Kind::Software, 1), 0), 0);
        assert_eq!(lengths.of(topic(Kind::Firmware, 2), 0), 0);
        assert_eq!(lengths.of(topic(Kind::Firmware, 2), 50), 50);
        assert_eq!(lengths.of(topic(Kind::Firmware, 1), 0), 0);
    }
}

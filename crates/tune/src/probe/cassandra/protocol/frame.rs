//! The header of a frame (section 2).

use super::error::ProtocolError;
use crate::limits::CQL_FRAME_BYTES_MAX;

/// The size of a header in bytes.
pub(in super::super) const HEADER_BYTES: usize = 9;

/// The version of the protocol in a request.
pub(super) const VERSION: u8 = 4;
/// This bit of the first byte states that a frame is an answer.
const ANSWER: u8 = 0x80;
/// The versions whose header is that of version 4.
const ANSWER_VERSIONS: std::ops::RangeInclusive<u8> = 3..=5;

/// The header of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Header {
    /// The flags: which parts precede the body.
    pub(super) flags: u8,
    /// The kind of the body.
    pub(super) opcode: u8,
    /// The bytes of the body.
    pub(in super::super) body_bytes: usize,
}

impl Header {
    /// Reads the header of an answer. A server that does not know version 4 answers with an error in its own version.
    pub(in super::super) fn read(bytes: [u8; HEADER_BYTES]) -> Result<Self, ProtocolError> {
        let [version, flags, _, _, opcode, length @ ..] = bytes;
        if version & ANSWER == 0 || !ANSWER_VERSIONS.contains(&(version & !ANSWER)) {
            return Err(ProtocolError::NoFrame(version));
        }
        let length = u32::from_be_bytes(length);
        if length > CQL_FRAME_BYTES_MAX {
            return Err(ProtocolError::TooLong { bytes: length, max: CQL_FRAME_BYTES_MAX });
        }
        Ok(Self { flags, opcode, body_bytes: length as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let header = Header::read([0x84, 0x08, 0, 0, 0x08, 0, 0, 1, 2]);
        assert_eq!(header, Ok(Header { flags: 0x08, opcode: 0x08, body_bytes: 258 }));
    }

    #[test]
    fn other_protocols_and_hostile_lengths_are_refused() {
        let http = Header::read(*b"HTTP/1.1 ");
        assert_eq!(http, Err(ProtocolError::NoFrame(b'H')));
        assert!(Header::read([0x04, 0, 0, 0, 0x08, 0, 0, 0, 0]).is_err(), "a request is not an answer");
        let long = Header::read([0x84, 0, 0, 0, 0x08, 0xff, 0xff, 0xff, 0xff]).unwrap_err();
        assert_eq!(long, ProtocolError::TooLong { bytes: u32::MAX, max: CQL_FRAME_BYTES_MAX });
    }
}

//! The bytes of segments and frames. docs/format/log.md.

/// Bytes before the first frame of a segment.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes before the payload of a frame.
pub(crate) const FRAME_HEADER_BYTES: usize = 48;
/// Frames begin at multiples of this.
pub(crate) const FRAME_ALIGN: usize = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"TACHOLOG";
/// The version that the store reads and writes. Versions 1 to 3 are from before the first release.
pub(super) const FORMAT_VERSION: u32 = 4;
const FRAME_MAGIC: [u8; 4] = *b"TFRM";

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A frame with entries.
    Commit,
    /// An empty frame: the store was closed, and all earlier rows are durable.
    Close,
}

/// The header of a frame, without magic, length and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Counts frames over all segments.
    pub(crate) number: u64,
    pub(crate) rows: u32,
    /// The sequence of the first row; of the next frame with rows if this one has none.
    pub(crate) first_sequence: u64,
    /// The sequence up to which all rows were durable before this frame was written.
    pub(crate) durable_before: u64,
}

/// Encodes the header of a segment.
pub(crate) fn segment_header(number: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&header[..60]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The state of a segment file according to its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// A segment whose number matches its name.
    Valid,
    /// A file that never became the segment of this name: zeros, too short, or the header of an earlier use.
    Unused,
    /// A header of another version.
    Version(u32),
    /// Other bytes.
    Damaged,
}

/// Checks the header of the segment file named `number`.
pub(crate) fn check_segment(bytes: &[u8], number: u64) -> SegmentState {
    let Some(header) = bytes.get(..SEGMENT_HEADER_BYTES) else {
        return SegmentState::Unused;
    };
    if header.iter().all(|byte| *byte == 0) {
        return SegmentState::Unused;
    }
    if header[..8] != SEGMENT_MAGIC || u32_at(header, 60) != crc32c::crc32c(&header[..60]) {
        return SegmentState::Damaged;
    }
    match u32_at(header, 8) {
        version if version != FORMAT_VERSION => SegmentState::Version(version),
        _ if u64_at(header, 16) == number => SegmentState::Valid,
        _ => SegmentState::Unused,
    }
}

/// Whether a file without frames can be the leftover of the segment `number` after the end of the process or a power cut:
/// its header, finished or not, zeros, or the header of an earlier use.
pub(crate) fn is_leftover(bytes: &[u8], number: u64) -> bool {
    let head = &bytes[..bytes.len().min(SEGMENT_HEADER_BYTES)];
    let header = segment_header(number);
    let same = head.iter().zip(&header).take_while(|(found, wanted)| found == wanted).count();
    let earlier = head.len() == SEGMENT_HEADER_BYTES && check_segment(head, number) == SegmentState::Unused;
    earlier || head[same..].iter().all(|byte| *byte == 0)
}

/// Completes a frame: `frame` has space for the header, then the payload. Pads it to the alignment.
pub(crate) fn seal_frame(frame: &mut Vec<u8>, segment: u64, header: &FrameHeader) {
    let length = frame.len() - FRAME_HEADER_BYTES;
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    frame[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    frame[12..16].copy_from_slice(&header.rows.to_le_bytes());
    frame[16..24].copy_from_slice(&header.number.to_le_bytes());
    frame[24..32].copy_from_slice(&header.first_sequence.to_le_bytes());
    frame[32..40].copy_from_slice(&header.durable_before.to_le_bytes());
    frame[40] = match header.kind {
        FrameKind::Commit => 1,
        FrameKind::Close => 2,
    };
    frame[41..48].fill(0);
    let crc = frame_crc(segment, &frame[8..]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    frame.resize(frame.len().next_multiple_of(FRAME_ALIGN), 0);
}

/// The checksum of a frame. The number of the segment goes first (invariant 3).
fn frame_crc(segment: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&segment.to_le_bytes()), bytes)
}

/// A frame found in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    /// Offset of the next frame.
    pub(crate) end: usize,
}

/// The frame at `offset`; `None` if it is not valid.
pub(crate) fn frame_at(bytes: &[u8], offset: usize, segment: u64) -> Option<Frame<'_>> {
    let frame = bytes.get(offset..)?;
    if frame.len() < FRAME_HEADER_BYTES || frame[..4] != FRAME_MAGIC {
        return None;
    }
    let end = FRAME_HEADER_BYTES + u32_at(frame, 8) as usize;
    let frame = frame.get(..end)?;
    if u32_at(frame, 4) != frame_crc(segment, &frame[8..]) {
        return None;
    }
    let kind = match frame[40] {
        1 => FrameKind::Commit,
        2 => FrameKind::Close,
        _ => return None,
    };
    let header = FrameHeader {
        kind,
        number: u64_at(frame, 16),
        rows: u32_at(frame, 12),
        first_sequence: u64_at(frame, 24),
        durable_before: u64_at(frame, 32),
    };
    Some(Frame {
        header,
        payload: &frame[FRAME_HEADER_BYTES..],
        end: (offset + end).next_multiple_of(FRAME_ALIGN),
    })
}

/// Whether the bytes at `offset` look like an incomplete write of frame `number`. A file of full size may have zeros there,
/// or bytes of an earlier use. So two of magic, number and first sequence must match; the third may be damaged.
pub(crate) fn is_torn(
    bytes: &[u8],
    offset: usize,
    number: u64,
    first_sequence: u64,
    full_size: bool,
) -> bool {
    let rest = bytes.get(offset..).unwrap_or_default();
    if !full_size {
        return rest.iter().any(|byte| *byte != 0);
    }
    // No frame begins this close to the end of a segment of full size.
    let Some(header) = rest.get(..FRAME_HEADER_BYTES) else { return false };
    let signs = [
        header[..FRAME_MAGIC.len()] == FRAME_MAGIC[..],
        u64_at(header, 16) == number,
        u64_at(header, 24) == first_sequence,
    ];
    signs.into_iter().filter(|sign| *sign).count() >= 2
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("BUG: four bytes are four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("BUG: eight bytes are eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FrameHeader =
        FrameHeader { kind: FrameKind::Commit, number: 9, rows: 1, first_sequence: 77, durable_before: 70 };

    fn frame(segment: u64) -> Vec<u8> {
        let mut bytes = vec![0; FRAME_HEADER_BYTES];
        bytes.extend_from_slice(b"payload");
        seal_frame(&mut bytes, segment, &HEADER);
        bytes
    }

    #[test]
    fn a_frame_comes_back_and_belongs_to_its_segment() {
        let bytes = frame(5);
        let found = frame_at(&bytes, 0, 5).unwrap();
        assert_eq!((found.header, found.payload, found.end), (HEADER, &b"payload"[..], 56));
        assert_eq!(frame_at(&bytes, 0, 6), None);
        assert!(is_torn(&bytes, 0, 9, 77, true) && is_torn(&bytes, 0, 9, 77, false));
        assert!(is_torn(&bytes, 0, 8, 77, true) && is_torn(&bytes, 0, 9, 78, true));
        assert!(!is_torn(&bytes, 0, 8, 78, true) && !is_torn(&[0; 64], 0, 0, 1, true));
    }

    #[test]
    fn every_flipped_byte_is_found_or_harmless() {
        for position in 0..56 {
            let mut bytes = frame(5);
            bytes[position] ^= 0x10;
            match frame_at(&bytes, 0, 5) {
                None => assert!(position < 55),
                Some(found) => assert_eq!((found.payload, position), (&b"payload"[..], 55)),
            }
        }
    }

    #[test]
    fn segment_headers_tell_their_state() {
        let mut header = segment_header(3);
        assert_eq!(check_segment(&header, 3), SegmentState::Valid);
        assert_eq!(check_segment(&header, 4), SegmentState::Unused);
        assert_eq!(check_segment(&header[..60], 3), SegmentState::Unused);
        assert_eq!(check_segment(&[0; 64], 3), SegmentState::Unused);
        for leftover in [&header[..], &header[..20], &[0; 10], &[0; 64], &[]] {
            assert!(is_leftover(leftover, 3) && is_leftover(leftover, 4) == (leftover.len() != 20));
        }
        header[20] ^= 1;
        assert_eq!(check_segment(&header, 3), SegmentState::Damaged);
        assert!(!is_leftover(&header, 3) && !is_leftover(b"what", 3));
    }
}

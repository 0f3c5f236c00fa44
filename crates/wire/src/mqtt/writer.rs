//! Appends the fields of a packet to a buffer.

use super::error::EncodeError;
use super::limits;

type Result<T> = std::result::Result<T, EncodeError>;

pub(super) fn variable_int(mut value: u32, out: &mut Vec<u8>) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

pub(super) const fn variable_int_len(value: usize) -> usize {
    match value {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}

pub(super) fn binary(what: &'static str, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let len =
        u16::try_from(bytes.len()).map_err(|_| EncodeError::StringTooLong { what, bytes: bytes.len() })?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a UTF-8 string. U+0000 is not allowed [MQTT-1.5.4-2].
pub(super) fn string(what: &'static str, text: &str, out: &mut Vec<u8>) -> Result<()> {
    if text.as_bytes().contains(&0) {
        return Err(EncodeError::Invalid { cause: "a string holds U+0000 [MQTT-1.5.4-2]" });
    }
    binary(what, text.as_bytes(), out)
}

pub(super) fn packet_id(id: u16, out: &mut Vec<u8>) -> Result<()> {
    if id == 0 {
        return Err(EncodeError::ZeroPacketId);
    }
    out.extend_from_slice(&id.to_be_bytes());
    Ok(())
}

/// Writes a fixed header and the body that `body` appends. On an error `out` is as it was.
pub(super) fn packet(
    first_byte: u8,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    // Most packets are short, so one length byte is reserved. A longer body is moved up.
    out.extend_from_slice(&[first_byte, 0]);
    if let Err(error) = body(out) {
        out.truncate(start);
        return Err(error);
    }
    let remaining = out.len() - start - 2;
    if remaining > limits::REMAINING_LENGTH_MAX {
        out.truncate(start);
        return Err(EncodeError::PacketTooLong { bytes: remaining });
    }
    let extra = variable_int_len(remaining) - 1;
    if extra > 0 {
        let body_start = start + 2;
        out.extend_from_slice(&[0; 3][..extra]);
        out.copy_within(body_start..body_start + remaining, body_start + extra);
    }
    let mut value = remaining;
    for index in 0..=extra {
        let more = if index < extra { 0x80 } else { 0 };
        out[start + 1 + index] = (value & 0x7f) as u8 | more;
        value >>= 7;
    }
    Ok(())
}

/// Writes the fixed header of a packet whose length is known, and reserves memory for the body.
pub(super) fn header(first_byte: u8, remaining: usize, out: &mut Vec<u8>) -> Result<()> {
    if remaining > limits::REMAINING_LENGTH_MAX {
        return Err(EncodeError::PacketTooLong { bytes: remaining });
    }
    out.reserve(limits::FIXED_HEADER_BYTES_MAX + remaining);
    out.push(first_byte);
    variable_int(remaining as u32, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_header_write_the_same_for_every_length() {
        for (remaining, length) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 1]),
            (2_097_151, &[0xff, 0xff, 0x7f]),
            (2_097_152, &[0x80, 0x80, 0x80, 1]),
        ] {
            let (mut known, mut found) = (vec![0xaa], vec![0xaa]);
            header(0x30, remaining, &mut known).unwrap();
            known.resize(known.len() + remaining, 7);
            let body = |out: &mut Vec<u8>| {
                out.resize(out.len() + remaining, 7);
                Ok(())
            };
            packet(0x30, &mut found, body).unwrap();
            assert!(known == found, "{remaining}");
            assert_eq!((&found[..2], &found[2..2 + length.len()]), (&[0xaa, 0x30][..], length));
        }
    }

    #[test]
    fn the_largest_length_has_a_header_and_the_next_has_none() {
        let mut out = Vec::new();
        header(0x30, limits::REMAINING_LENGTH_MAX, &mut out).unwrap();
        assert_eq!(out, [0x30, 0xff, 0xff, 0xff, 0x7f]);
        let bytes = limits::REMAINING_LENGTH_MAX + 1;
        assert_eq!(header(0x30, bytes, &mut out), Err(EncodeError::PacketTooLong { bytes }));
        assert_eq!(out.len(), 5);
    }
}

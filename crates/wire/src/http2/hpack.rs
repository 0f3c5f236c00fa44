//! Header compression (RFC 7541) for a client whose dynamic table has the size 0.

use super::frame::DecodeError;

/// Entries of the static table (RFC 7541, appendix A) that requests use.
pub mod entry {
    /// `:authority`, name only.
    pub const AUTHORITY: u64 = 1;
    /// `:method: GET`
    pub const GET: u64 = 2;
    /// `:method: POST`
    pub const POST: u64 = 3;
    /// `:path: /`
    pub const PATH: u64 = 4;
    /// `:scheme: http`
    pub const HTTP: u64 = 6;
    /// `content-length`, name only.
    pub const CONTENT_LENGTH: u64 = 28;
}

/// The values of `:status` in the static table, from entry 8 on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
const FIRST_STATUS: u64 = 8;
const STATIC_ENTRIES: u64 = 61;
const STATUS_NAME: &[u8] = b":status";
/// `:status` in the code of appendix B.
const STATUS_NAME_CODED: &[u8] = &[0xb8, 0x84, 0x8d, 0x36, 0xa3];
/// An integer with more continuation bytes exceeds every limit here.
const INTEGER_BYTES_MAX: usize = 5;

/// The status of an answer, from the beginning of its header block. Pseudo-headers come first, so it parses no further fields.
pub fn status(block: &[u8]) -> Result<u16, DecodeError> {
    let mut rest = block;
    loop {
        let Some(first) = rest.first() else { return Err(wrong("no `:status`")) };
        if first & 0x80 != 0 {
            let (index, _) = integer(rest, 7)?;
            let status = index.checked_sub(FIRST_STATUS).and_then(|at| STATUSES.get(at as usize));
            return status.copied().ok_or_else(|| wrong("they do not begin with `:status`"));
        }
        if first & 0xe0 == 0x20 {
            // A change of the dynamic table's size.
            let (size, used) = integer(rest, 5)?;
            if size > 0 {
                return Err(wrong("the dynamic table was made larger than was allowed"));
            }
            rest = &rest[used..];
            continue;
        }
        let prefix = if first & 0x40 != 0 { 6 } else { 4 };
        let (index, used) = integer(rest, prefix)?;
        rest = &rest[used..];
        let named = if index == 0 {
            let (coded, name, used) = text(rest)?;
            rest = &rest[used..];
            name == if coded { STATUS_NAME_CODED } else { STATUS_NAME }
        } else {
            index <= STATIC_ENTRIES
                && index.checked_sub(FIRST_STATUS).is_some_and(|at| at < STATUSES.len() as u64)
        };
        if !named {
            return Err(wrong("they do not begin with `:status`"));
        }
        let (coded, value, _) = text(rest)?;
        let digits = if coded { coded_digits(value) } else { digits(value) };
        return digits
            .filter(|status| *status >= 100)
            .ok_or_else(|| wrong("`:status` is not a number of three digits"));
    }
}

fn wrong(what: &'static str) -> DecodeError {
    DecodeError::Headers { what }
}

/// An integer with a prefix of this many bits (RFC 7541, 5.1), and its length.
fn integer(bytes: &[u8], prefix: u32) -> Result<(u64, usize), DecodeError> {
    let all = (1_u64 << prefix) - 1;
    let first = u64::from(*bytes.first().ok_or_else(|| wrong("an integer is cut"))?) & all;
    if first < all {
        return Ok((first, 1));
    }
    let mut value = all;
    for (at, byte) in bytes[1..].iter().take(INTEGER_BYTES_MAX).enumerate() {
        value += u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 2));
        }
    }
    Err(wrong("an integer is cut or too large"))
}

/// A text, whether it is in the code of appendix B, and its length.
fn text(bytes: &[u8]) -> Result<(bool, &[u8], usize), DecodeError> {
    let (length, used) = integer(bytes, 7)?;
    let end = used.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
    let text = bytes.get(used..end).ok_or_else(|| wrong("a text is cut"))?;
    Ok((bytes[0] & 0x80 != 0, text, end))
}

/// Three digits.
fn digits(text: &[u8]) -> Option<u16> {
    (text.len() == 3 && text.iter().all(u8::is_ascii_digit))
        .then(|| text.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
}

/// Three digits in the code of appendix B: 0 to 2 are 00000 to 00010, 3 to 9 are 011001 to 011111, and ones fill the last byte.
fn coded_digits(coded: &[u8]) -> Option<u16> {
    if !(2..=3).contains(&coded.len()) {
        return None;
    }
    let mut bits =
        coded.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (4 - coded.len()));
    let mut left = coded.len() as u32 * 8;
    let mut number = 0;
    for _ in 0..3 {
        let (digit, length) = match (bits >> 27, bits >> 26) {
            (short @ 0..=2, _) => (short, 5),
            (_, long @ 25..=31) => (long - 22, 6),
            _ => return None,
        };
        left = left.checked_sub(length)?;
        number = number * 10 + digit as u16;
        bits <<= length;
    }
    // Padding is less than a byte, all ones.
    let padding = u64::from(bits) >> (32 - left);
    (left < 8 && padding == (1 << left) - 1).then_some(number)
}

/// Appends an entry of the static table.
pub fn indexed(out: &mut Vec<u8>, entry: u64) {
    write_integer(out, 0x80, 7, entry);
}

/// Appends a field with the name of an entry of the static table. The server does not index it.
pub fn named(out: &mut Vec<u8>, entry: u64, value: &[u8]) {
    named_start(out, entry, value.len());
    out.extend_from_slice(value);
}

/// Appends a field of this kind without its value, whose bytes follow.
pub fn named_start(out: &mut Vec<u8>, entry: u64, value_bytes: usize) {
    write_integer(out, 0, 4, entry);
    write_integer(out, 0, 7, value_bytes as u64);
}

/// Appends a field with a literal name. Names are lower case in HTTP/2.
pub fn literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    for text in [name, value] {
        write_integer(out, 0, 7, text.len() as u64);
        out.extend_from_slice(text);
    }
}

fn write_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: u64) {
    let all = (1_u64 << prefix) - 1;
    if value < all {
        out.push(first | value as u8);
        return;
    }
    out.push(first | all as u8);
    let mut rest = value - all;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of the codes of appendix B for the digits.
    const CODES: [&str; 10] =
        ["00000", "00001", "00010", "011001", "011010", "011011", "011100", "011101", "011110", "011111"];

    fn coded(status: u16) -> Vec<u8> {
        let mut bits: String =
            status.to_string().bytes().map(|digit| CODES[usize::from(digit - b'0')]).collect();
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        bits.as_bytes()
            .chunks(8)
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    #[test]
    fn every_status_is_read_in_every_form() {
        for number in 100..1_000 {
            let text = number.to_string();
            let coded = coded(number);
            let with_coded = |name: &[u8]| [name, &[0x80 | coded.len() as u8], &coded].concat();
            let forms = [
                [&[0x48, 3][..], text.as_bytes()].concat(),
                [&[0x20, 0x08, 3][..], text.as_bytes()].concat(),
                [&[0x18, 3][..], text.as_bytes()].concat(),
                [&[0x00, 7][..], STATUS_NAME, &[3], text.as_bytes()].concat(),
                with_coded(&[0x48]),
                with_coded(&[&[0x40, 0x85], STATUS_NAME_CODED].concat()),
            ];
            for form in forms {
                assert_eq!(status(&form), Ok(number), "{form:02x?}");
                for cut in 0..form.len() {
                    assert!(status(&form[..cut]).is_err());
                }
            }
        }
        let listed: Vec<u16> = (0x88..=0x8e).map(|byte| status(&[byte]).unwrap()).collect();
        assert_eq!(listed, STATUSES);
    }

    #[test]
    fn other_beginnings_are_refused() {
        for block in [
            &[0x82][..],
            &[0x87],
            &[0x8f],
            &[0x3f, 0xe1, 0x1f, 0x88],
            &[0x44, 1, b'/'],
            &[0x48, 3, b'2', b'0', b'x'],
            &[0x48, 4, b'2', b'0', b'0', b'0'],
            &[0x48, 3, b'0', b'9', b'9'],
            &[0x48, 0x82, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(status(block).is_err(), "{block:02x?}");
        }
    }

    /// The examples of RFC 7541, C.1.
    #[test]
    fn integers_are_written_and_read_back() {
        let mut out = Vec::new();
        write_integer(&mut out, 0, 5, 10);
        write_integer(&mut out, 0, 5, 1337);
        write_integer(&mut out, 0, 8, 42);
        assert_eq!(out, [0x0a, 0x1f, 0x9a, 0x0a, 0x2a]);
        for (prefix, value) in [(5, 10), (5, 30), (5, 31), (7, 127), (7, 128), (4, 16_384), (7, 1 << 31)] {
            out.clear();
            write_integer(&mut out, 0, prefix, value);
            assert_eq!(integer(&out, prefix), Ok((value, out.len())));
        }
    }
}

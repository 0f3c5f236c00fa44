//! Fields of Protobuf's wire format: <https://protobuf.dev/programming-guides/encoding/>.

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    /// A number of variable length.
    Number(u64),
    /// A text, a message or bytes.
    Bytes(&'a [u8]),
    /// A number of 4 or 8 bytes, which no message here has.
    Fixed,
}

/// Appends a field with a number; none if it is 0, which is the default.
pub(super) fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        put_varint(out, u64::from(field << 3));
        put_varint(out, value);
    }
}

/// Appends a field with a floating-point number; none if it is 0.
pub(super) fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
    if value.to_bits() != 0 {
        put_varint(out, u64::from(field << 3 | 1));
        out.extend_from_slice(&value.to_bits().to_le_bytes());
    }
}

/// Appends a field with text; none if it is empty.
pub(super) fn put_text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        put_bytes(out, field, text.as_bytes());
    }
}

/// Appends a field with a message, or an element of a list.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field << 3 | 2));
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The next field of a message: its number and its value. `Ok(None)` at the end.
pub(super) fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u64, Field<'a>)>, &'static str> {
    if rest.is_empty() {
        return Ok(None);
    }
    let tag = take_varint(rest)?;
    let field = match tag & 7 {
        0 => Field::Number(take_varint(rest)?),
        1 => take(rest, 8).map(|_| Field::Fixed)?,
        2 => {
            let length = take_varint(rest)?;
            Field::Bytes(take(rest, usize::try_from(length).unwrap_or(usize::MAX))?)
        }
        5 => take(rest, 4).map(|_| Field::Fixed)?,
        _ => return Err("a field has an unknown type"),
    };
    match tag >> 3 {
        0 => Err("a field has the number 0"),
        number => Ok(Some((number, field))),
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number has more than ten bytes")
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], &'static str> {
    let (taken, after) = rest.split_at_checked(bytes).ok_or("a field is longer than the message")?;
    *rest = after;
    Ok(taken)
}

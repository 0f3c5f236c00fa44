//! The fields of a row as bytes. The log and the memtable share this encoding.
//!
//! A body is a list of fields. A field is a varint tag (key number << 3 | type code) and the value: one byte for a bool, a
//! zigzag varint for an i64, eight bytes for an f64, length and UTF-8 for a string or json. docs/format/log.md has the
//! table. If a key is repeated, the last field wins.

use model::{FieldType, ValueRef};

use crate::codec::{Malformed, Reader, put_text, put_varint, put_zigzag};

/// The number of a key within its table. The columns of all types of a key share it.
pub(crate) type KeyId = u32;

const TYPE_BITS: u32 = 3;
const TYPE_MASK: u64 = (1 << TYPE_BITS) - 1;

/// Appends a field.
#[inline]
pub(crate) fn put_field(out: &mut Vec<u8>, key: KeyId, value: ValueRef<'_>) {
    put_varint(out, u64::from(key) << TYPE_BITS | u64::from(value.field_type().code()));
    match value {
        ValueRef::Bool(value) => out.push(u8::from(value)),
        ValueRef::I64(value) => put_zigzag(out, value),
        ValueRef::F64(value) => out.extend_from_slice(&value.to_le_bytes()),
        ValueRef::String(text) | ValueRef::Json(text) => put_text(out, text),
    }
}

/// The largest number of bytes of a field besides its text: tag, and number or length.
pub(crate) const FIELD_OVERHEAD_BYTES: usize = 15;

/// Reads a field of a body that was not checked yet.
#[inline]
pub(crate) fn read_field<'a>(reader: &mut Reader<'a>) -> Result<(KeyId, ValueRef<'a>), Malformed> {
    let tag = reader.varint()?;
    let key = u32::try_from(tag >> TYPE_BITS).map_err(|_| Malformed("key number over 32 bits"))?;
    let field_type = FieldType::from_code((tag & TYPE_MASK) as u8).ok_or(Malformed("unknown type code"))?;
    let value = match field_type {
        FieldType::Bool => match reader.u8()? {
            0 => ValueRef::Bool(false),
            1 => ValueRef::Bool(true),
            _ => return Err(Malformed("bool is neither 0 nor 1")),
        },
        FieldType::I64 => ValueRef::I64(reader.zigzag()?),
        FieldType::F64 => ValueRef::F64(f64::from_bits(reader.u64()?)),
        FieldType::String => ValueRef::String(reader.text()?),
        FieldType::Json => ValueRef::Json(reader.text()?),
    };
    Ok((key, value))
}

/// The fields of a row in memory.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    /// A field that is not in the bytes.
    number: Option<(KeyId, f64)>,
    bytes: Reader<'a>,
}

impl Fields<'_> {
    /// The only field of a row that is not encoded.
    #[inline]
    pub(crate) fn number(key: KeyId, value: f64) -> Self {
        Self { number: Some((key, value)), bytes: Reader::new(&[]) }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (KeyId, ValueRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some((key, value)) = self.number.take() {
            return Some((key, ValueRef::F64(value)));
        }
        let more = !self.bytes.is_empty();
        more.then(|| read_field(&mut self.bytes).expect("BUG: a body in memory was encoded or checked here"))
    }
}

/// The fields of a body that this process has encoded or checked.
#[inline]
pub(crate) fn fields(body: &[u8]) -> Fields<'_> {
    Fields { number: None, bytes: Reader::new(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_order() {
        let values = [
            ValueRef::Bool(true),
            ValueRef::I64(i64::MIN),
            ValueRef::F64(-0.25),
            ValueRef::String("ä"),
            ValueRef::Json("[]"),
        ];
        let mut body = Vec::new();
        for (key, value) in values.iter().enumerate() {
            put_field(&mut body, key as u32 * 5_000, *value);
        }
        let found: Vec<_> = fields(&body).collect();
        let expected: Vec<_> =
            values.iter().enumerate().map(|(key, value)| (key as u32 * 5_000, *value)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn unknown_types_are_refused() {
        assert_eq!(read_field(&mut Reader::new(&[7, 0])), Err(Malformed("unknown type code")));
        assert_eq!(read_field(&mut Reader::new(&[1, 2])), Err(Malformed("bool is neither 0 nor 1")));
    }
}

//! The encoding of protocol buffers: keys, varints and lengths.

use super::error::PrometheusError;

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Reads the fields of a message. Errors name offsets in the whole request.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of the message in the request.
    base: usize,
}

/// Bytes of the longest varint.
const VARINT_BYTES_MAX: usize = 10;

impl<'a> Fields<'a> {
    /// The fields of the message at offset `base` of the request.
    pub(super) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Offset in the message.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Offset in the request of the message whose bytes were read last.
    pub(super) fn base_of(&self, inner: &[u8]) -> usize {
        self.base + self.at - inner.len()
    }

    /// Number and value of the next field; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, PrometheusError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let _: [u8; 4] = self.fixed()?;
                Value::Fixed32
            }
            _ => return Err(self.fault("a field of unknown type")),
        };
        if key >> 3 == 0 {
            return Err(self.fault("a field without a number"));
        }
        Ok(Some((key >> 3, value)))
    }

    /// An error at the present offset.
    pub(super) fn fault(&self, reason: &'static str) -> PrometheusError {
        PrometheusError::Message { at: self.base + self.at, reason }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, PrometheusError> {
        let mut value = 0_u64;
        for index in 0..VARINT_BYTES_MAX {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(self.fault("it ends within a number"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.fault("a number of more than 10 bytes"))
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], PrometheusError> {
        let Some(taken) = self.bytes[self.at..].get(..length) else {
            return Err(self.fault("it ends within a field"));
        };
        self.at += length;
        Ok(taken)
    }

    #[inline]
    fn fixed<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], PrometheusError> {
        let fault = self.fault("it ends within a field");
        self.take(BYTES)?.try_into().map_err(|_| fault)
    }
}

/// Appends a varint.
pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes of a varint.
pub(super) fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

//! A cursor over the bytes of one packet.

use super::error::DecodeError;
use super::writer;

type Result<T> = std::result::Result<T, DecodeError>;

#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins within the packet, for error offsets.
    base: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    pub(super) const fn offset(&self) -> usize {
        self.base + self.at
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end =
            end.ok_or(DecodeError::malformed("a field reaches over the packet's end").at(self.offset()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A packet identifier, which is never zero [MQTT-2.2.1-3].
    pub(super) fn packet_id(&mut self) -> Result<u16> {
        let offset = self.offset();
        match self.u16()? {
            0 => Err(DecodeError::protocol("the packet identifier is zero [MQTT-2.2.1-3]").at(offset)),
            id => Ok(id),
        }
    }

    pub(super) fn variable_int(&mut self) -> Result<u32> {
        let offset = self.offset();
        match variable_int(&self.bytes[self.at..]).map_err(|error| error.at(offset))? {
            Some((value, len)) => {
                check_shortest(value, len).map_err(|error| error.at(offset))?;
                self.at += len;
                Ok(value)
            }
            None => {
                Err(DecodeError::malformed("a variable byte integer reaches over the packet's end")
                    .at(offset))
            }
        }
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }

    /// A UTF-8 string without U+0000 [MQTT-1.5.4-1], [MQTT-1.5.4-2]. `str` never holds surrogates.
    pub(super) fn string(&mut self) -> Result<&'a str> {
        let offset = self.offset();
        let bytes = self.binary()?;
        let text = std::str::from_utf8(bytes).map_err(|error| {
            DecodeError::malformed("a string is not well-formed UTF-8 [MQTT-1.5.4-1]")
                .at(offset + 2 + error.valid_up_to())
        })?;
        match bytes.iter().position(|byte| *byte == 0) {
            None => Ok(text),
            Some(at) => {
                Err(DecodeError::malformed("a string holds U+0000 [MQTT-1.5.4-2]").at(offset + 2 + at))
            }
        }
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(DecodeError::malformed("bytes follow the last field").at(self.offset()))
        }
    }
}

/// A variable byte integer at the beginning of `bytes` and its length; `None` when bytes are missing [MQTT5 1.5.5].
pub(super) fn variable_int(bytes: &[u8]) -> Result<Option<(u32, usize)>> {
    let mut value = 0_u32;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 4 {
        return Err(DecodeError::malformed("a variable byte integer has more than four bytes"));
    }
    Ok(None)
}

/// MQTT 5 requires the shortest encoding of a value [MQTT-1.5.5-1]; MQTT 3.1.1 has no such rule.
pub(super) fn check_shortest(value: u32, len: usize) -> Result<()> {
    if len == writer::variable_int_len(value as usize) {
        return Ok(());
    }
    Err(DecodeError::malformed("a variable byte integer is longer than it need be [MQTT-1.5.5-1]"))
}

//! The byte encodings that all files of the store share: varints, zigzag, little-endian words, text with a length.
//!
//! A varint has seven bits per byte, lowest first. The top bit is set in all bytes except the last.

/// An error in encoded bytes. The caller knows the file and adds path and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

#[inline]
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads encoded bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of unread bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.bytes.split_at_checked(count).ok_or(Malformed("bytes end early"))?;
        self.bytes = tail;
        Ok(head)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (head, tail) = self.bytes.split_first().ok_or(Malformed("bytes end early"))?;
        self.bytes = tail;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Malformed("bytes end early"))?;
        self.bytes = tail;
        Ok(u32::from_le_bytes(*head))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Malformed("bytes end early"))?;
        self.bytes = tail;
        Ok(u64::from_le_bytes(*head))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return match shift == 63 && byte > 1 {
                    true => Err(Malformed("varint over 64 bits")),
                    false => Ok(value),
                };
            }
        }
        Err(Malformed("varint over ten bytes"))
    }

    /// A varint that must fit into 32 bits.
    #[inline]
    pub(crate) fn index(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("number over 32 bits"))
    }

    #[inline]
    pub(crate) fn zigzag(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    #[inline]
    pub(crate) fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint()?;
        self.take(usize::try_from(len).map_err(|_| Malformed("length over the address space"))?)
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.blob()?).map_err(|_| Malformed("text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_zigzag(&mut out, value as i64);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.varint(), reader.zigzag()), (Ok(value), Ok(value as i64)));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn too_long_and_cut_numbers_are_refused() {
        let over = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Reader::new(&over).varint(), Err(Malformed("varint over 64 bits")));
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Malformed("varint over ten bytes")));
        assert!(Reader::new(&[0x80]).varint().is_err());
        assert!(Reader::new(&[5, b'a']).text().is_err());
        assert!(Reader::new(&[1, 0xff]).text().is_err());
    }
}

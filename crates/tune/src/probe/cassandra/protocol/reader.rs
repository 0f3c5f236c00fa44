//! Reads the notations of section 3 from the body of a frame.

use super::error::ProtocolError;

/// The rest of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// The next bytes. A length that exceeds the body is an error before anything is allocated.
    pub(super) fn take(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        let rest = &self.body[self.at..];
        let bytes = rest.get(..length).ok_or(ProtocolError::Short { field, at: self.body.len() })?;
        self.at += length;
        Ok(bytes)
    }

    /// `[short]`: an unsigned number of two bytes.
    pub(super) fn short(&mut self, field: &'static str) -> Result<u16, ProtocolError> {
        let bytes = self.take(2, field)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// `[int]`: a signed number of four bytes.
    pub(super) fn int(&mut self, field: &'static str) -> Result<i32, ProtocolError> {
        let bytes = self.take(4, field)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// An `[int]` that counts things of at least `bytes_each` bytes. More than fit into the body are refused.
    pub(super) fn count(&mut self, bytes_each: usize, field: &'static str) -> Result<usize, ProtocolError> {
        let count = self.int(field)?;
        let unexpected = || ProtocolError::Unexpected { field, value: i64::from(count) };
        let count = usize::try_from(count).map_err(|_| unexpected())?;
        let rest = self.body.len() - self.at;
        if count.saturating_mul(bytes_each) > rest { Err(unexpected()) } else { Ok(count) }
    }

    /// `[string]`: a length of two bytes and a text.
    pub(super) fn string(&mut self, field: &'static str) -> Result<&'a str, ProtocolError> {
        let length = self.short(field)?;
        let at = self.at;
        let bytes = self.take(usize::from(length), field)?;
        std::str::from_utf8(bytes).map_err(|_| ProtocolError::NotText { field, at })
    }

    /// `[bytes]`: a length of four bytes and the bytes. A negative length is null.
    pub(super) fn bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, ProtocolError> {
        match usize::try_from(self.int(field)?) {
            Ok(length) => self.take(length, field).map(Some),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_are_read_one_after_another() {
        let mut reader = Reader::new(&[0, 7, 0, 2, b'o', b'k', 0, 0, 0, 1, 9, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(reader.short("b"), Ok(7));
        assert_eq!(reader.string("s"), Ok("ok"));
        assert_eq!(reader.bytes("v"), Ok(Some(&[9][..])));
        assert_eq!(reader.bytes("null"), Ok(None));
        assert_eq!(reader.short("end"), Err(ProtocolError::Short { field: "end", at: 15 }));
    }

    #[test]
    fn lengths_beyond_the_body_are_refused() {
        let body = [0x7f, 0xff, 0xff, 0xff, 1];
        assert_eq!(Reader::new(&body).bytes("v"), Err(ProtocolError::Short { field: "v", at: 5 }));
        let value = i64::from(i32::MAX);
        assert_eq!(
            Reader::new(&body).count(4, "rows"),
            Err(ProtocolError::Unexpected { field: "rows", value })
        );
        let negative = Reader::new(&[0xff; 4]).count(0, "rows").unwrap_err();
        assert_eq!(negative, ProtocolError::Unexpected { field: "rows", value: -1 });
        assert_eq!(Reader::new(&[0, 1, 0xff]).string("s"), Err(ProtocolError::NotText { field: "s", at: 2 }));
    }
}

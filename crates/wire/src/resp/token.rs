//! Parses one token of RESP.

use super::limits::{BULK_BYTES_MAX, ELEMENTS_MAX, LINE_BYTES_MAX};

/// A token: a value, or the header of an aggregate whose elements follow as tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR what`, and RESP3's `!` bulk error.
    Error(&'a [u8]),
    /// `:42`
    Integer(i64),
    /// `$5\r\nhello`
    Bulk(&'a [u8]),
    /// `$-1`, `*-1` and RESP3's `_`
    Null,
    /// `#t`
    Boolean(bool),
    /// `,3.14`, as text
    Double(&'a [u8]),
    /// `(` and digits
    BigNumber(&'a [u8]),
    /// `=` with three letters of format, a colon and the text
    Verbatim(&'a [u8]),
    /// `*3`: the number of elements that follow
    Array(usize),
    /// `%2`: the number of pairs that follow
    Map(usize),
    /// `~3`
    Set(usize),
    /// `>3`: out of band, not a reply
    Push(usize),
    /// `|1`: the number of pairs about the following reply
    Attribute(usize),
}

/// Bytes that are not RESP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No type starts with this byte.
    #[error("byte {byte:#04x} at offset {offset} begins no RESP type")]
    UnknownType {
        /// The byte.
        byte: u8,
        /// Where it is.
        offset: usize,
    },
    /// A number, boolean or length is malformed.
    #[error("`{text}` at offset {offset} is not a {expected}")]
    Malformed {
        /// The actual text, shortened.
        text: String,
        /// Where the line begins.
        offset: usize,
        /// The expected content.
        expected: &'static str,
    },
    /// A bulk string does not end with CR LF.
    #[error("the bulk string that begins at offset {offset} does not end with CR LF")]
    Unterminated {
        /// Where its header begins.
        offset: usize,
    },
    /// A length exceeds a limit.
    #[error("{what} at offset {offset}: {value} is more than the limit of {limit}")]
    TooLarge {
        /// The kind of item.
        what: &'static str,
        /// Where it begins.
        offset: usize,
        /// Its size.
        value: usize,
        /// The limit.
        limit: usize,
    },
}

/// The token at `offset`, and its length in bytes; `None` when more bytes are needed.
pub fn token(bytes: &[u8], offset: usize) -> Result<Option<(Token<'_>, usize)>, DecodeError> {
    let Some((&kind, rest)) = bytes.get(offset..).and_then(<[u8]>::split_first) else { return Ok(None) };
    let reader = Reader { offset };
    let Some(line) = reader.line(rest)? else {
        return if is_kind(kind) { Ok(None) } else { Err(DecodeError::UnknownType { byte: kind, offset }) };
    };
    let header = line.len() + 3;
    let token = match kind {
        b'+' => Token::Simple(line),
        b'-' => Token::Error(line),
        b':' => Token::Integer(reader.integer(line)?),
        b'$' | b'!' | b'=' => return reader.bulk(kind, line, &rest[line.len() + 2..], header),
        b'_' => Token::Null,
        b'#' => Token::Boolean(match line {
            b"t" => true,
            b"f" => false,
            _ => return Err(reader.malformed(line, "boolean")),
        }),
        b',' => Token::Double(line),
        b'(' => Token::BigNumber(line),
        b'*' => reader.length(line, ELEMENTS_MAX)?.map_or(Token::Null, Token::Array),
        b'%' => reader.length(line, ELEMENTS_MAX)?.map_or(Token::Null, Token::Map),
        b'~' => reader.length(line, ELEMENTS_MAX)?.map_or(Token::Null, Token::Set),
        b'>' => reader.length(line, ELEMENTS_MAX)?.map_or(Token::Null, Token::Push),
        b'|' => reader.length(line, ELEMENTS_MAX)?.map_or(Token::Null, Token::Attribute),
        byte => return Err(DecodeError::UnknownType { byte, offset }),
    };
    Ok(Some((token, header)))
}

fn is_kind(byte: u8) -> bool {
    b"+-:$!=_#,(*%~>|".contains(&byte)
}

struct Reader {
    offset: usize,
}

impl Reader {
    /// The text up to CR LF.
    fn line<'a>(&self, rest: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
        // Headers have a few bytes, so a loop is faster than a search for long texts.
        let end = rest.iter().take(LINE_BYTES_MAX + 1).position(|&byte| byte == b'\r');
        match end {
            Some(end) => match rest.get(end + 1) {
                None => Ok(None),
                Some(b'\n') => Ok(Some(&rest[..end])),
                Some(_) => Err(self.malformed(&rest[..=end], "line that ends with CR LF")),
            },
            None if rest.len() > LINE_BYTES_MAX => Err(self.too_large("a line", rest.len(), LINE_BYTES_MAX)),
            None => Ok(None),
        }
    }

    fn bulk<'a>(
        &self,
        kind: u8,
        line: &[u8],
        rest: &'a [u8],
        header: usize,
    ) -> Result<Option<(Token<'a>, usize)>, DecodeError> {
        let Some(length) = self.length(line, BULK_BYTES_MAX)? else {
            return Ok(Some((Token::Null, header)));
        };
        let Some(end) = rest.get(length..length + 2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(DecodeError::Unterminated { offset: self.offset });
        }
        let text = &rest[..length];
        let token = match kind {
            b'!' => Token::Error(text),
            b'=' => Token::Verbatim(text),
            _ => Token::Bulk(text),
        };
        Ok(Some((token, header + length + 2)))
    }

    /// A length; `None` for -1, the null of RESP2.
    fn length(&self, line: &[u8], limit: usize) -> Result<Option<usize>, DecodeError> {
        if line == b"-1" {
            return Ok(None);
        }
        if line.is_empty() || line.len() > 10 || !line.iter().all(u8::is_ascii_digit) {
            return Err(self.malformed(line, "length"));
        }
        let length = line.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
        if length > limit { Err(self.too_large("a length", length, limit)) } else { Ok(Some(length)) }
    }

    fn integer(&self, line: &[u8]) -> Result<i64, DecodeError> {
        let text = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| self.malformed(line, "64-bit integer"))
    }

    fn malformed(&self, text: &[u8], expected: &'static str) -> DecodeError {
        let text = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        DecodeError::Malformed { text, offset: self.offset, expected }
    }

    fn too_large(&self, what: &'static str, value: usize, limit: usize) -> DecodeError {
        DecodeError::TooLarge { what, offset: self.offset, value, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Token<'_> {
        let (token, length) = token(bytes, 0).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        token
    }

    #[test]
    fn every_type_is_read() {
        let cases: [(&[u8], Token<'_>); 17] = [
            (b"+OK\r\n", Token::Simple(b"OK")),
            (b"-ERR no\r\n", Token::Error(b"ERR no")),
            (b":-42\r\n", Token::Integer(-42)),
            (b"$5\r\nhe\r\no\r\n", Token::Bulk(b"he\r\no")),
            (b"$0\r\n\r\n", Token::Bulk(b"")),
            (b"$-1\r\n", Token::Null),
            (b"*-1\r\n", Token::Null),
            (b"_\r\n", Token::Null),
            (b"#t\r\n", Token::Boolean(true)),
            (b",1.5\r\n", Token::Double(b"1.5")),
            (b"(123\r\n", Token::BigNumber(b"123")),
            (b"=7\r\ntxt:abc\r\n", Token::Verbatim(b"txt:abc")),
            (b"!5\r\nERR x\r\n", Token::Error(b"ERR x")),
            (b"*3\r\n", Token::Array(3)),
            (b"%2\r\n", Token::Map(2)),
            (b"~1\r\n", Token::Set(1)),
            (b">4\r\n", Token::Push(4)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(whole(bytes), expected);
            for cut in 0..bytes.len() {
                assert_eq!(token(&bytes[..cut], 0), Ok(None), "{} of {bytes:?}", cut);
            }
        }
    }

    #[test]
    fn invalid_resp_is_refused_with_its_position() {
        let bad: [(&[u8], &str); 7] = [
            (b"OK\r\n", "byte 0x4f at offset 0"),
            (b":x\r\n", "`x` at offset 0 is not a 64-bit integer"),
            (b"$5x\r\n", "is not a length"),
            (b"$99999999999\r\n", "is not a length"),
            (b"$999999999\r\n", "more than the limit of 536870912"),
            (b"$1\r\nabc\r\n", "does not end with CR LF"),
            (b"+a\rb\r\n", "line that ends with CR LF"),
        ];
        for (bytes, expected) in bad {
            let error = token(bytes, 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(token(&[b'+'; LINE_BYTES_MAX + 10], 0).is_err(), "an endless line");
    }
}

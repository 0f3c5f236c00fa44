//! Decodes messages of clients (PostgreSQL's "Frontend/Backend Protocol", message formats).
//!
//! The decoder takes a whole frame off the input and stays within its bounds: no content makes it read bytes of another message
//! or allocate more than the frame has.

use bytes::{Buf, Bytes, BytesMut};

use super::limits::{MESSAGE_BYTES_MAX, STARTUP_BYTES_MAX};

/// Version number that asks for TLS.
const SSL_REQUEST: i32 = 80_877_103;
/// Version number that asks for encryption by Kerberos.
const GSS_REQUEST: i32 = 80_877_104;
/// Version number that asks to cancel another session's query.
const CANCEL_REQUEST: i32 = 80_877_102;

/// The first message of a connection; it has no type byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum First {
    /// `SSLRequest`; the next message is again a first one.
    Tls,
    /// `GSSENCRequest`; the next message is again a first one.
    Kerberos,
    /// `CancelRequest`.
    Cancel { process: i32, secret: i32 },
    /// `StartupMessage` with the minor version of protocol 3 and the parameters.
    Startup { minor: i16, parameters: Vec<(String, String)> },
}

/// A message after the login has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    Password(String),
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe {
        what: Target,
        name: String,
    },
    Execute {
        portal: String,
        rows_max: usize,
    },
    Close {
        what: Target,
        name: String,
    },
    Flush,
    Sync,
    Terminate,
    /// CopyData, CopyDone or CopyFail outside of a copy: ignored, as PostgreSQL does.
    Copy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) parameters: Vec<Bound>,
    pub(crate) result_formats: Vec<ValueFormat>,
}

/// A value bound to a parameter; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) format: ValueFormat,
    pub(crate) bytes: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueFormat {
    Text,
    Binary,
}

/// The target of Describe and Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Statement,
    Portal,
}

/// Bytes that are not a message. The connection ends, because the beginning of the next message is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a message of {bytes} bytes; the limit is {limit}")]
    TooLong { bytes: i64, limit: usize },
    #[error("message type {0:#04x} is unknown")]
    UnknownType(u8),
    #[error("protocol version {0}.{1} is not spoken here; 3.0 is")]
    Version(i16, i16),
    #[error("the message {0} ends before its content")]
    Short(&'static str),
    #[error("text in the message {0} is not UTF-8")]
    Text(&'static str),
    #[error("format code {0} is neither 0 (text) nor 1 (binary)")]
    Format(i16),
    #[error("{formats} format codes for {values} values")]
    FormatCount { formats: usize, values: usize },
}

/// Takes the first message off the input, if it is there.
pub(crate) fn take_first(input: &mut BytesMut) -> Result<Option<First>, Malformed> {
    let Some(mut body) = take_frame(input, 0, STARTUP_BYTES_MAX)? else { return Ok(None) };
    let name = "Startup";
    let version = Fields { name, rest: &mut body }.i32()?;
    let mut fields = Fields { name, rest: &mut body };
    match version {
        SSL_REQUEST => Ok(Some(First::Tls)),
        GSS_REQUEST => Ok(Some(First::Kerberos)),
        CANCEL_REQUEST => Ok(Some(First::Cancel { process: fields.i32()?, secret: fields.i32()? })),
        version => {
            let (major, minor) = ((version >> 16) as i16, version as i16);
            if major != 3 {
                return Err(Malformed::Version(major, minor));
            }
            let mut parameters = Vec::new();
            loop {
                let key = fields.text()?;
                if key.is_empty() {
                    return Ok(Some(First::Startup { minor, parameters }));
                }
                parameters.push((key, fields.text()?));
            }
        }
    }
}

/// Takes the next message off the input, if it is there whole.
pub(crate) fn take(input: &mut BytesMut) -> Result<Option<Message>, Malformed> {
    let Some(&kind) = input.first() else { return Ok(None) };
    if !b"pQPBDECHSXdcfF".contains(&kind) {
        return Err(Malformed::UnknownType(kind));
    }
    let Some(mut body) = take_frame(input, 1, MESSAGE_BYTES_MAX)? else { return Ok(None) };
    decode(kind, &mut body).map(Some)
}

/// Takes a frame off the input. Its length is at `offset`; returns the bytes after the length.
fn take_frame(input: &mut BytesMut, offset: usize, limit: usize) -> Result<Option<Bytes>, Malformed> {
    let Some(length) = input.get(offset..offset + 4) else { return Ok(None) };
    let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    let too_long = Malformed::TooLong { bytes: length.into(), limit };
    let length =
        usize::try_from(length).ok().filter(|length| (4..=limit).contains(length)).ok_or(too_long)?;
    if input.len() < offset + length {
        input.reserve(offset + length - input.len());
        return Ok(None);
    }
    let mut frame = input.split_to(offset + length).freeze();
    frame.advance(offset + 4);
    Ok(Some(frame))
}

fn decode(kind: u8, body: &mut Bytes) -> Result<Message, Malformed> {
    fn fields<'a>(name: &'static str, rest: &'a mut Bytes) -> Fields<'a> {
        Fields { name, rest }
    }
    Ok(match kind {
        b'p' => Message::Password(fields("Password", body).text()?),
        b'Q' => Message::Query(fields("Query", body).text()?),
        b'P' => {
            let mut fields = fields("Parse", body);
            let (name, text) = (fields.text()?, fields.text()?);
            let count = fields.count(4)?;
            let types = (0..count).map(|_| fields.i32().map(|oid| oid as u32)).collect::<Result<_, _>>()?;
            Message::Parse { name, text, types }
        }
        b'B' => Message::Bind(bind(&mut fields("Bind", body))?),
        b'D' | b'C' => {
            let mut fields = fields(if kind == b'D' { "Describe" } else { "Close" }, body);
            let what = match fields.u8()? {
                b'S' => Target::Statement,
                b'P' => Target::Portal,
                other => return Err(Malformed::UnknownType(other)),
            };
            let name = fields.text()?;
            if kind == b'D' { Message::Describe { what, name } } else { Message::Close { what, name } }
        }
        b'E' => {
            let mut fields = fields("Execute", body);
            let portal = fields.text()?;
            // Zero and negative numbers mean all rows.
            let rows_max = usize::try_from(fields.i32()?).ok().filter(|rows| *rows > 0).unwrap_or(usize::MAX);
            Message::Execute { portal, rows_max }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        b'd' | b'c' | b'f' => Message::Copy,
        other => return Err(Malformed::UnknownType(other)),
    })
}

fn bind(fields: &mut Fields<'_>) -> Result<Bind, Malformed> {
    let (portal, statement) = (fields.text()?, fields.text()?);
    let formats = fields.formats()?;
    let count = fields.count(4)?;
    if formats.len() > 1 && formats.len() != count {
        return Err(Malformed::FormatCount { formats: formats.len(), values: count });
    }
    let parameters = (0..count).map(|index| {
        let format = formats.get(index).or(formats.first()).copied().unwrap_or(ValueFormat::Text);
        let bytes = match usize::try_from(fields.i32()?) {
            Ok(length) => Some(fields.bytes(length)?),
            Err(_) => None,
        };
        Ok(Bound { format, bytes })
    });
    let parameters = parameters.collect::<Result<_, _>>()?;
    Ok(Bind { portal, statement, parameters, result_formats: fields.formats()? })
}

/// The fields of one message, in order.
struct Fields<'a> {
    name: &'static str,
    rest: &'a mut Bytes,
}

impl Fields<'_> {
    fn bytes(&mut self, count: usize) -> Result<Bytes, Malformed> {
        if self.rest.len() < count {
            return Err(Malformed::Short(self.name));
        }
        Ok(self.rest.split_to(count))
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(self.bytes(2)?.get_i16())
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(self.bytes(4)?.get_i32())
    }

    /// A count of items that each take at least `size` bytes of the rest.
    fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count = usize::from(self.i16()? as u16);
        if count * size > self.rest.len() {
            return Err(Malformed::Short(self.name));
        }
        Ok(count)
    }

    fn formats(&mut self) -> Result<Vec<ValueFormat>, Malformed> {
        let count = self.count(2)?;
        let codes = (0..count).map(|_| match self.i16()? {
            0 => Ok(ValueFormat::Text),
            1 => Ok(ValueFormat::Binary),
            other => Err(Malformed::Format(other)),
        });
        codes.collect()
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(Malformed::Short(self.name))?;
        let bytes = self.bytes(end + 1)?;
        std::str::from_utf8(&bytes[..end]).map(str::to_owned).map_err(|_| Malformed::Text(self.name))
    }
}

#[cfg(test)]
mod tests;

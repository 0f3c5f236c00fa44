//! Decodes messages of clients (PostgreSQL's "Frontend/Backend Protocol", message formats).
//!
//! The decoder takes a whole frame off the input and stays within its bounds: no content makes it read bytes of another message
//! or allocate more than the frame has.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of one message before the login. PostgreSQL has the same bound.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of one message after the login. A statement has its own, smaller bound; this one is for bound values.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Version number that asks for TLS.
const SSL_REQUEST: i32 = 80_877_103;
/// Version number that asks for encryption by Kerberos.
const GSS_REQUEST: i32 = 80_877_104;
/// Version number that asks to cancel another session's query.
const CANCEL_REQUEST: i32 = 80_877_102;

/// The first message of a connection; it has no type byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// `SSLRequest`; the next message is again a first one.
    Tls,
    /// `GSSENCRequest`; the next message is again a first one.
    Kerberos,
    /// `CancelRequest`.
    Cancel {
        /// The process that PostgreSQL would have for the other session.
        process: i32,
        /// The secret that the other session was told.
        secret: i32,
    },
    /// `StartupMessage` with the minor version of protocol 3 and the parameters.
    Startup {
        /// The minor version.
        minor: i16,
        /// The parameters, in the order of the message.
        parameters: Vec<(String, String)>,
    },
}

/// A message after the login has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// `PasswordMessage`.
    Password(String),
    /// Statements of the simple protocol.
    Query(String),
    /// Prepares a statement.
    Parse {
        /// The name of the prepared statement; empty for the unnamed one.
        name: String,
        /// The statement.
        text: String,
        /// The types of the first parameters, by their OIDs.
        types: Vec<u32>,
    },
    /// Binds values to a prepared statement.
    Bind(Bind),
    /// Asks what a statement or a portal gives.
    Describe {
        /// The kind of the target.
        what: Target,
        /// Its name.
        name: String,
    },
    /// Runs a portal.
    Execute {
        /// The name of the portal.
        portal: String,
        /// The most rows to send.
        rows_max: usize,
    },
    /// Closes a statement or a portal.
    Close {
        /// The kind of the target.
        what: Target,
        /// Its name.
        name: String,
    },
    /// Asks for the answers so far.
    Flush,
    /// Ends a sequence of messages.
    Sync,
    /// Ends the session.
    Terminate,
    /// CopyData, CopyDone or CopyFail outside of a copy: ignored, as PostgreSQL does.
    Copy,
}

/// Values for the parameters of a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The portal that the message opens.
    pub portal: String,
    /// The prepared statement.
    pub statement: String,
    /// The values.
    pub parameters: Vec<Bound>,
    /// The formats of the result's columns: none for text, one for all columns, or one for each.
    pub result_formats: Vec<ValueFormat>,
}

/// A value bound to a parameter; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The format.
    pub format: ValueFormat,
    /// The bytes.
    pub bytes: Option<Bytes>,
}

/// The format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// As text.
    Text,
    /// In PostgreSQL's binary form of its type.
    Binary,
}

/// The target of Describe and Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// Bytes that are not a message. The connection ends, because the beginning of the next message is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A length beyond the limit, or below that of the length itself.
    #[error("a message of {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// The length that the message gives.
        bytes: i64,
        /// The limit.
        limit: usize,
    },
    /// A type byte that no message has.
    #[error("message type {0:#04x} is unknown")]
    UnknownType(u8),
    /// A major version other than 3.
    #[error("protocol version {0}.{1} is not spoken here; 3.0 is")]
    Version(i16, i16),
    /// The message is shorter than its fields.
    #[error("the message {0} ends before its content")]
    Short(&'static str),
    /// A text that is not UTF-8.
    #[error("text in the message {0} is not UTF-8")]
    Text(&'static str),
    /// A format that does not exist.
    #[error("format code {0} is neither 0 (text) nor 1 (binary)")]
    Format(i16),
    /// Another number of formats than none, one or one for each value.
    #[error("{formats} format codes for {values} values")]
    FormatCount {
        /// The number of format codes.
        formats: usize,
        /// The number of values.
        values: usize,
    },
}

/// Takes the first message off the input, if it is there.
///
/// # Errors
/// The bytes are not a first message.
pub fn take_first(input: &mut BytesMut) -> Result<Option<First>, Malformed> {
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
///
/// # Errors
/// The bytes are not a message.
pub fn take(input: &mut BytesMut) -> Result<Option<Message>, Malformed> {
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

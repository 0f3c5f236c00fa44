//! Answers (section 4.2).

use super::error::ProtocolError;
use super::frame::Header;
use super::reader::Reader;
use super::rows::Rows;

/// Flags of a frame.
const COMPRESSED: u8 = 0x01;
const TRACING: u8 = 0x02;
const CUSTOM_PAYLOAD: u8 = 0x04;
const WARNING: u8 = 0x08;

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Response {
    /// The server takes statements.
    Ready,
    /// The server wants a password, with the name of its authenticator.
    Authenticate(String),
    /// The password is right.
    AuthSuccess,
    /// The names of the options that the server supports.
    Supported(Vec<String>),
    Rows(Rows),
    Error {
        /// The code of section 9.
        code: i32,
        /// The message of the server.
        message: String,
    },
}

impl Response {
    /// Reads the body of an answer.
    pub(in super::super) fn read(header: Header, body: &[u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(body);
        skip_extras(header.flags, &mut reader)?;
        match header.opcode {
            0x00 => {
                let code = reader.int("the code of an error")?;
                Ok(Self::Error { code, message: reader.string("the message of an error")?.to_owned() })
            }
            0x02 => Ok(Self::Ready),
            0x03 => Ok(Self::Authenticate(reader.string("the authenticator")?.to_owned())),
            0x06 => supported(&mut reader).map(Self::Supported),
            0x08 => result(&mut reader),
            0x10 => Ok(Self::AuthSuccess),
            opcode => Err(ProtocolError::Unexpected { field: "the opcode", value: i64::from(opcode) }),
        }
    }
}

/// Skips what the flags announce before the body (section 2.2).
fn skip_extras(flags: u8, reader: &mut Reader<'_>) -> Result<(), ProtocolError> {
    if flags & COMPRESSED != 0 {
        return Err(ProtocolError::Unexpected { field: "the flag of compression", value: 1 });
    }
    if flags & TRACING != 0 {
        reader.take(16, "the id of a trace")?;
    }
    if flags & WARNING != 0 {
        for _ in 0..reader.short("the number of warnings")? {
            reader.string("a warning")?;
        }
    }
    if flags & CUSTOM_PAYLOAD != 0 {
        for _ in 0..reader.short("the size of the payload")? {
            reader.string("a key of the payload")?;
            reader.bytes("a value of the payload")?;
        }
    }
    Ok(())
}

/// The keys of a `[string multimap]`.
fn supported(reader: &mut Reader<'_>) -> Result<Vec<String>, ProtocolError> {
    let mut names = Vec::new();
    for _ in 0..reader.short("the number of options")? {
        names.push(reader.string("the name of an option")?.to_owned());
        for _ in 0..reader.short("the number of choices")? {
            reader.string("a choice")?;
        }
    }
    Ok(names)
}

fn result(reader: &mut Reader<'_>) -> Result<Response, ProtocolError> {
    match reader.int("the kind of a result")? {
        2 => Rows::read(reader).map(Response::Rows),
        kind => Err(ProtocolError::Unexpected { field: "the kind of a result", value: i64::from(kind) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: u8, opcode: u8, body: &[u8]) -> Result<Response, ProtocolError> {
        Response::read(Header { flags, opcode, body_bytes: body.len() }, body)
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(read(0, 0x02, b""), Ok(Response::Ready));
        assert_eq!(read(0, 0x10, b"\xff\xff\xff\xff"), Ok(Response::AuthSuccess));
        assert_eq!(read(0, 0x03, b"\0\x01A"), Ok(Response::Authenticate("A".into())));
        let error = Response::Error { code: 0x2100, message: "no".into() };
        assert_eq!(read(0, 0x00, b"\0\0\x21\0\0\x02no"), Ok(error));
        let supported = read(0, 0x06, b"\0\x01\0\x0bCQL_VERSION\0\x01\0\x053.4.7");
        assert_eq!(supported, Ok(Response::Supported(vec!["CQL_VERSION".into()])));
    }

    #[test]
    fn what_precedes_a_body_is_skipped() {
        let body = b"\0\x01\0\x02hm\0\x01\0\x01k\0\0\0\x01v\0\x01A";
        assert_eq!(read(WARNING | CUSTOM_PAYLOAD, 0x03, body), Ok(Response::Authenticate("A".into())));
        let traced = [&[0; 16][..], b"\0\x01A"].concat();
        assert_eq!(read(TRACING, 0x03, &traced), Ok(Response::Authenticate("A".into())));
    }

    #[test]
    fn answers_that_nobody_has_asked_for_are_refused() {
        let unexpected = |field, value| Err(ProtocolError::Unexpected { field, value });
        assert_eq!(read(0, 0x0c, b""), unexpected("the opcode", 0x0c));
        assert_eq!(read(0, 0x08, b"\0\0\0\x04"), unexpected("the kind of a result", 4));
        assert_eq!(read(COMPRESSED, 0x02, b""), unexpected("the flag of compression", 1));
    }

    #[test]
    fn every_answer_that_is_cut_off_is_an_error() {
        let body = b"\0\x01\0\x0bCQL_VERSION\0\x01\0\x053.4.7";
        for end in 0..body.len() {
            assert!(matches!(read(0, 0x06, &body[..end]), Err(ProtocolError::Short { .. })), "{end}");
        }
    }
}

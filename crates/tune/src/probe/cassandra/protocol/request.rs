//! Requests (section 4.1).

use super::frame::VERSION;

/// Consistency `ONE`: the tables that the probe reads belong to the node that answers.
const ONE: u16 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Request<'a> {
    /// Asks for the options that the server supports.
    Options,
    /// Begins the connection.
    Startup,
    /// Name and password, for `PasswordAuthenticator`.
    AuthResponse {
        /// The name of the role.
        user: &'a str,
        password: &'a str,
    },
    /// A statement.
    Query(&'a str),
}

impl Request<'_> {
    /// The frame of the request, with stream 0: the probe waits for each answer.
    pub(in super::super) fn frame(&self) -> Vec<u8> {
        let (opcode, body) = match self {
            Self::Startup => (0x01, startup()),
            Self::Options => (0x05, Vec::new()),
            Self::Query(statement) => (0x07, query(statement)),
            Self::AuthResponse { user, password } => (0x0f, plain(user, password)),
        };
        let mut frame = vec![VERSION, 0, 0, 0, opcode];
        frame.extend(length(&body));
        frame.extend(body);
        frame
    }
}

/// A length of four bytes. Requests are short texts of this program and of its command line.
fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("BUG: a request of 4 GiB").to_be_bytes()
}

/// A `[string map]` with the one option that is mandatory.
fn startup() -> Vec<u8> {
    let mut body = vec![0, 1];
    for text in ["CQL_VERSION", "3.0.0"] {
        body.extend([0, text.len() as u8]);
        body.extend(text.bytes());
    }
    body
}

/// A `[long string]`, the consistency, and no flags: no values, no pages.
fn query(statement: &str) -> Vec<u8> {
    let mut body = length(statement.as_bytes()).to_vec();
    body.extend(statement.bytes());
    body.extend(ONE.to_be_bytes());
    body.push(0);
    body
}

/// The token of SASL PLAIN (RFC 4616) as `[bytes]`.
fn plain(user: &str, password: &str) -> Vec<u8> {
    let token = format!("\0{user}\0{password}");
    let mut body = length(token.as_bytes()).to_vec();
    body.extend(token.into_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_bytes_of_the_specification() {
        assert_eq!(Request::Options.frame(), [4, 0, 0, 0, 5, 0, 0, 0, 0]);
        let startup = b"\x04\0\0\0\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0";
        assert_eq!(Request::Startup.frame(), startup);
        let query = b"\x04\0\0\0\x07\0\0\0\x0f\0\0\0\x08SELECT 1\0\x01\0";
        assert_eq!(Request::Query("SELECT 1").frame(), query);
        let plain = Request::AuthResponse { user: "me", password: "pw" }.frame();
        assert_eq!(plain, b"\x04\0\0\0\x0f\0\0\0\x0a\0\0\0\x06\0me\0pw");
    }
}

//! PostgreSQL's protocol, version 3, over a blocking socket. Messages to the server and passwords use
//! `postgres-protocol`. Answers are parsed here, because a load generator counts rows and does not build them.

use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ChannelBinding, ScramSha256};
use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};

use super::address::Address;
use super::link::{Link, SqlError};
use super::value::{Effect, Rows, Statement, Type, Value};
use crate::cancel::CancelHandle;
use crate::tls::TlsClient;

const INT4: Oid = 23;
const TEXT: Oid = 25;
/// The longest message to read. A row of a table is far shorter.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Postgres {
    link: Link,
    out: BytesMut,
    /// The names of prepared statements, by number.
    names: Vec<String>,
}

impl Postgres {
    pub(super) fn connect(address: &Address, silence: Duration) -> Result<Self, SqlError> {
        let link = Link::connect(address, silence)?;
        let mut client = Self { link, out: BytesMut::new(), names: Vec::new() };
        client.log_in(address)?;
        Ok(client)
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        self.link.cancel_handle()
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.link.bytes_out, self.link.bytes_in)
    }

    pub(super) fn run(&mut self, sql: &[u8]) -> Result<Effect, SqlError> {
        self.query(sql)?;
        self.result(|_| ())
    }

    pub(super) fn rows(&mut self, sql: &str) -> Result<Rows, SqlError> {
        self.query(sql.as_bytes())?;
        let mut rows = Rows::new();
        self.result(|row| rows.push(text_row(row)))?;
        Ok(rows)
    }

    pub(super) fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, SqlError> {
        let number = self.names.len() as u32;
        let name = format!("s{number}");
        let types = types.iter().map(|kind| match kind {
            Type::Int => INT4,
            Type::Text => TEXT,
        });
        self.out.clear();
        frontend::parse(&name, sql, types, &mut self.out).map_err(unwritable)?;
        frontend::sync(&mut self.out);
        self.link.send(&self.out)?;
        self.result(|_| ())?;
        self.names.push(name);
        Ok(Statement(number))
    }

    pub(super) fn execute(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Effect, SqlError> {
        let name = &self.names[statement.0 as usize];
        // Integers are binary (1), text is text (0); results are binary.
        let formats = values.iter().map(|value| i16::from(matches!(value, Value::Int(_))));
        let write = |value: &Value<'_>, out: &mut BytesMut| {
            match value {
                Value::Int(number) => out.extend_from_slice(&number.to_be_bytes()),
                Value::Text(text) => out.extend_from_slice(text),
            }
            Ok(IsNull::No)
        };
        self.out.clear();
        frontend::bind("", name, formats, values, write, [1], &mut self.out)
            .map_err(|_| SqlError::Lost("a value is too long".to_owned()))?;
        frontend::execute("", 0, &mut self.out).map_err(unwritable)?;
        frontend::sync(&mut self.out);
        self.link.send(&self.out)?;
        self.result(|_| ())
    }

    pub(super) fn quit(&mut self) {
        self.out.clear();
        frontend::terminate(&mut self.out);
        // The server may have closed the connection before.
        let _ = self.link.send(&self.out);
    }

    fn query(&mut self, sql: &[u8]) -> Result<(), SqlError> {
        self.out.clear();
        self.out.extend_from_slice(b"Q");
        self.out.extend_from_slice(&(sql.len() as u32 + 5).to_be_bytes());
        self.out.extend_from_slice(sql);
        self.out.extend_from_slice(&[0]);
        self.link.send(&self.out)
    }

    /// Asks the server for TLS and continues with it.
    fn start_tls(&mut self, client: &TlsClient) -> Result<(), SqlError> {
        frontend::ssl_request(&mut self.out);
        self.link.send(&self.out)?;
        self.out.clear();
        self.link.need(1)?;
        let answer = self.link.bytes()[0];
        self.link.used(1);
        match answer {
            b'S' => self.link.start_tls(client),
            b'N' => Err(SqlError::Unreachable(
                "the server has no TLS: set `ssl = on` there, or write sslmode=disable".to_owned(),
            )),
            _ => Err(unexpected("an answer to the request for TLS")),
        }
    }

    fn log_in(&mut self, address: &Address) -> Result<(), SqlError> {
        if let Some(tls) = address.tls() {
            self.start_tls(&tls.client)?;
        }
        let parameters = [
            ("user", address.user.as_str()),
            ("database", address.database.as_str()),
            ("client_encoding", "UTF8"),
        ];
        frontend::startup_message(parameters, &mut self.out).map_err(unwritable)?;
        self.link.send(&self.out)?;
        let mut scram = None;
        loop {
            let (kind, length) = self.message()?;
            let body = self.link.bytes()[..length].to_vec();
            self.link.used(length);
            match kind {
                b'R' => self.authenticate(address, &body, &mut scram)?,
                b'E' => return Err(refusal(&body)),
                b'Z' => return Ok(()),
                // Parameters, the cancel key, notices.
                b'S' | b'K' | b'N' => {}
                _ => return Err(unexpected("an answer to the login")),
            }
        }
    }

    fn authenticate(
        &mut self,
        address: &Address,
        body: &[u8],
        scram: &mut Option<ScramSha256>,
    ) -> Result<(), SqlError> {
        let (code, rest) =
            body.split_first_chunk::<4>().ok_or_else(|| unexpected("a request for a password"))?;
        let password = address.password.as_bytes();
        let failed = |_| SqlError::Lost("the server's proof of the password is wrong".to_owned());
        self.out.clear();
        match (i32::from_be_bytes(*code), &mut *scram) {
            (0, _) => return Ok(()),
            (3, _) => frontend::password_message(password, &mut self.out).map_err(unwritable)?,
            (5, _) => {
                let salt = rest.try_into().map_err(|_| unexpected("a salt"))?;
                let hash = md5_hash(address.user.as_bytes(), password, salt);
                frontend::password_message(hash.as_bytes(), &mut self.out).map_err(unwritable)?;
            }
            (10, _) if rest.split(|byte| *byte == 0).any(|name| name == sasl::SCRAM_SHA_256.as_bytes()) => {
                let begun = ScramSha256::new(password, ChannelBinding::unsupported());
                frontend::sasl_initial_response(sasl::SCRAM_SHA_256, begun.message(), &mut self.out)
                    .map_err(unwritable)?;
                *scram = Some(begun);
            }
            (11, Some(scram)) => {
                scram.update(rest).map_err(failed)?;
                frontend::sasl_response(scram.message(), &mut self.out).map_err(unwritable)?;
            }
            (12, Some(scram)) => return scram.finish(rest).map_err(failed),
            (other, _) => {
                return Err(SqlError::Lost(format!(
                    "user `{}` must log in by way {other} of PostgreSQL, which is not spoken here; \
                     use a password (scram-sha-256 or md5 in pg_hba.conf)",
                    address.user
                )));
            }
        }
        self.link.send(&self.out)
    }

    /// Waits for a message. Returns its kind and the length of its body.
    #[inline]
    fn message(&mut self) -> Result<(u8, usize), SqlError> {
        self.link.need(5)?;
        let head = self.link.bytes();
        let kind = head[0];
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(unexpected("the length of a message"));
        }
        self.link.used(5);
        self.link.need(length - 4)?;
        Ok((kind, length - 4))
    }

    /// Reads until the server is ready for the next statement.
    fn result(&mut self, mut each: impl FnMut(&[u8])) -> Result<Effect, SqlError> {
        let mut effect = Effect::default();
        let mut refused = None;
        loop {
            let (kind, length) = self.message()?;
            let body = &self.link.bytes()[..length];
            match kind {
                b'D' => {
                    effect.rows += 1;
                    each(body);
                }
                b'C' => effect.affected += affected(body),
                b'E' => refused = Some(refusal(body)),
                b'Z' => {
                    self.link.used(length);
                    return refused.map_or(Ok(effect), Err);
                }
                b'1' | b'2' | b'3' | b'I' | b'N' | b'S' | b'T' | b'n' | b't' => {}
                _ => return Err(unexpected("an answer")),
            }
            self.link.used(length);
        }
    }
}

/// The number at the end of `UPDATE 1` or `INSERT 0 1`; 0 for SELECT.
fn affected(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag);
    let mut words = tag.trim_end_matches('\0').split(' ');
    if !matches!(words.next(), Some("INSERT" | "UPDATE" | "DELETE")) {
        return 0;
    }
    words.next_back().and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn refusal(body: &[u8]) -> SqlError {
    let (mut code, mut message) = (String::new(), String::new());
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        let text = || String::from_utf8_lossy(&field[1..]).into_owned();
        match field[0] {
            b'C' => code = text(),
            b'M' => message = text(),
            _ => {}
        }
    }
    // The server shuts down: it closes the connection after this message.
    if code.starts_with("57P0") {
        return SqlError::Lost(format!("connection ended by the server: {message}"));
    }
    SqlError::Refused { code, message }
}

fn unexpected(what: &str) -> SqlError {
    SqlError::OtherProtocol(format!("{what} is not PostgreSQL's protocol; is this a PostgreSQL server?"))
}

fn unwritable(error: std::io::Error) -> SqlError {
    SqlError::Lost(format!("a message cannot be written: {error}"))
}

fn text_row(body: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let end = usize::try_from(length).unwrap_or(0).min(after.len());
        values.push((length >= 0).then(|| String::from_utf8_lossy(&after[..end]).into_owned()));
        rest = &after[end..];
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_rows_are_at_the_end_of_the_tag() {
        for (tag, count) in
            [("INSERT 0 17\0", 17), ("UPDATE 1\0", 1), ("DELETE 0\0", 0), ("SELECT 100\0", 0), ("BEGIN\0", 0)]
        {
            assert_eq!(affected(tag.as_bytes()), count, "{tag}");
        }
    }

    #[test]
    fn refusals_have_code_and_words() {
        let error = refusal(b"SFATAL\0C28P01\0Mpassword authentication failed\0\0");
        assert_eq!(error.to_string(), "error 28P01: password authentication failed");
        assert!(matches!(refusal(b"C57P01\0Mterminating\0\0"), SqlError::Lost(_)));
    }

    #[test]
    fn rows_of_text_have_nulls() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(text_row(row), [Some("ab".to_owned()), None, Some(String::new())]);
        assert_eq!(text_row(b"\0\x01\0\0\0\x09ab"), [Some("ab".to_owned())]);
    }
}

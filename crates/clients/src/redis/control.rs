//! A blocking connection that asks the server some questions.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use wire::resp::{Token, reply, token, write};

use super::error::{RedisError, text_of};
use super::login::Login;
use crate::tls::{Stream, TlsClient};

/// The longest wait for one answer. INFO and DBSIZE answer at once; a server that loads its file reports that.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A blocking connection.
#[derive(Debug)]
pub struct RedisClient {
    stream: Stream,
    inbound: Vec<u8>,
}

impl RedisClient {
    /// Connects and logs in.
    pub fn connect(address: SocketAddr, tls: Option<&TlsClient>, login: &Login) -> Result<Self, RedisError> {
        let cannot = || RedisError::io(format!("connecting to Redis at {address}"));
        let stream = Stream::connect(address, tls, TIMEOUT).map_err(cannot())?;
        let mut control = Self { stream, inbound: Vec::new() };
        if let Some(password) = &login.password {
            let mut words = vec!["AUTH"];
            words.extend(login.user.as_deref());
            words.push(password);
            control.text(&words).map_err(|error| RedisError::Login(Box::new(error)))?;
        }
        if login.database > 0 {
            control.text(&["SELECT", &login.database.to_string()])?;
        }
        Ok(control)
    }

    /// Sends a command and returns its answer as text: a bulk or simple string, or a number in digits.
    pub fn text(&mut self, words: &[&str]) -> Result<String, RedisError> {
        let bytes = self.exchange(words)?;
        match token(&bytes, 0) {
            Ok(Some((Token::Simple(text) | Token::Bulk(text) | Token::Verbatim(text), _))) => {
                Ok(String::from_utf8_lossy(text).into_owned())
            }
            Ok(Some((Token::Integer(number), _))) => Ok(number.to_string()),
            Ok(Some((Token::Error(text), _))) => {
                Err(RedisError::Answer(format!("{}: {}", words[0], text_of(text))))
            }
            other => Err(RedisError::Answer(format!("{}: {other:?}", words[0]))),
        }
    }

    /// The flat list of texts of an array answer, nested arrays included.
    pub fn list(&mut self, words: &[&str]) -> Result<Vec<Vec<u8>>, RedisError> {
        let bytes = self.exchange(words)?;
        let mut texts = Vec::new();
        let mut offset = 0;
        while let Ok(Some((found, length))) = token(&bytes, offset) {
            offset += length;
            match found {
                Token::Simple(text) | Token::Bulk(text) => texts.push(text.to_vec()),
                Token::Integer(number) => texts.push(number.to_string().into_bytes()),
                Token::Error(text) => {
                    return Err(RedisError::Answer(format!("{}: {}", words[0], text_of(text))));
                }
                _ => {}
            }
        }
        Ok(texts)
    }

    /// The fields of `INFO section`.
    pub fn info(&mut self, section: &str) -> Result<BTreeMap<String, String>, RedisError> {
        let text = self.text(&["INFO", section])?;
        let fields = text.lines().filter_map(|line| line.trim().split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The number of calls of each command so far, in lower case.
    pub fn command_calls(&mut self) -> Result<BTreeMap<String, u64>, RedisError> {
        let stats = self.info("commandstats")?;
        let calls = stats.iter().filter_map(|(name, value)| {
            let calls = value.split(',').find_map(|part| part.strip_prefix("calls="))?.parse().ok()?;
            Some((name.strip_prefix("cmdstat_")?.to_owned(), calls))
        });
        Ok(calls.collect())
    }

    /// Sends one command and returns the bytes of its answer.
    fn exchange(&mut self, words: &[&str]) -> Result<Vec<u8>, RedisError> {
        let cannot = |what: &'static str| RedisError::io(format!("{} to Redis: {what}", words[0]));
        let mut out = Vec::new();
        let words_bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        write::command(&mut out, &words_bytes);
        self.stream.write_all(&out).map_err(cannot("sending"))?;
        let mut buffer = [0; 16 * 1024];
        loop {
            let found = reply(&self.inbound)
                .map_err(|e| RedisError::OtherProtocol(format!("{}: no RESP: {e}", words[0])))?;
            if let Some(found) = found {
                return Ok(self.inbound.drain(..found.consumed).collect());
            }
            match self.stream.read(&mut buffer).map_err(cannot("no answer within 10 s"))? {
                0 => {
                    let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(cannot("the server closed the connection")(closed));
                }
                count => self.inbound.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

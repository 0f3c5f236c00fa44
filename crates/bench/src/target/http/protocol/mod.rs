//! Clients of HTTP/1.1, and of HTTP/2 without TLS with prior knowledge. They send requests with keys, several at a time
//! per connection, close connections after each request if configured, and compare answers.

use std::collections::VecDeque;

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::request::{PreparedRequest, SentRequest};
use crate::dataset::{Distribution, Random, Sampler};
use crate::limits::HTTP_BODIES_BYTES_MAX;
use crate::protocol::{Completion, DueTime, Lifetime, Opening, OperationChoice, Protocol, Received, Started};

use super::request::Operation;

/// The domain of the random numbers of connections.
const DOMAIN: u64 = 0x6874_7470;

/// The protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Version {
    /// HTTP/1.1.
    #[serde(rename = "h1")]
    One,
    /// HTTP/2 with prior knowledge, without TLS.
    #[serde(rename = "h2")]
    Two,
}

/// A group of connections with the same operations.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupConfig {
    /// The number of connections.
    pub connections: u32,
    /// The classes of the operations and their weights.
    pub operations: Vec<(u16, u32)>,
    /// The protocol version.
    pub version: Version,
    /// Requests in flight per connection.
    pub window: usize,
    /// Whether every request has its own connection.
    pub close: bool,
    /// The number of requests per client, whose TCP connections may change; `None` without a limit.
    pub requests: Option<u64>,
    /// The smallest and the largest key.
    pub keys: (u64, u64),
    /// The distribution of keys.
    pub distribution: Distribution,
}

struct Group {
    config: GroupConfig,
    first: u32,
    keys: Sampler,
}

/// The driver.
pub struct Http {
    groups: Vec<Group>,
    operations: Vec<PreparedRequest>,
    choice: OperationChoice,
    seed: u64,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

/// One client.
#[derive(Debug)]
pub struct Session {
    number: u32,
    group: u16,
    random: Random,
    /// The counts of requests and answers.
    pub tally: Tally,
    /// Requests to send again: their connection was closed in order before their answers.
    again: VecDeque<SentRequest>,
    connection: Connection,
}

/// The counts of a client, for requests of any kind and result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that were written, including repetitions.
    pub written: u64,
    /// Complete answers.
    pub answered: u64,
    /// Requests that were repeated on another connection.
    pub repeated: u64,
    /// Connections that were begun.
    pub connections: u64,
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            written: self.written + other.written,
            answered: self.answered + other.answered,
            repeated: self.repeated + other.repeated,
            connections: self.connections + other.connections,
        }
    }
}

#[derive(Debug)]
enum Connection {
    One(Http1Connection),
    Two(Box<Http2Connection>),
}

impl Http {
    /// Creates a driver. The error says which part of the requests is impossible.
    pub fn new(operations: &[Operation], groups: Vec<GroupConfig>, seed: u64) -> Result<Self, String> {
        let choices: Vec<(u32, Vec<(u16, u32)>)> =
            groups.iter().map(|config| (config.connections, config.operations.clone())).collect();
        let mut first = 0;
        let mut made = Vec::new();
        for config in groups {
            check(&config)?;
            let keys = config.distribution.over(config.keys.0, config.keys.1);
            let next = first + config.connections;
            made.push(Group { config, first, keys });
            first = next;
        }
        let operations = operations.iter().map(PreparedRequest::new).collect::<Result<Vec<_>, _>>()?;
        made.iter().try_for_each(|group| group.config.check_bodies(&operations))?;
        Ok(Self { groups: made, operations, choice: OperationChoice::new(&choices)?, seed })
    }

    fn group(&self, session: &Session) -> &Group {
        &self.groups[usize::from(session.group)]
    }

    fn draw(&self, session: &mut Session) -> Option<SentRequest> {
        if let Some(request) = session.again.pop_front() {
            session.tally.repeated += 1;
            return Some(request);
        }
        let request = session.tally.written - session.tally.repeated;
        if self.group(session).config.requests.is_some_and(|requests| request >= requests) {
            return None;
        }
        let class = self.choice.next(session.number, &mut session.random)?;
        let key = match self.operations[usize::from(class)].has_key {
            true => self.groups[usize::from(session.group)].keys.sample(&mut session.random),
            false => 0,
        };
        Some(SentRequest { class, key })
    }
}

fn check(config: &GroupConfig) -> Result<(), String> {
    config.distribution.check().map_err(|what| format!("`distribution`: {what}"))?;
    if config.keys.0 > config.keys.1 {
        let (min, max) = config.keys;
        return Err(format!("`keys`: the smallest, {min}, is above the largest, {max}"));
    }
    if config.close && config.window > 1 {
        return Err(format!(
            "`window` is {}, but with connection = \"close\" a connection has one request",
            config.window
        ));
    }
    Ok(())
}

impl GroupConfig {
    /// Limits the memory for bodies that wait for the server.
    fn check_bodies(&self, operations: &[PreparedRequest]) -> Result<(), String> {
        let lengths = self.operations.iter().map(|(class, _)| operations[usize::from(*class)].body_bytes);
        let longest = lengths.max().unwrap_or(0);
        let all =
            u64::from(self.connections).saturating_mul(self.window as u64).saturating_mul(longest as u64);
        if all > HTTP_BODIES_BYTES_MAX {
            return Err(format!(
                "{} connections with {} requests in flight of {longest} bytes each are {all} bytes of memory; use at most \
                 {HTTP_BODIES_BYTES_MAX}: fewer connections, a smaller window or shorter bodies",
                self.connections, self.window
            ));
        }
        Ok(())
    }
}

impl Protocol for Http {
    type Session = Session;

    fn session(&self, number: u32) -> Session {
        let index = self.groups.iter().rposition(|group| group.first <= number).unwrap_or(0);
        let config = &self.groups[index].config;
        Session {
            number,
            group: index as u16,
            random: Random::keyed(self.seed, DOMAIN, number.into()),
            tally: Tally::default(),
            again: VecDeque::new(),
            connection: match config.version {
                Version::One => Connection::One(Http1Connection::new(config.close)),
                Version::Two => Connection::Two(Box::new(Http2Connection::new(config.close))),
            },
        }
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        session.random = Random::keyed(seed, DOMAIN, session.number.into());
    }

    fn lifetime(&self, session: &Session) -> Lifetime {
        if self.group(session).config.close { Lifetime::OnDemand } else { Lifetime::Renewed }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        session.tally.connections += 1;
        match &mut session.connection {
            Connection::One(connection) => connection.open(),
            Connection::Two(connection) => connection.open(out),
        }
    }

    fn window(&self, session: &Session) -> usize {
        let window = self.group(session).config.window;
        match &session.connection {
            Connection::One(_) => window,
            Connection::Two(connection) => window.min(connection.window()),
        }
    }

    fn start(&self, session: &mut Session, _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        let request = self.draw(session)?;
        session.tally.written += 1;
        let prepared = &self.operations[usize::from(request.class)];
        let answer = match &mut session.connection {
            Connection::One(connection) => connection.start(prepared, request, out),
            Connection::Two(connection) => connection.start(prepared, request, out),
        };
        Some(Started { class: request.class, answer })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let Session { tally, again, connection, .. } = session;
        let mut counted = |completion: Completion<'_>| {
            tally.answered += 1;
            done(completion);
        };
        match connection {
            Connection::One(connection) => connection.receive(&self.operations, bytes, again, &mut counted),
            Connection::Two(connection) => {
                connection.receive(&self.operations, bytes, out, again, &mut counted)
            }
        }
    }

    fn closed(&self, session: &mut Session, done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        let Session { tally, again, connection, .. } = session;
        let mut counted = |completion: Completion<'_>| {
            tally.answered += 1;
            done(completion);
        };
        match connection {
            Connection::One(connection) => connection.closed(&self.operations, again, &mut counted),
            Connection::Two(connection) => connection.closed(again),
        }
    }

    fn lost(&self, session: &mut Session) {
        session.again.clear();
        match &mut session.connection {
            Connection::One(connection) => connection.lost(),
            Connection::Two(connection) => connection.lost(),
        }
    }
}

#[cfg(test)]
mod tests;

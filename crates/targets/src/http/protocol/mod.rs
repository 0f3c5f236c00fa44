//! Clients of HTTP/1.1, and of HTTP/2 without TLS with prior knowledge. They send requests with keys, several at a time
//! per connection, one after another in the order of the scenario or by weight, close connections after each request if configured, and compare answers.

use std::collections::VecDeque;

use load::dataset::{Distribution, Random, Sampler};
use load::protocol::{
    Answer, AnswerStatus, Completion, DueTime, Lifetime, Opening, OperationChoice, Protocol, Received,
    Started,
};

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::request::{PreparedRequest, SentRequest};
use super::variables::{self, OWN, check_value};
use crate::limits::{HTTP_BODIES_BYTES_MAX, HTTP_SETUP_STEPS_MAX};

use super::request::Operation;

/// The domain of the random numbers of connections.
const DOMAIN: u64 = 0x6874_7470;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Version {
    /// HTTP/1.1.
    #[serde(rename = "h1")]
    One,
    /// HTTP/2 with prior knowledge, without TLS.
    #[serde(rename = "h2")]
    Two,
}

/// The order of the operations of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// At random, by weight.
    Random,
    /// One after another as the scenario lists them, again and again. Those of a round have the same key.
    Listed,
}

/// A group of connections with the same operations.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupConfig {
    /// The number of connections.
    pub connections: u32,
    /// The classes of the operations and their weights.
    pub operations: Vec<(u16, u32)>,
    /// The order of the operations.
    pub order: Order,
    /// The classes of the operations that each client sends once, in this order, before it begins.
    pub setup: Vec<u16>,
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
    /// The first values of a client's variables.
    variables: Vec<String>,
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
    /// The values of the variables; an empty one has none.
    variables: Vec<String>,
    /// The set-up steps that have been answered.
    set_up: usize,
    /// The requests of the load so far, without repetitions.
    drawn: u64,
    /// The key of the round of operations in their listed order.
    round_key: u64,
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
    /// Creates a driver. The error states which part of the requests is impossible.
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
        let extracted = operations.iter().flat_map(|operation| operation.expect.json.extract.iter());
        let names = variables::names(extracted.map(|(name, _)| name))?;
        let operations = operations
            .iter()
            .map(|operation| PreparedRequest::new(operation, &names))
            .collect::<Result<Vec<_>, _>>()?;
        made.iter().try_for_each(|group| {
            group.config.check_steps(&operations)?;
            group.config.check_bodies(&operations)
        })?;
        Ok(Self {
            groups: made,
            operations,
            choice: OperationChoice::new(&choices)?,
            variables: vec![String::new(); names.len()],
            seed,
        })
    }

    /// Gives every client a user and a password for `__user__` and `__password__`.
    pub(super) fn with_login(mut self, login: [Option<String>; 2]) -> Result<Self, String> {
        for (index, value) in login.into_iter().enumerate() {
            // Operations that do not use it may have any password.
            let used = self.operations.iter().any(|operation| operation.variables.contains(&(index + 1)));
            if !used {
                continue;
            }
            let name = OWN[index + 1];
            let value = value.ok_or_else(|| format!("`__{name}__` is that of target.url, which has none"))?;
            check_value(&value).map_err(|why| format!("`__{name}__` of target.url is {why}"))?;
            self.variables[index + 1] = value;
        }
        Ok(self)
    }

    fn group(&self, session: &Session) -> &Group {
        &self.groups[usize::from(session.group)]
    }

    fn draw(&self, session: &mut Session) -> Option<SentRequest> {
        if let Some(request) = session.again.pop_front() {
            session.tally.repeated += 1;
            return Some(request);
        }
        let group = self.group(session);
        let request = session.drawn;
        if group.config.requests.is_some_and(|requests| request >= requests) {
            return None;
        }
        session.drawn += 1;
        if group.config.order == Order::Listed {
            let step = (request % group.config.operations.len() as u64) as usize;
            if step == 0 {
                session.round_key = group.keys.sample(&mut session.random);
            }
            let class = group.config.operations[step].0;
            return Some(self.request(class, session.round_key, &session.variables));
        }
        let class = self.choice.next(session.number, &mut session.random)?;
        let key = match self.operations[usize::from(class)].has_key {
            true => group.keys.sample(&mut session.random),
            false => 0,
        };
        Some(self.request(class, key, &session.variables))
    }

    fn request(&self, class: u16, key: u64, variables: &[String]) -> SentRequest {
        let used = &self.operations[usize::from(class)].variables;
        let lacks_value = used.iter().any(|index| variables.get(*index).is_none_or(String::is_empty));
        SentRequest { class, key, lacks_value }
    }

    fn write(&self, session: &mut Session, request: SentRequest, out: &mut Vec<u8>) -> Answer {
        session.tally.written += 1;
        let prepared = &self.operations[usize::from(request.class)];
        match &mut session.connection {
            Connection::One(connection) => connection.start(prepared, request, &session.variables, out),
            Connection::Two(connection) => connection.start(prepared, request, out),
        }
    }

    fn receive_any(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let Session { tally, again, connection, variables, .. } = session;
        let mut counted = counted(tally, done);
        match connection {
            Connection::One(connection) => {
                connection.receive(&self.operations, bytes, variables, again, &mut counted)
            }
            Connection::Two(connection) => {
                connection.receive(&self.operations, bytes, out, again, &mut counted)
            }
        }
    }

    /// Writes the next set-up step. Returns whether there was one.
    fn next_setup(&self, session: &mut Session, out: &mut Vec<u8>) -> bool {
        let Some(class) = self.group(session).config.setup.get(session.set_up).copied() else { return false };
        let key = self.group(session).config.keys.0;
        let request = self.request(class, key, &session.variables);
        self.write(session, request, out);
        true
    }

    /// Handles the answer of a set-up step, which is not reported, and sends the next one.
    fn receive_setup(
        &self,
        session: &mut Session,
        class: u16,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Received, String> {
        let mut outcome = None;
        let mut done = |completion: Completion<'_>| {
            outcome = Some(match completion.status {
                AnswerStatus::Failed(what) => Err(what.to_owned()),
                AnswerStatus::Good | AnswerStatus::Found { .. } => Ok(()),
            });
        };
        let mut received = self.receive_any(session, bytes, out, &mut done)?;
        let Some(outcome) = outcome else { return Ok(received) };
        let line = &self.operations[usize::from(class)].line;
        outcome.map_err(|what| format!("set-up step `{line}`: {what}"))?;
        if received.over {
            return Err(format!("set-up step `{line}`: the server ends the connection after it"));
        }
        session.set_up += 1;
        received.ready = !self.next_setup(session, out);
        Ok(received)
    }
}

/// Counts the answers, and hands them on.
fn counted<'a>(
    tally: &'a mut Tally,
    done: &'a mut impl FnMut(Completion<'_>),
) -> impl FnMut(Completion<'_>) + 'a {
    |completion| {
        tally.answered += 1;
        done(completion);
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
    /// Refuses steps that these connections cannot take.
    fn check_steps(&self, operations: &[PreparedRequest]) -> Result<(), String> {
        let of = |class: &u16| &operations[usize::from(*class)];
        let load = || self.operations.iter().map(|(class, _)| of(class));
        let variables = |one: &PreparedRequest| one.uses_variables() || one.extracts();
        if self.version == Version::Two && (!self.setup.is_empty() || load().any(variables)) {
            return Err("`setup`, `extract` and variables need `protocol = \"h1\"`".to_owned());
        }
        if self.close && !self.setup.is_empty() {
            return Err("`setup` needs connection = \"keep-alive\"".to_owned());
        }
        if self.setup.len() > HTTP_SETUP_STEPS_MAX {
            return Err(format!(
                "`setup` has {} steps; use at most {HTTP_SETUP_STEPS_MAX}",
                self.setup.len()
            ));
        }
        let in_order = self.order == Order::Listed || load().any(PreparedRequest::extracts);
        if in_order && self.window > 1 {
            return Err(format!(
                "`window` is {}, but with order = \"listed\" or `extract` a request waits for the answer before it",
                self.window
            ));
        }
        if self.order == Order::Listed && self.operations.iter().any(|(_, weight)| *weight != 1) {
            return Err("`weight` has no meaning with order = \"listed\"".to_owned());
        }
        Ok(())
    }

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
        let mut variables = self.variables.clone();
        variables[0] = number.to_string();
        Session {
            number,
            variables,
            set_up: 0,
            drawn: 0,
            round_key: 0,
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
            Connection::One(connection) => {
                let opening = connection.open();
                if session.set_up == self.group(session).config.setup.len() {
                    return opening;
                }
                session.set_up = 0;
                self.next_setup(session, out);
                Opening::Wait
            }
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
        let answer = self.write(session, request, out);
        Some(Started { class: request.class, answer })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let class = self.group(session).config.setup.get(session.set_up).copied();
        match class {
            Some(class) => self.receive_setup(session, class, bytes, out),
            None => self.receive_any(session, bytes, out, done),
        }
    }

    fn closed(&self, session: &mut Session, done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        if let Some(class) = self.group(session).config.setup.get(session.set_up) {
            let line = &self.operations[usize::from(*class)].line;
            return Err(format!("set-up step `{line}`: the server ended the connection"));
        }
        let Session { tally, again, connection, variables, .. } = session;
        let mut counted = counted(tally, done);
        match connection {
            Connection::One(connection) => {
                connection.closed(&self.operations, variables, again, &mut counted)
            }
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

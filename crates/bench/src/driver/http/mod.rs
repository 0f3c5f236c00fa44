//! Clients of HTTP/1.1 and, over a connection of which both sides know beforehand that it is HTTP/2 without TLS, of HTTP/2:
//! requests with keys, several in flight per connection, connections that end with their request, answers compared.

mod expect;
mod link1;
mod link2;
pub mod probe;
mod template;

use std::collections::VecDeque;

use super::{Choice, Completion, Judged, Lifetime, Moment, Opening, Protocol, Received, Started};
use crate::dataset::{Distribution, Random, Sampler};
use crate::limits::HTTP_BODIES_BYTES_MAX;
use expect::{Expected, Seen};
use link1::Link1;
use link2::Link2;
use template::{One, Two};

pub use expect::Expect;
pub use template::{Data, Request};
pub(crate) use template::{has_data, has_key};

/// Separates the random numbers of connections from other streams of the seed.
const DOMAIN: u64 = 0x6874_7470;

/// Which HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Version {
    /// HTTP/1.1
    #[serde(rename = "h1")]
    One,
    /// HTTP/2 with prior knowledge, without TLS.
    #[serde(rename = "h2")]
    Two,
}

/// One request of a scenario; its number is its class in the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What is asked.
    pub request: Request,
    /// What the answer must be.
    pub expect: Expect,
}

/// Connections that do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupConfig {
    /// How many.
    pub connections: u32,
    /// Classes of its operations and their weights.
    pub operations: Vec<(u16, u32)>,
    /// Which HTTP.
    pub version: Version,
    /// Requests in flight per connection.
    pub window: usize,
    /// Every request has a connection of its own.
    pub close: bool,
    /// Requests per connection that is counted here (a client, whose TCP connections may come and go); `None` without end.
    pub requests: Option<u64>,
    /// Smallest and largest key.
    pub keys: (u64, u64),
    /// How keys are chosen.
    pub distribution: Distribution,
}

struct Group {
    config: GroupConfig,
    first: u32,
    keys: Sampler,
}

/// An operation, ready to be carried out.
struct Prepared {
    one: One,
    two: Two,
    expected: Expected,
    has_key: bool,
    /// Length of the longest body of a request.
    body_bytes: usize,
    is_head: bool,
}

/// The driver.
pub struct Http {
    groups: Vec<Group>,
    operations: Vec<Prepared>,
    choice: Choice,
    seed: u64,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

/// A request on its way: its class and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    class: u16,
    key: u64,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    number: u32,
    group: u16,
    random: Random,
    /// What it sent and what came back.
    pub tally: Tally,
    /// Requests to send again: the connection ended in order before their answers.
    again: VecDeque<Asked>,
    link: Link,
}

/// What a client did, in requests of any kind and outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests written, repetitions included.
    pub written: u64,
    /// Whole answers.
    pub answered: u64,
    /// Requests written once more on another connection.
    pub repeated: u64,
    /// Connections begun.
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
enum Link {
    One(Link1),
    Two(Box<Link2>),
}

impl Http {
    /// A driver; an error says what of the requests cannot be.
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
        let operations = operations.iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
        made.iter().try_for_each(|group| group.config.check_bodies(&operations))?;
        Ok(Self { groups: made, operations, choice: Choice::new(&choices)?, seed })
    }

    fn group(&self, session: &Session) -> &Group {
        &self.groups[usize::from(session.group)]
    }

    fn draw(&self, session: &mut Session) -> Option<Asked> {
        if let Some(asked) = session.again.pop_front() {
            session.tally.repeated += 1;
            return Some(asked);
        }
        let asked = session.tally.written - session.tally.repeated;
        if self.group(session).config.requests.is_some_and(|requests| asked >= requests) {
            return None;
        }
        let class = self.choice.next(session.number, &mut session.random)?;
        let key = match self.operations[usize::from(class)].has_key {
            true => self.groups[usize::from(session.group)].keys.sample(&mut session.random),
            false => 0,
        };
        Some(Asked { class, key })
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
    /// Bodies lie in memory until the server takes them.
    fn check_bodies(&self, operations: &[Prepared]) -> Result<(), String> {
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

impl Prepared {
    fn new(operation: &Operation) -> Result<Self, String> {
        operation.request.check()?;
        let request = &operation.request;
        let is_keyed = |text: &str| template::Text::parse(text, request.data).is_keyed();
        Ok(Self {
            one: One::new(request),
            two: Two::new(request)?,
            expected: Expected::new(&operation.expect),
            has_key: is_keyed(&request.target) || request.body.as_deref().is_some_and(is_keyed),
            body_bytes: request
                .body
                .as_deref()
                .map_or(0, |body| template::Text::parse(body, request.data).len(u64::MAX)),
            is_head: request.is_head(),
        })
    }

    /// Judges a whole answer.
    #[inline]
    fn judge(&self, seen: &Seen, answer: super::Answer, bytes: u64, done: &mut impl FnMut(Completion<'_>)) {
        let wrong = self.expected.wrong(seen);
        let judged = wrong.as_deref().map_or(Judged::Good, Judged::Failed);
        done(Completion { answer, judged, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) });
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
            link: match config.version {
                Version::One => Link::One(Link1::new(config.close)),
                Version::Two => Link::Two(Box::new(Link2::new(config.close))),
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
        match &mut session.link {
            Link::One(link) => link.open(),
            Link::Two(link) => link.open(out),
        }
    }

    fn window(&self, session: &Session) -> usize {
        let window = self.group(session).config.window;
        match &session.link {
            Link::One(_) => window,
            Link::Two(link) => window.min(link.window()),
        }
    }

    fn start(&self, session: &mut Session, _due: Moment, out: &mut Vec<u8>) -> Option<Started> {
        let asked = self.draw(session)?;
        session.tally.written += 1;
        let prepared = &self.operations[usize::from(asked.class)];
        let answer = match &mut session.link {
            Link::One(link) => link.start(prepared, asked, out),
            Link::Two(link) => link.start(prepared, asked, out),
        };
        Some(Started { class: asked.class, answer })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let Session { tally, again, link, .. } = session;
        let mut counted = |completion: Completion<'_>| {
            tally.answered += 1;
            done(completion);
        };
        match link {
            Link::One(link) => link.receive(&self.operations, bytes, again, &mut counted),
            Link::Two(link) => link.receive(&self.operations, bytes, out, again, &mut counted),
        }
    }

    fn closed(&self, session: &mut Session, done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        let Session { tally, again, link, .. } = session;
        let mut counted = |completion: Completion<'_>| {
            tally.answered += 1;
            done(completion);
        };
        match link {
            Link::One(link) => link.closed(&self.operations, again, &mut counted),
            Link::Two(link) => link.closed(again),
        }
    }

    fn lost(&self, session: &mut Session) {
        session.again.clear();
        match &mut session.link {
            Link::One(link) => link.lost(),
            Link::Two(link) => link.lost(),
        }
    }
}

#[cfg(test)]
mod tests;

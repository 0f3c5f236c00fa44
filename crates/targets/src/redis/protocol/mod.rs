//! Clients of Redis and compatible servers with the semantics of memtier_benchmark: a list of commands with ratios in a
//! fixed order, key patterns, data sizes, and the same random numbers.

use std::collections::VecDeque;

use clients::redis::{Login, text_of};
use load::protocol::{Answer, AnswerStatus, Completion, DueTime, Opening, Protocol, Received, Started};
use wire::resp::{Reply, Token, reply, write};

use super::command::{Hits, Part, Template};
use super::data::Values;
use super::keys::{Range, Zipf, sequential};
use super::random::Random;

use super::data::{Content, Size};
use super::keys::{Keys, Pattern};

/// One command of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Its class in the recorder.
    pub class: u16,
    /// The words, with `__key__` and `__data__`.
    pub text: String,
    /// How many times it is sent before the next command.
    pub ratio: u32,
    /// The key pattern.
    pub pattern: Pattern,
}

/// A group of clients with the same commands.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupConfig {
    /// The number of connections.
    pub connections: u32,
    /// The commands, in order. The pattern of the first one decides whether clients have their own ranges.
    pub commands: Vec<Command>,
    pub keys: Keys,
    /// The size of values.
    pub size: Size,
    /// The content of values.
    pub content: Content,
    /// The number of operations per client; `None` without a limit.
    pub requests: Option<u64>,
    /// Whether every client draws its own random numbers. Otherwise all use the same keys at the same time, as memtier
    /// does without `--distinct-client-seed`.
    pub distinct_seeds: bool,
    /// The seed of the first client.
    pub seed: u32,
}

struct Group {
    config: GroupConfig,
    templates: Vec<Template>,
    zipf: Zipf,
    parallel: bool,
    first: u32,
}

/// The driver.
pub struct Redis {
    groups: Vec<Group>,
    login: Login,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

/// One client.
#[derive(Debug)]
pub struct Session {
    group: u16,
    /// The number of the client in its group.
    client: u32,
    /// The number of outstanding replies of the handshake.
    handshake: u8,
    command: u16,
    /// How many times the current command was sent in this round.
    repeats: u32,
    /// Operations sent.
    pub sent: u64,
    range: Range,
    /// The last sequential key of each command.
    last: Vec<Option<u64>>,
    random: Random,
    values: Values,
    /// The classes of commands in flight, oldest first. Answers come in order.
    expected: VecDeque<u16>,
}

impl Redis {
    /// Creates a driver. The error states which part of the commands is impossible.
    pub fn new(groups: Vec<GroupConfig>, login: Login) -> Result<Self, String> {
        let mut first = 0;
        let mut made = Vec::new();
        for config in groups {
            check(&config)?;
            let templates =
                config.commands.iter().map(|c| Template::parse(&c.text)).collect::<Result<Vec<_>, _>>()?;
            let parallel = config.commands[0].pattern == Pattern::Parallel;
            let next = first + config.connections;
            made.push(Group { zipf: config.keys.zipf(), templates, parallel, first, config });
            first = next;
        }
        Ok(Self { groups: made, login })
    }

    fn greet(&self, out: &mut Vec<u8>) -> u8 {
        let before = out.len();
        let mut replies = 0;
        let login = &self.login;
        if let Some(password) = &login.password {
            match &login.user {
                Some(user) => write::command(out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
                None => write::command(out, &[b"AUTH", password.as_bytes()]),
            }
            replies += 1;
        }
        if login.resp3 {
            write::command(out, &[b"HELLO", b"3"]);
            replies += 1;
        }
        if login.database > 0 {
            write::command(out, &[b"SELECT", login.database.to_string().as_bytes()]);
            replies += 1;
        }
        debug_assert_eq!(replies == 0, out.len() == before);
        replies
    }
}

fn check(config: &GroupConfig) -> Result<(), String> {
    if config.commands.is_empty() || config.commands.iter().all(|command| command.ratio == 0) {
        return Err("no command has a ratio above zero".to_owned());
    }
    let parallel = |command: &Command| command.pattern == Pattern::Parallel;
    if config.commands.iter().any(parallel) && !parallel(&config.commands[0]) {
        return Err("key pattern P must be that of the first command: it decides the ranges of the clients"
            .to_owned());
    }
    if config.keys.min > config.keys.max {
        return Err(format!("smallest key {} is above the largest, {}", config.keys.min, config.keys.max));
    }
    match &config.size {
        Size::Random(min, max) | Size::Growing(min, max) if min > max || *max == 0 => Err(format!(
            "data from {min} to {max} bytes: the first must not be above the second, nor both be 0"
        )),
        Size::Weighted(list) if list.iter().all(|(_, weight)| *weight == 0) => {
            Err("no data size has a weight above zero".to_owned())
        }
        _ => Ok(()),
    }
}

impl Group {
    fn next_key(&self, session: &mut Session, command: usize) -> u64 {
        let random = &mut session.random;
        match self.config.commands[command].pattern {
            Pattern::Random => random.range(session.range.min, session.range.max),
            Pattern::Gaussian => self.config.keys.gaussian(random, session.range),
            Pattern::Zipf => self.zipf.draw(random),
            Pattern::Sequential | Pattern::Parallel => {
                let key = sequential(session.last[command], session.range);
                session.last[command] = Some(key);
                key
            }
        }
    }

    fn render(&self, session: &mut Session, command: usize, out: &mut Vec<u8>) {
        let mut key = session.range.min;
        for part in &self.templates[command].parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Key { before, after } => {
                    key = self.next_key(session, command);
                    let prefix = self.config.keys.prefix.as_bytes();
                    let length = before.len() + prefix.len() + write::decimal_digits(key) + after.len();
                    write::bulk_header(out, length);
                    out.extend_from_slice(before);
                    out.extend_from_slice(prefix);
                    write::decimal(out, key);
                    out.extend_from_slice(after);
                    out.extend_from_slice(b"\r\n");
                }
                Part::Data => {
                    let Session { random, values, range, .. } = session;
                    let share = (key - range.min) as f64 / (range.max - range.min).max(1) as f64;
                    let bytes = values.next_size(&self.config.size, share, random);
                    write::bulk_header(out, bytes);
                    values.append(out, bytes, random);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// The next command of the rotation.
    fn next_command(&self, session: &mut Session) -> u16 {
        while session.repeats >= self.config.commands[usize::from(session.command)].ratio {
            session.repeats = 0;
            session.command = (session.command + 1) % self.config.commands.len() as u16;
        }
        session.repeats += 1;
        session.command
    }
}

impl GroupConfig {
    /// The seed of a client, relative to that of the first.
    fn seed_of(&self, client: u32, first: u32) -> u32 {
        if self.distinct_seeds { first.wrapping_add(client) } else { first }
    }

    /// Whether each command has one key, which is a word of its own.
    pub(crate) fn names_one_key(&self) -> bool {
        self.commands.iter().all(|command| Template::parse(&command.text).is_ok_and(|it| it.names_one_key()))
    }

    /// Whether every key of the range exists after all requests: clients walk through their own ranges to the end with
    /// a command that stores.
    pub(crate) fn stores_each_key(&self) -> bool {
        let [Command { pattern: Pattern::Parallel, text, .. }] = &self.commands[..] else { return false };
        let first = self.keys.range_of(0, self.connections.into(), true);
        let walks_to_the_end = self.requests.is_some_and(|requests| requests > first.max - first.min);
        walks_to_the_end && Template::parse(text).is_ok_and(|template| template.stores())
    }

    /// The mean number of bytes of key and data that the first command writes.
    pub(crate) fn payload_bytes(&self) -> f64 {
        let size = match &self.size {
            Size::Fixed(size) => f64::from(*size),
            Size::Random(min, max) | Size::Growing(min, max) => f64::from(min + max) / 2.0,
            Size::Weighted(list) => {
                let weights: f64 = list.iter().map(|(_, weight)| f64::from(*weight)).sum();
                list.iter().map(|(size, weight)| f64::from(*size) * f64::from(*weight)).sum::<f64>() / weights
            }
        };
        let key = (self.keys.prefix.len() + write::decimal_digits(self.keys.max)) as f64;
        let words = self.commands[0].text.split_whitespace().skip(1);
        words
            .map(|word| match word {
                "__data__" => size,
                word if word.contains("__key__") => key + (word.len() - "__key__".len()) as f64,
                word => word.len() as f64,
            })
            .sum()
    }
}

impl Protocol for Redis {
    type Session = Session;

    fn session(&self, number: u32) -> Session {
        let index = self.groups.iter().rposition(|group| group.first <= number).unwrap_or(0);
        let group = &self.groups[index];
        let config = &group.config;
        let client = number - group.first;
        let mut random = Random::new(config.seed_of(client, config.seed));
        let values = Values::new(&config.size, config.content, &mut random);
        Session {
            group: index as u16,
            client,
            handshake: 0,
            command: 0,
            repeats: 0,
            sent: 0,
            range: config.keys.range_of(client.into(), config.connections.into(), group.parallel),
            last: vec![None; config.commands.len()],
            random,
            values,
            expected: VecDeque::new(),
        }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        session.expected.clear();
        session.handshake = self.greet(out);
        if session.handshake == 0 { Opening::Ready } else { Opening::Wait }
    }

    fn start(&self, session: &mut Session, _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        let group = &self.groups[usize::from(session.group)];
        if group.config.requests.is_some_and(|requests| session.sent >= requests) {
            return None;
        }
        let command = group.next_command(session);
        group.render(session, usize::from(command), out);
        session.sent += 1;
        session.expected.push_back(command);
        Some(Started { class: group.config.commands[usize::from(command)].class, answer: Answer::InOrder })
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        let config = &self.groups[usize::from(session.group)].config;
        // memtier's generator takes 32 bits.
        session.random = Random::new(config.seed_of(session.client, (seed ^ (seed >> 32)) as u32));
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let group = &self.groups[usize::from(session.group)];
        let mut received = Received::default();
        while let Some(found) = reply(&bytes[received.used..]).map_err(|e| format!("no RESP: {e}"))? {
            received.used += found.consumed;
            if session.handshake > 0 {
                if let Token::Error(text) = found.head {
                    return Err(format!("the server refused the login: {}", text_of(text)));
                }
                session.handshake -= 1;
                received.ready = session.handshake == 0;
                continue;
            }
            let hits =
                session.expected.pop_front().map_or(Hits::Whole, |c| group.templates[usize::from(c)].hits);
            let bytes = u32::try_from(found.consumed).unwrap_or(u32::MAX);
            judge(&found, hits, |status| done(Completion { answer: Answer::InOrder, status, bytes }));
        }
        Ok(received)
    }
}

fn judge(found: &Reply<'_>, hits: Hits, done: impl FnOnce(AnswerStatus<'_>)) {
    let one = |hit: bool| AnswerStatus::Found { hits: u32::from(hit), misses: u32::from(!hit) };
    match found.head {
        Token::Error(text) => done(AnswerStatus::Failed(&text_of(text))),
        _ if found.inner_error.is_some() => {
            done(AnswerStatus::Failed(&text_of(found.inner_error.unwrap_or_default())));
        }
        Token::Null => done(one(false)),
        Token::Bulk(_) | Token::Verbatim(_) => done(one(true)),
        Token::Array(count) | Token::Set(count) if hits == Hits::Elements => {
            let misses = u32::try_from(found.nulls).unwrap_or(u32::MAX);
            done(AnswerStatus::Found { hits: u32::try_from(count).unwrap_or(u32::MAX) - misses, misses });
        }
        Token::Array(count) | Token::Set(count) | Token::Map(count) => done(one(count > 0)),
        _ => done(AnswerStatus::Good),
    }
}

#[cfg(test)]
mod tests;

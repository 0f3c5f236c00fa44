//! A user: one HTTP connection with one request at a time, for some of the devices in turn.

use load::protocol::{Answer, AnswerStatus, Completion, DueTime, Received};

use super::command::{Command, Content};
use crate::broker::Published;
use crate::exchange::Exchange;

/// The common parts of all users.
#[derive(Debug, Clone)]
pub(super) struct UserConfig {
    pub(super) command: Command,
    pub(super) run: u32,
    /// The number of users.
    pub(super) users: u32,
    /// The ids of the devices, by number.
    pub(super) ids: Vec<String>,
    /// The server, for the header `Host`.
    pub(super) host: String,
    /// The value of `X-Authorization`.
    pub(super) bearer: String,
}

#[derive(Debug)]
pub(super) struct User {
    /// Its number. It commands the devices with this number modulo the number of users.
    index: u32,
    /// Commands so far.
    commands: u64,
    /// The counts of its devices, in their order.
    published: Vec<Published>,
    exchange: Exchange,
    waiting: Option<Content>,
}

impl User {
    pub(super) fn new(index: u32, config: &UserConfig) -> Self {
        let devices = (config.ids.len() as u32).saturating_sub(index).div_ceil(config.users);
        Self {
            index,
            commands: 0,
            published: vec![Published::default(); devices as usize],
            exchange: Exchange::default(),
            waiting: None,
        }
    }

    /// The counts of its devices, with their numbers.
    pub(super) fn published(&self, users: u32) -> impl Iterator<Item = (u32, Published)> + '_ {
        let numbers = (self.index..).step_by(users as usize);
        numbers.zip(self.published.iter().copied())
    }

    /// A new connection. What waited for an answer on the one before has failed.
    pub(super) fn open(&mut self) {
        self.exchange = Exchange::default();
        self.lost();
    }

    pub(super) fn lost(&mut self) {
        self.waiting = None;
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Appends the next request; `false` if the user has no device.
    pub(super) fn start(&mut self, config: &UserConfig, due: DueTime, out: &mut Vec<u8>) -> bool {
        let count = self.published.len() as u64;
        if count == 0 {
            return false;
        }
        let place = (self.commands % count) as usize;
        self.commands += 1;
        let device = self.index + place as u32 * config.users;
        let published = &mut self.published[place];
        let content = Content {
            run: config.run,
            device,
            number: published.next,
            intended_ns: due.intended_ns,
            sent_ns: due.sent_ns,
        };
        published.next += 1;
        published.sent += 1;
        // Until its answer.
        published.unacknowledged += 1;
        self.waiting = Some(content);
        let (path, body) = (config.command.path(&config.ids[device as usize]), config.command.body(&content));
        let UserConfig { host, bearer, .. } = config;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-Authorization: {bearer}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        out.extend_from_slice(request.as_bytes());
        true
    }

    pub(super) fn receive(
        &mut self,
        config: &UserConfig,
        bytes: &[u8],
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let Self { exchange, waiting, published, .. } = self;
        exchange.receive(bytes, |answered| {
            let content = waiting.take().ok_or("an answer to nothing that was asked")?;
            let wrong = answered.refusal().or_else(|| {
                let is_right = config.command.is_answer(answered.body, &content);
                (!is_right).then(|| "the answer is not that of the device".to_owned())
            });
            if wrong.is_none() {
                published[(content.device / config.users) as usize].unacknowledged -= 1;
            }
            let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
            done(Completion { answer: Answer::InOrder, status, bytes: answered.bytes });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: DueTime = DueTime { intended_ns: 5, wall_ms: 0, sent_ns: 6 };

    fn config(command: Command) -> UserConfig {
        let ids = (0..5).map(|device| format!("id-{device}")).collect();
        let (host, bearer) = ("h:1".to_owned(), "Bearer x".to_owned());
        UserConfig { command, run: 1, users: 2, ids, host, bearer }
    }

    fn answer(user: &mut User, config: &UserConfig, text: &str) -> Vec<String> {
        let mut results = Vec::new();
        let mut done = |completion: Completion<'_>| results.push(format!("{:?}", completion.status));
        let received = user.receive(config, text.as_bytes(), &mut done).unwrap();
        assert_eq!(received.used, text.len());
        results
    }

    fn http(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn a_user_commands_its_own_devices_in_turn() {
        let config = config(Command::Attributes);
        let mut user = User::new(1, &config);
        for (device, number) in [(1, 0), (3, 0), (1, 1)] {
            let mut out = Vec::new();
            assert!(user.start(&config, DUE, &mut out));
            let request = String::from_utf8(out).unwrap();
            let path =
                format!("POST /api/plugins/telemetry/DEVICE/id-{device}/attributes/SHARED_SCOPE HTTP/1.1");
            assert!(request.starts_with(&path) && request.contains("X-Authorization: Bearer x"), "{request}");
            assert!(request.contains(&format!("\"number\":{number}")), "{request}");
            assert_eq!(answer(&mut user, &config, &http("200 OK", "")), ["Good"]);
        }
        let counts: Vec<(u32, u64)> = user.published(2).map(|(device, of)| (device, of.next)).collect();
        assert_eq!(counts, [(1, 2), (3, 1)]);
    }

    #[test]
    fn a_refusal_and_another_answer_are_failures() {
        let config = config(Command::Rpc);
        let mut user = User::new(0, &config);
        let content = Content { run: 1, device: 0, number: 0, intended_ns: 5, sent_ns: 6 };
        let right = serde_json::to_string(&content).unwrap();
        for (status, body, expected) in [
            ("200 OK", right.as_str(), "Good"),
            ("200 OK", right.as_str(), "Failed(\"the answer is not that of the device\")"),
            ("504 Gateway Timeout", "late", "Failed(\"status 504: late\")"),
        ] {
            assert!(user.start(&config, DUE, &mut Vec::new()));
            assert_eq!(answer(&mut user, &config, &http(status, body)), [expected]);
        }
        let open: u64 = user.published(2).map(|(_, of)| of.unacknowledged).sum();
        assert_eq!(open, 2, "what failed may have reached the device or not");
        assert!(user.receive(&config, http("200 OK", "").as_bytes(), &mut |_| ()).is_err());
    }
}

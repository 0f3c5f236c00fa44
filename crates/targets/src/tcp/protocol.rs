//! Measures connections themselves: how many can exist, how many can be opened per second, and whether the server
//! behind them answers.
//!
//! The application protocol is minimal: none, an echo line, or a GET of HTTP/1.1.

use std::time::Duration;

use wire::http1::Answers;

use load::protocol::{Answer, AnswerStatus, Completion, DueTime, Opening, Protocol, Received, Started};

use super::application;
use super::application::Application;

/// The common configuration of all connections.
#[derive(Debug, Clone)]
pub struct Config {
    pub application: Application,
    /// Class of requests in the recorder.
    pub class: u16,
    /// The time without sending after which a connection sends a request to stay alive; `None` for never.
    pub ping: Option<Duration>,
}

/// The driver. A session is one connection, or a sequence of connections.
#[derive(Debug)]
pub struct Tcp {
    config: Config,
    request: Vec<u8>,
}

/// The state of a connection. It is small, because there may be a million connections.
#[derive(Debug, Default)]
pub struct Session {
    answers: Answers,
    /// The status of the answer that is arriving.
    status: u16,
    /// The number of unanswered requests.
    unanswered: u16,
    /// Whether the next answer is that of a keep-alive.
    pinged: bool,
}

impl Tcp {
    /// A driver for all connections of a phase.
    pub fn new(config: Config) -> Self {
        let request = config.application.request();
        Self { config, request }
    }
}

impl Protocol for Tcp {
    type Session = Session;

    fn session(&self, _number: u32) -> Session {
        Session::default()
    }

    fn open(&self, session: &mut Session, _out: &mut Vec<u8>) -> Opening {
        *session = Session::default();
        Opening::Ready
    }

    /// One request at a time: operations that come due meanwhile wait, and their wait counts.
    fn window(&self, _session: &Session) -> usize {
        1
    }

    fn start(&self, session: &mut Session, _due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        if self.request.is_empty() {
            return None;
        }
        session.unanswered += 1;
        out.extend_from_slice(&self.request);
        Some(Started { class: self.config.class, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut used = 0;
        while let Some((status, taken)) = self.next_answer(session, &bytes[used..], &mut used)? {
            if std::mem::take(&mut session.pinged) {
                continue;
            }
            if session.unanswered == 0 {
                return Err("the server said something although nothing was asked".to_owned());
            }
            session.unanswered -= 1;
            let status = match &status {
                None => AnswerStatus::Good,
                Some(what) => AnswerStatus::Failed(what),
            };
            done(Completion { answer: Answer::InOrder, status, bytes: taken });
        }
        Ok(Received { used, ..Received::default() })
    }

    fn quiet_ns(&self) -> u64 {
        self.config.ping.map_or(0, |after| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))
    }

    fn keep_alive(&self, session: &mut Session, out: &mut Vec<u8>) {
        // A connection that waits for an answer is not idle.
        if session.unanswered == 0 && !session.pinged {
            session.pinged = true;
            out.extend_from_slice(&self.request);
        }
    }
}

impl Tcp {
    /// Parses the next complete answer: returns its error and its size. Adds the parsed bytes to `used`.
    fn next_answer(
        &self,
        session: &mut Session,
        bytes: &[u8],
        used: &mut usize,
    ) -> Result<Option<(Option<String>, u32)>, String> {
        match &self.config.application {
            Application::None => {
                // The server sent a banner without a request, which is harmless.
                *used += bytes.len();
                Ok(None)
            }
            Application::Echo => {
                let expected = self.request.as_slice();
                let Some(answer) = bytes.get(..expected.len()) else { return Ok(None) };
                *used += answer.len();
                let wrong = (answer != expected).then(|| "the answer is not what was sent".to_owned());
                Ok(Some((wrong, answer.len() as u32)))
            }
            Application::Http { .. } => {
                let answer = application::http_answer(&mut session.answers, &mut session.status, bytes)?;
                *used += answer.used;
                let wrong = |status: u16| (!(200..400).contains(&status)).then(|| format!("status {status}"));
                Ok(answer.whole.then(|| (wrong(session.status), answer.used as u32)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(application: Application) -> (Tcp, Session) {
        let tcp = Tcp::new(Config { application, class: 1, ping: Some(Duration::from_secs(30)) });
        let session = tcp.session(0);
        (tcp, session)
    }

    fn http() -> (Tcp, Session) {
        tcp(Application::Http { host: "h:80".to_owned(), path: "/".to_owned() })
    }

    const DUE: DueTime = DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 };

    /// The answers in `bytes`, fed in pieces of every size.
    fn answers(tcp: &Tcp, session: &mut Session, bytes: &[u8], piece: usize) -> Result<Vec<String>, String> {
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        for part in bytes.chunks(piece) {
            rest.extend_from_slice(part);
            let received =
                tcp.receive(session, &rest, &mut Vec::new(), &mut |completion| match completion.status {
                    AnswerStatus::Failed(what) => found.push(what.to_owned()),
                    _ => found.push(String::new()),
                })?;
            rest.drain(..received.used);
        }
        Ok(found)
    }

    #[test]
    fn requests_are_answered_in_order_and_judged() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
        for piece in [1, 7, bytes.len()] {
            let (tcp, mut session) = http();
            let mut out = Vec::new();
            assert_eq!(tcp.start(&mut session, DUE, &mut out).unwrap().class, 1);
            tcp.start(&mut session, DUE, &mut out).unwrap();
            assert!(out.starts_with(b"GET / HTTP/1.1\r\nHost: h:80\r\n"));
            assert_eq!(answers(&tcp, &mut session, bytes, piece).unwrap(), ["", "status 503"]);
        }
    }

    #[test]
    fn pings_are_answered_to_nobody_and_never_overtake_a_request() {
        let (tcp, mut session) = http();
        let mut out = Vec::new();
        tcp.keep_alive(&mut session, &mut out);
        let once = out.len();
        tcp.keep_alive(&mut session, &mut out);
        assert_eq!(out.len(), once, "one ping at a time");
        tcp.start(&mut session, DUE, &mut out).unwrap();
        let bytes = b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answers(&tcp, &mut session, bytes, 5).unwrap(), ["status 404"]);
        tcp.start(&mut session, DUE, &mut out).unwrap();
        let before = out.len();
        tcp.keep_alive(&mut session, &mut out);
        assert_eq!(out.len(), before, "a request is under way");
    }

    #[test]
    fn an_echo_must_be_what_was_sent() {
        let (tcp, mut session) = tcp(Application::Echo);
        let mut out = Vec::new();
        tcp.start(&mut session, DUE, &mut out).unwrap();
        tcp.start(&mut session, DUE, &mut out).unwrap();
        let half = out.len() / 2;
        out[half] ^= 1;
        assert_eq!(answers(&tcp, &mut session, &out, 3).unwrap(), ["", "the answer is not what was sent"]);
        assert!(answers(&tcp, &mut session, &out, 3).unwrap_err().contains("nothing was asked"));
    }

    #[test]
    fn without_an_application_nothing_is_sent_and_a_banner_is_passed_over() {
        let (tcp, mut session) = tcp(Application::None);
        assert!(tcp.start(&mut session, DUE, &mut Vec::new()).is_none());
        assert!(answers(&tcp, &mut session, b"220 hello\r\n", 4).unwrap().is_empty());
    }
}

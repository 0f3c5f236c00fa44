//! A connection that speaks lines.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use hub::caller::Caller;
use hub::points::Points;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use wire::opentsdb::limits::LINE_BYTES_MAX;
use wire::opentsdb::telnet::{Auth, AuthError, Command, Cut, LineCutter, LineRefusal};

use super::super::limits::{
    TELNET_BATCH_LINES_MAX, TELNET_IDLE_TIMEOUT, TELNET_INPUT_BYTES_MAX, TELNET_REFUSED_LOGINS_MAX,
    TELNET_RETRY_INTERVAL,
};
use super::batch::{Refused, collect};
use super::commands::{AUTH_FAIL, AUTH_SUCCESS, HELP, absent, stats, version};
use super::replies::{Replies, one_line};
use crate::acceptor::{Stop, StopSignal};
use crate::error::ApiError;
use crate::http::limits::HEAD_TIMEOUT;
use crate::http::tools::series_caller::caller_of_login;
use crate::http::tools::series_rows::{Target, store_rows};
use crate::http::tools::state::HttpState;

/// A connection that speaks lines.
pub(super) struct Session {
    state: Arc<HttpState>,
    stream: TcpStream,
    peer: SocketAddr,
    /// Who has logged in.
    caller: Option<Caller>,
    /// When a login must have come.
    login_until: Instant,
    refused_logins: usize,
    /// Received bytes; those before `taken` are handled.
    input: Vec<u8>,
    taken: usize,
    cutter: LineCutter,
    replies: Replies,
    stop: StopSignal,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("the client closed it")]
    Closed,
    #[error("the client sent `exit`")]
    Exit,
    #[error("it was idle for too long")]
    Idle,
    #[error("it did not log in")]
    NoLogin,
    #[error("the door stops")]
    Stopped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Session {
    pub(super) fn new(stream: TcpStream, state: Arc<HttpState>, peer: SocketAddr, stop: StopSignal) -> Self {
        Self {
            state,
            stream,
            peer,
            caller: None,
            login_until: Instant::now() + HEAD_TIMEOUT,
            refused_logins: 0,
            input: Vec::new(),
            taken: 0,
            cutter: LineCutter::new(LINE_BYTES_MAX),
            replies: Replies::default(),
            stop,
        }
    }

    /// Serves until the connection ends.
    pub(super) async fn run(mut self) -> End {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        if !matches!(end, End::Io(_)) {
            // A client that does not read, or has gone, cannot be told.
            let _ = self.replies.send_all(&self.stream).await;
        }
        end
    }

    /// Waits for input, and handles the lines that are whole.
    async fn step(&mut self) -> Result<(), End> {
        let limit = match self.must_log_in() {
            true => self.login_until.saturating_duration_since(Instant::now()),
            false => TELNET_IDLE_TIMEOUT,
        };
        let wanted = match self.replies.is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = tokio::select! {
            ready = timeout(limit, self.stream.ready(wanted)) => ready.map_err(|_| self.too_slow())??,
            () = Stop::Drain.reached(&mut self.stop) => return Err(End::Stopped),
        };
        if ready.is_writable() {
            self.replies.send_some(&self.stream)?;
        }
        if !ready.is_readable() {
            return Ok(());
        }
        if self.read()? {
            self.handle_lines().await?;
            self.replies.send_some(&self.stream)?;
        }
        Ok(())
    }

    fn must_log_in(&self) -> bool {
        self.caller.is_none() && self.state.options.open.is_none()
    }

    fn too_slow(&self) -> End {
        match self.must_log_in() {
            true => End::NoLogin,
            false => End::Idle,
        }
    }

    /// Reads what has arrived. Returns false if nothing has.
    fn read(&mut self) -> Result<bool, End> {
        let filled = self.input.len();
        // What is left of the last read is less than a line, so there is room.
        self.input.resize(TELNET_INPUT_BYTES_MAX, 0);
        let read = self.stream.try_read(&mut self.input[filled..]);
        self.input.truncate(filled + read.as_ref().map_or(0, |count| *count));
        match read {
            Ok(0) => Err(self.closed()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The client has sent everything. The beginning of a line is nothing that it meant.
    fn closed(&mut self) -> End {
        if !self.input.is_empty() {
            let refusal =
                LineRefusal::argument("the last line does not end with a line feed; it is not stored");
            self.refuse_line("line", &refusal);
        }
        End::Closed
    }

    /// Handles the lines that are whole. Neighbouring points become one batch.
    async fn handle_lines(&mut self) -> Result<(), End> {
        let (mut end, mut lines) = (self.taken, 0);
        loop {
            let cut = self.cutter.next(&self.input[end..]);
            let bytes = match cut {
                Cut::Incomplete => break self.store(end, lines).await?,
                Cut::Line(bytes) | Cut::TooLong(bytes) | Cut::Rest(bytes) => bytes,
            };
            let is_put =
                matches!(cut, Cut::Line(_)) && Command::of(&self.input[end..end + bytes]) == Command::Put;
            if is_put && lines < TELNET_BATCH_LINES_MAX {
                (end, lines) = (end + bytes, lines + 1);
                continue;
            }
            self.store(end, lines).await?;
            if is_put {
                (end, lines) = (end + bytes, 1);
                continue;
            }
            self.taken = end + bytes;
            match cut {
                Cut::Line(_) => {
                    let line = self.input[end..self.taken].to_vec();
                    self.command(&line).await?;
                }
                Cut::TooLong(_) => {
                    let fault = format!("a line has more than {LINE_BYTES_MAX} bytes; it is not stored");
                    self.refuse_line("line", &LineRefusal::argument(fault));
                }
                Cut::Rest(_) | Cut::Incomplete => {}
            }
            (end, lines) = (self.taken, 0);
        }
        // A connection that waits keeps only the beginning of its next line.
        self.input.drain(..self.taken);
        self.input.shrink_to_fit();
        self.taken = 0;
        Ok(())
    }

    /// Does another command than `put`. What the client gets is sent before more is done, so a client that does not read is not
    /// answered without end.
    async fn command(&mut self, line: &[u8]) -> Result<(), End> {
        let command = Command::of(line);
        match &command {
            Command::Exit => return Err(End::Exit),
            Command::Auth(auth) => self.auth(auth).await?,
            _ => match self.check_caller() {
                Err(refused) => self.refuse_login(&command, &refused)?,
                Ok(_) => {
                    let reply = match &command {
                        Command::Version => version(&self.state),
                        Command::Stats => stats(&self.state),
                        Command::Help => HELP.to_owned(),
                        Command::Absent(name) => self.refused("command", absent(name)),
                        Command::Unknown(name) => {
                            let reply = format!("unknown command: {}.  Try `help'.\n", one_line(name));
                            self.refused("command", reply)
                        }
                        Command::Put | Command::Auth(_) | Command::Exit => String::new(),
                    };
                    self.replies.push(&reply);
                }
            },
        }
        Ok(self.replies.send_all(&self.stream).await?)
    }

    /// Logs in.
    async fn auth(&mut self, auth: &Result<Auth<'_>, AuthError>) -> Result<(), End> {
        let fault = match auth {
            Ok(Auth { user, password }) => {
                match caller_of_login(&self.state, Some(self.peer), user, password).await {
                    Ok(caller) => {
                        (self.caller, self.refused_logins) = (Some(caller), 0);
                        self.replies.push(AUTH_SUCCESS);
                        return Ok(());
                    }
                    Err(refused) => {
                        self.state.refused(refused.label);
                        refused.message
                    }
                }
            }
            Err(form) => self.refused("session", form.to_string()),
        };
        self.replies.push(&format!("auth: illegal argument: {}\n{AUTH_FAIL}", one_line(&fault)));
        self.count_refused_login()
    }

    /// The caller: who has logged in and still may, or anybody on an open server.
    fn check_caller(&self) -> Result<Caller, ApiError> {
        let registry = self.state.hub.registry();
        match &self.caller {
            Some(caller) => {
                registry.check_caller(caller)?;
                Ok(caller.clone())
            }
            None => self.state.open_caller().ok_or_else(|| {
                let message = "Unauthenticated command; send `auth basic <user> <password>` first, where the \
                               password may be an API key";
                ApiError::unauthenticated("session", message)
            }),
        }
    }

    fn refuse_login(&mut self, command: &Command<'_>, refused: &ApiError) -> Result<(), End> {
        self.state.refused(refused.label);
        let name = match command {
            Command::Put => "put",
            Command::Version => "version",
            Command::Stats => "stats",
            Command::Help => "help",
            Command::Absent(name) => *name,
            Command::Unknown(_) | Command::Auth(_) | Command::Exit => "line",
        };
        self.replies.push(&format!("{name}: illegal argument: {}\n", one_line(&refused.message)));
        self.count_refused_login()
    }

    /// A client that does not log in is not listened to forever.
    fn count_refused_login(&mut self) -> Result<(), End> {
        self.refused_logins += 1;
        match self.refused_logins >= TELNET_REFUSED_LOGINS_MAX {
            true => Err(End::NoLogin),
            false => Ok(()),
        }
    }

    /// Counts a refused command.
    fn refused(&self, label: &'static str, reply: String) -> String {
        self.state.refused(label);
        reply
    }

    fn refuse_line(&mut self, label: &'static str, refusal: &LineRefusal) {
        self.state.refused(label);
        self.tell(&format!("put: {}\n", one_line(&refusal.to_string())), 1);
    }

    /// Answers to refused lines, or counts that there is no room for the answer.
    fn tell(&mut self, reply: &str, lines: u32) {
        if !self.replies.offer(reply) {
            self.count("reply_unread", lines);
        }
    }

    fn count(&self, label: &'static str, lines: u32) {
        self.state.hub.metrics().refused_many(self.state.options.door, label, lines.into());
    }

    /// Stores the points of the lines up to `end`, and waits until they are on the disk. A busy store is waited for: meanwhile the
    /// client is not read.
    async fn store(&mut self, end: usize, lines: u32) -> Result<(), End> {
        if lines == 0 {
            return Ok(());
        }
        let batch: Arc<[u8]> = self.input[self.taken..end].into();
        self.taken = end;
        self.admit().await;
        let counters = self.state.hub.metrics().door(self.state.options.door);
        counters.messages.inc_by(lines.into());
        counters.bytes.inc_by(batch.len() as u64);
        let caller = match self.check_caller() {
            Ok(caller) => caller,
            Err(refused) => {
                self.count(refused.label, lines - 1);
                return self.refuse_login(&Command::Put, &refused);
            }
        };
        let database = self.state.hub.own_database(&caller);
        let target = Target { caller, database, topic: "put" };
        let bytes = batch.len();
        let rows = move |points: &mut Points| Ok(collect(points, &batch));
        let stored = loop {
            let stored = store_rows(&self.state, &target, bytes, rows.clone()).await;
            let is_busy = stored.as_ref().is_err_and(|error| error.status == StatusCode::TOO_MANY_REQUESTS);
            if !is_busy || self.pause(TELNET_RETRY_INTERVAL).await.is_err() {
                break stored;
            }
        };
        match stored {
            Ok((accepted, mut refused)) => {
                refused.add_items(accepted.refused);
                self.tell_refused(&refused);
            }
            Err(error) => {
                tracing::warn!(peer = %self.peer, lines, error = %error.message, "opentsdb: lines are not stored");
                self.count(error.label, lines);
                let kind =
                    if error.status == StatusCode::FORBIDDEN { "illegal argument" } else { "storage error" };
                let reason = one_line(&error.message);
                self.tell(&format!("put: {kind}: {lines} lines are not stored: {reason}\n"), 1);
            }
        }
        Ok(())
    }

    fn tell_refused(&mut self, refused: &Refused) {
        if refused.count == 0 {
            return;
        }
        self.count("point", refused.count);
        self.tell(&refused.replies, refused.count - refused.unsaid);
        if refused.unsaid > 0 {
            let reply = format!("put: illegal argument: {} more lines were refused\n", refused.unsaid);
            self.tell(&reply, refused.unsaid);
        }
    }

    /// Waits until the rate of the door allows another batch. What was read before the door stops is stored.
    async fn admit(&mut self) {
        while let Err(wait) = self.state.gate.take_request() {
            if self.pause(wait).await.is_err() {
                break;
            }
        }
        self.state.hub.metrics().door(self.state.options.door).requests.inc();
    }

    /// Waits, unless the door stops.
    async fn pause(&mut self, wait: Duration) -> Result<(), End> {
        tokio::select! {
            () = sleep(wait) => Ok(()),
            () = Stop::Drain.reached(&mut self.stop) => Err(End::Stopped),
        }
    }
}

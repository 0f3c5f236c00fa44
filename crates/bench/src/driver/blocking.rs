//! Drivers whose client blocks: one thread carries out one operation at a time. SQL, where an operation is a
//! conversation, and the machine itself.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use super::DueTime;

/// Ends a connection from another thread; whoever waits on it wakes up with an error.
#[derive(Debug, Clone)]
pub struct Breaker(Arc<TcpStream>);

impl Breaker {
    /// For a socket.
    pub fn new(stream: Arc<TcpStream>) -> Self {
        Self(stream)
    }

    /// Shuts the connection down.
    pub fn cut(&self) {
        // Already closed is as good.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A completed operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Things asked for that were there.
    pub hits: u32,
    /// Things asked for that were not there.
    pub misses: u32,
    /// Bytes of requests.
    pub bytes_out: u64,
    /// Bytes of answers.
    pub bytes_in: u64,
}

/// An operation that did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server refused; the connection goes on.
    Refused(String),
    /// The server refused for now; the operation is to be tried again at once, and all tries count as its time.
    Again(String),
    /// The connection is of no use any more.
    Lost(String),
}

/// A client that blocks. All calls for one session come from one thread.
pub trait Blocking: Sync {
    /// One connection and what is remembered of it.
    type Session: Send;

    /// Opens connection `number`. An error says why not and what to do.
    fn open(&self, number: u32) -> Result<Self::Session, String>;

    /// Opens a lost connection again.
    fn reopen(&self, session: &mut Self::Session) -> Result<(), String>;

    /// What wakes up a thread that waits on this session; `None` when it never waits for long.
    fn breaker(&self, session: &Self::Session) -> Option<Breaker>;

    /// The class of the next operation, an index into [`crate::engine::Plan::classes`]; `None` when this session has no
    /// more to do.
    fn next(&self, session: &mut Self::Session) -> Option<u16>;

    /// Carries out one operation of a class.
    fn run(&self, session: &mut Self::Session, class: u16, due: DueTime) -> Result<Done, Failure>;

    /// Looks at the answer of the operation that was just carried out; what it takes is not part of the operation's time.
    /// An error says what is wrong with the answer, and the operation has failed.
    fn check(&self, _session: &mut Self::Session) -> Result<(), String> {
        Ok(())
    }

    /// From here on the session draws what any session of its number draws after the same seed. What counts on goes on.
    fn reseed(&self, _session: &mut Self::Session, _seed: u64) {}

    /// Ends the session in order.
    fn close(&self, session: &mut Self::Session);
}

//! Drivers with a blocking client: one thread carries out one operation at a time. Used for SQL, where an operation is
//! an exchange of several messages, and for the machine itself.

use clients::CancelHandle;

use super::DueTime;

/// A completed operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Requested items that existed.
    pub hits: u32,
    /// Requested items that did not exist.
    pub misses: u32,
    /// Bytes of requests.
    pub bytes_out: u64,
    /// Bytes of answers.
    pub bytes_in: u64,
}

/// An operation that did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server refused, and the connection can be used.
    Refused(String),
    /// The server refused for now. The engine repeats the operation at once, and the time of all attempts counts.
    Again(String),
    /// The connection cannot be used any more.
    Lost(String),
}

/// A blocking client. All calls for one session come from one thread.
pub trait Blocking: Sync {
    /// A connection and its state.
    type Session: Send;

    /// Opens connection `number`. The error gives the reason and a remedy.
    fn open(&self, number: u32) -> Result<Self::Session, String>;

    /// Opens a lost connection again.
    fn reopen(&self, session: &mut Self::Session) -> Result<(), String>;

    /// The cancel handle of a session; `None` if the session never waits for long.
    fn cancel_handle(&self, session: &Self::Session) -> Option<CancelHandle>;

    /// The class of the next operation, an index into [`crate::engine::Plan::classes`]; `None` if the session has no
    /// more operations.
    fn next(&self, session: &mut Self::Session) -> Option<u16>;

    /// Carries out one operation of a class.
    fn run(&self, session: &mut Self::Session, class: u16, due: DueTime) -> Result<Done, Failure>;

    /// Checks the answer of the latest operation. The time of the check is not part of the operation. An error means
    /// that the operation failed.
    fn check(&self, _session: &mut Self::Session) -> Result<(), String> {
        Ok(())
    }

    /// Restarts the session's random numbers: all sessions with this number and seed draw the same. Counters continue.
    fn reseed(&self, _session: &mut Self::Session, _seed: u64) {}

    /// Ends the session in order.
    fn close(&self, session: &mut Self::Session);
}

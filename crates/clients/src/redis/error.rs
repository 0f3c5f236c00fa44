//! Errors of a connection to Redis.

use std::io;

/// The longest part of a server's error text to keep: enough for `MOVED 3999 127.0.0.1:6381` and `WRONGTYPE ...`.
const ERROR_CHARS_MAX: usize = 120;

/// The reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The server refused the login.
    #[error("the login failed: {0}")]
    Login(Box<RedisError>),
    /// The server refused the command, or the answer is wrong.
    #[error("wrong answer: {0}")]
    Answer(String),
    /// An answer is not of the protocol: another kind of server answers.
    #[error("wrong answer: {0}")]
    OtherProtocol(String),
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

impl RedisError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// The text of an error of the server, cut to a length for messages.
pub fn text_of(error: &[u8]) -> String {
    String::from_utf8_lossy(error).chars().take(ERROR_CHARS_MAX).collect()
}

//! Errors that stop a run before it has a result. A run with a bad result is not an error but an invalid report.

use std::io;
use std::path::PathBuf;

use clients::http::RestError;
use clients::redis::RedisError;
use clients::target_url::Unresolved;
use clients::tls::TlsError;

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options contradict each other or the environment.
    #[error("{0}")]
    Options(String),
    /// This process may not open as many files as the run needs.
    #[error(
        "{needed} open files are needed ({connections} connections and {other} others), but this process is capped at {cap} \
         (RLIMIT_NOFILE, hard). Use at most {possible} connections, raise the cap (as root `ulimit -Hn {needed}`, limits.conf, \
         or systemd LimitNOFILE=; fs.nr_open is the highest it can be), or share the load between processes \
         (--workers {workers})"
    )]
    OpenFiles {
        /// The number of files that the run needs.
        needed: u64,
        /// The number of connections among them.
        connections: u64,
        /// The number of other files.
        other: u64,
        /// The hard limit of this process.
        cap: u64,
        /// The number of connections that fit under the limit.
        possible: u64,
        /// The number of processes with this limit that can hold all connections.
        workers: u64,
    },
    /// Not every connection could be opened.
    #[error("{opened} of {wanted} connections to {target} were opened; {reasons}")]
    Connect {
        target: String,
        /// The number of connections that were opened.
        opened: u64,
        /// The planned number of connections.
        wanted: u64,
        /// The reasons of the failures, and remedies.
        reasons: String,
    },
    /// The run was stopped before there was anything to report.
    #[error("stopped before the load began")]
    Stopped,
    /// The server could not be started or ended by itself.
    #[error("the server {what}{}", last_output(.output))]
    Server {
        what: String,
        /// The last lines of its output.
        output: Vec<String>,
    },
    /// An answer is wrong.
    #[error("wrong answer: {0}")]
    Answer(String),
    /// An answer is not of the protocol: another kind of server answers.
    #[error("wrong answer: {0}")]
    OtherProtocol(String),
    /// An HTTP request failed.
    #[error("{method} {url}: {what}")]
    Http {
        method: &'static str,
        url: String,
        /// Status and body, or the transport's cause.
        what: String,
    },
    /// The TLS options cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A request to a REST interface failed.
    #[error(transparent)]
    Rest(#[from] RestError),
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// The run has a result, and it is bad.
    #[error("{0}")]
    Verdict(String),
    /// A scenario file is wrong.
    #[error("scenario {}: {what}", .path.display())]
    Scenario {
        path: PathBuf,
        /// The error and its remedy.
        what: String,
    },
}

impl From<Unresolved> for Error {
    fn from(error: Unresolved) -> Self {
        Self::Options(error.to_string())
    }
}

impl From<RedisError> for Error {
    fn from(error: RedisError) -> Self {
        match error {
            RedisError::Login(_) => Self::Options(error.to_string()),
            RedisError::Answer(what) => Self::Answer(what),
            RedisError::OtherProtocol(what) => Self::OtherProtocol(what),
            RedisError::Io { what, source } => Self::Io { what, source },
        }
    }
}

impl Error {
    /// The error of a refused operation.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// The error of a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// The result of a step of a run.
pub type Result<T> = std::result::Result<T, Error>;

fn last_output(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(". Its last output:\n  {}", lines.join("\n  ")) }
}

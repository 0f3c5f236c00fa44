//! Fixed bounds of the PostgreSQL door. Options for operators are in [`super::PostgresOptions`].

use std::time::Duration;

use crate::budget::{Limit, Limits};

/// Connections at once, by default. The door answers further ones with SQLSTATE 53300 and closes them.
pub const CONNECTIONS_MAX: usize = 100;
/// From the TCP connection to the end of the login. The door closes slower clients.
pub(crate) const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Rejected connections that are answered at once. Further ones are closed without an answer.
pub(crate) const REJECTING_MAX: usize = 32;
/// How long the door waits for the startup message of a rejected connection.
pub(crate) const REJECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The door closes a client that does not read output for this long.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of answers that a session collects before it sends them.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;
/// Bytes read from a socket at once.
pub(crate) const INPUT_BYTES: usize = 16 * 1024;
/// Prepared statements of one session.
pub(crate) const STATEMENTS_MAX: usize = 1_000;
/// Bytes of prepared statements with their plans and bound values: of one session, of all sessions of a login, and in total.
/// The bytes of a plan are estimated from `STATEMENT_BYTES` and `PLAN_BYTES_PER_TEXT_BYTE`.
pub(crate) const STATEMENTS_SESSION_BYTES_MAX: usize = 16 * 1024 * 1024;
pub(crate) const STATEMENTS_LOGIN_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const STATEMENTS_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of a prepared statement besides its text and columns.
pub(crate) const STATEMENT_BYTES: usize = 4 * 1024;
/// Bytes of a plan for each byte of the statement.
pub(crate) const PLAN_BYTES_PER_TEXT_BYTE: usize = 32;
/// Bytes of a plan and a description for each column of the result.
pub(crate) const COLUMN_BYTES: usize = 512;
/// The bounds of these bytes.
pub(crate) const STATEMENT_BUDGET: Limits = Limits {
    what: "prepared statements and bound values",
    share: Limit { name: "STATEMENTS_SESSION_BYTES_MAX", bytes: STATEMENTS_SESSION_BYTES_MAX },
    login: Limit { name: "STATEMENTS_LOGIN_BYTES_MAX", bytes: STATEMENTS_LOGIN_BYTES_MAX },
    total: Limit { name: "STATEMENTS_BYTES_MAX", bytes: STATEMENTS_BYTES_MAX },
};
/// Open portals and cursors of one session. Each may hold a running query.
pub(crate) const PORTALS_MAX: usize = 64;
/// Settings that one session may change.
pub(crate) const SETTINGS_MAX: usize = 100;
/// Longest value of a setting, in bytes.
pub(crate) const SETTING_BYTES_MAX: usize = 1_024;
/// Password checks at once. The registry checks one at a time.
pub(crate) const LOGINS_AT_ONCE: usize = 1;
/// Password checks that wait. Above it the door refuses logins.
pub(crate) const LOGINS_WAITING_MAX: usize = 32;
/// Deletions at once. They wait for the disk.
pub(crate) const CHANGES_AT_ONCE: usize = 1;
/// Deletions that wait. Above it the door refuses them.
pub(crate) const CHANGES_WAITING_MAX: usize = 32;
/// How long a stopping door waits for running queries.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after the system failed to accept a connection (no file descriptors left).
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const _: () = assert!(
    model::limits::SQL_BYTES_MAX * PLAN_BYTES_PER_TEXT_BYTE + STATEMENT_BYTES < STATEMENTS_SESSION_BYTES_MAX,
    "the longest statement can be prepared"
);
const _: () = assert!(
    wire::postgres::MESSAGE_BYTES_MAX > model::limits::SQL_BYTES_MAX,
    "the longest statement fits into a message"
);

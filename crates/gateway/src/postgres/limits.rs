//! Bounds of the PostgreSQL door. What an operator may set is in [`super::PostgresOptions`]; these are fixed.

use std::time::Duration;

use crate::budget::{Limit, Limits};

/// Connections at once when the operator names no other number. Further ones are told so (SQLSTATE 53300) and closed.
pub const CONNECTIONS_MAX: usize = 100;
/// Bytes of one message before the login. PostgreSQL has the same bound.
pub(crate) const STARTUP_BYTES_MAX: usize = 10_000;
/// Bytes of one message after it. A statement has its own, smaller bound; this is for bound values.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// From the TCP connection to the end of the login; who takes longer is closed.
pub(crate) const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections too many that are being told so at once; further ones are closed without a word.
pub(crate) const TURNED_AWAY_MAX: usize = 32;
/// How long a connection too many has to say its startup, so that it can be told.
pub(crate) const TURN_AWAY_TIMEOUT: Duration = Duration::from_secs(2);
/// A client that has taken nothing for this long while we have something for it is closed.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of answers that are collected before they are sent.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;
/// Bytes read from a socket at once.
pub(crate) const INPUT_BYTES: usize = 16 * 1024;
/// Prepared statements of one session.
pub(crate) const STATEMENTS_MAX: usize = 1_000;
/// Bytes that prepared statements with their plans and bound values may take: of one session, of all sessions of a login,
/// and of all together. A plan's are estimated: `STATEMENT_BYTES` and `PLAN_BYTES_PER_TEXT_BYTE`.
pub(crate) const STATEMENTS_SESSION_BYTES_MAX: usize = 16 * 1024 * 1024;
pub(crate) const STATEMENTS_LOGIN_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const STATEMENTS_BYTES_MAX: usize = 128 * 1024 * 1024;
/// What a prepared statement takes besides what its text and its columns bring.
pub(crate) const STATEMENT_BYTES: usize = 4 * 1024;
/// Bytes of a plan for each byte of the statement.
pub(crate) const PLAN_BYTES_PER_TEXT_BYTE: usize = 32;
/// Bytes of a plan and a description for each column that a statement gives.
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
/// Password checks that wait for their turn; above it logins are refused.
pub(crate) const LOGINS_WAITING_MAX: usize = 32;
/// How long a stopping door waits for queries in flight.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after the system refused to accept a connection (no file descriptors left).
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const _: () = assert!(
    model::limits::SQL_BYTES_MAX * PLAN_BYTES_PER_TEXT_BYTE + STATEMENT_BYTES < STATEMENTS_SESSION_BYTES_MAX,
    "the longest statement can be prepared"
);
const _: () =
    assert!(MESSAGE_BYTES_MAX > model::limits::SQL_BYTES_MAX, "the longest statement fits into a message");

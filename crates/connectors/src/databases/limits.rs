//! Bounds of clients of databases.

use std::time::Duration;

/// How long a client waits for a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks at the addresses of a server.
pub(crate) const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);
/// How long a client waits for the answer to a statement.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Rows that one statement writes.
pub(crate) const ROWS_PER_STATEMENT_MAX: usize = 500;
/// Values that one statement of MySQL has: its protocol counts them in 16 bits.
pub(crate) const VALUES_PER_STATEMENT_MAX: usize = 65_535;
/// Bytes of the name of a table or a column: PostgreSQL cuts longer ones.
pub(crate) const NAME_BYTES_MAX: usize = 63;
/// Rows of a page that is read.
pub(crate) const READ_ROWS_MAX: usize = 1_000;
/// Fewest rows of a page. Without a key column a page needs a row of the next time to show that the rows of its time are complete.
pub(crate) const READ_ROWS_MIN: usize = 2;
/// Bytes of a page if all its texts are as long as they can be. Two such rows may have more.
pub(crate) const READ_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Columns of a table or a query that is read.
pub(crate) const READ_COLUMNS_MAX: usize = 512;
/// Characters of a cause that is shown.
pub(crate) const CAUSE_CHARACTERS_MAX: usize = 500;
/// Rows that a table may have beyond a `history-size` in rows before the oldest are deleted; a tenth of the count if that is more.
pub(crate) const HISTORY_ROWS_OVER_MIN: usize = 100;
/// Time between two deletions of rows that are older than a `history-size`.
pub(crate) const HISTORY_INTERVAL: Duration = Duration::from_secs(60);

//! Every limit of imports, with the reason for its value.

use std::time::Duration;

/// Bytes at the beginning of a CSV file in which the delimiter is looked for.
pub(crate) const CSV_HEAD_BYTES: u64 = 64 * 1024;
/// Longest row of a CSV file. Without a limit, a missing closing quote would read the whole file into memory. A cell has at
/// most 64 KiB by default.
pub(crate) const CSV_ROW_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rows of one file that are remembered to find repeated ones, at most 16 bytes each.
pub(crate) const IMPORT_SEEN_MAX: usize = 8 * 1024 * 1024;
/// Devices that one import may name.
pub(crate) const IMPORT_DEVICES_MAX: usize = 100_000;

/// Rows of one request of an import.
pub(crate) const IMPORT_ROWS: usize = 500;
/// Bytes of one request of an import, well below the default limit of a server.
pub(crate) const IMPORT_BYTES: usize = 512 * 1024;
/// Rows of an import into a table that are made durable together.
pub(crate) const IMPORT_PIECE_ROWS: usize = 64 * 1024;
/// Pieces that are read while the last one is made durable.
pub(crate) const IMPORT_PIECES_AHEAD: usize = 2;
/// Bytes of a piece of such an import, well below the limit of the bulk import of a server.
pub(crate) const IMPORT_PIECE_BYTES: usize = 8 * 1024 * 1024;
/// Cells of a piece of line protocol or CSV, empty ones too. In line protocol a few bytes can name a new field, whose column has a
/// cell for each row.
pub(crate) const IMPORT_CELLS_MAX: usize = 8 * 1024 * 1024;
/// Unpacked bytes of a Parquet file in memory: a few kilobytes can unpack to gigabytes.
pub(crate) const IMPORT_HELD_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Attempts of a request of an import when the server is busy or does not answer.
pub(crate) const IMPORT_ATTEMPTS_MAX: u32 = 20;
/// Pause before a retry if the server names none.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a retry, also if the server requests a longer one.
pub(crate) const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

const _: () = assert!(IMPORT_ROWS <= model::limits::BATCH_ROWS_MAX, "a request of an import is one batch");

//! Backups: the list that a finished one ends with, and the stream in which a store's files travel.

mod digest;
mod list;
mod stream;

pub use digest::{Digest, Sums};
pub use list::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, is_inside};
pub use stream::{Extra, stream_bytes, write_stream};

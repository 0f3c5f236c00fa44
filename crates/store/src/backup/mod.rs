//! Backups: the list of the files, and the stream that carries the files of a store.

mod digest;
mod keys;
mod list;
mod stream;

pub use digest::{Digest, Sums};
pub use keys::{KEYS_DIRECTORY, is_keys_file, is_keys_table};
pub use list::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, is_inside};
pub use stream::{Extra, stream_bytes, write_stream};

//! A store's files at one moment, for backups.

use crate::StoreError;

/// One file as a backup sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// Path in the store's directory, with `/` between its parts.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// CRC-32C of all bytes as the store knows it, without having read them now; `None` where it keeps none.
    pub crc: Option<u32>,
}

/// Files that hold every row that was acknowledged before they were taken, and stay as they are while this lives.
///
/// Together they are a store's directory: whoever writes them into an empty one, in this order, can open it.
pub trait StoreFiles: Send + Sync {
    /// The files. The one that makes the others count is the first, because a reader needs it to check them; in a new
    /// directory it must be written last.
    fn files(&self) -> &[StoreFile];

    /// Reads from the file with that index; fewer bytes than asked only at its end.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be read or is shorter than it was.
    fn read_at(&self, file: usize, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError>;
}

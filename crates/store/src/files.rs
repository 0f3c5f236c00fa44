//! The files of a store at one moment, for backups.

use crate::StoreError;

/// One file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// Path in the directory of the store, with `/` between the components.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The CRC-32C of all bytes that the store has recorded; `None` where it records none. The store does not read the
    /// file for it.
    pub crc: Option<u32>,
}

/// Files that contain every row that was acknowledged before the call. They do not change while this value lives.
///
/// Together they are the directory of a store. Written into an empty directory, they can be opened as a store.
pub trait StoreFiles: Send + Sync {
    /// The files. The first one is the manifest, because a reader needs it to check the others. In a new directory it must
    /// be written last.
    fn files(&self) -> &[StoreFile];

    /// Reads from the file with this index. Reads fewer bytes than the buffer has only at the end of the file.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be read or has become shorter.
    fn read_at(&self, file: usize, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError>;
}

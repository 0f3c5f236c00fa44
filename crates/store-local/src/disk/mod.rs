//! The whole outside world of the store, small enough to be faked in a test.
//!
//! The promises are those of a POSIX file system and no more: what was written is certain only after
//! [`DiskFile::sync_data`], and a new, renamed or removed name only after [`Disk::sync_dir`].

pub mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; created empty, or emptied if it exists.
    Create,
}

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file itself.
    File,
    /// A directory itself.
    Directory,
    /// A symbolic link, a device, a pipe.
    Other,
}

/// A directory tree that survives the process.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name in place of whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file one more name, which must be free. Not all file systems can.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// What stands under a name; links are not followed.
    fn kind(&self, path: &Path) -> io::Result<EntryKind>;
    /// Names of the files in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory and its parents unless they exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the directory for this process until the returned guard is dropped.
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, LockError>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Reads at `offset`; fewer bytes than asked only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes at `offset`, growing the file if needed. After an error any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes content and length durable. After an error nothing is known about unsynced bytes; never retry.
    fn sync_data(&self) -> io::Result<()>;
    /// Sets the length.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The length.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Keeps other processes out while it lives.
pub trait DiskLock: Send + Sync {}

/// Why a directory could not be taken.
#[derive(Debug)]
pub enum LockError {
    /// Somebody has it; the text names whom, such as "process 4711".
    Held(String),
    /// The operating system refused.
    Io(io::Error),
}

/// Reads a whole file.
pub(crate) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Where each kind of file lives in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) parts: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), log: root.join("log"), parts: root.join("parts") }
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.root.join("manifest")
    }

    pub(crate) fn manifest_new(&self) -> PathBuf {
        self.root.join("manifest.tmp")
    }

    pub(crate) fn series(&self) -> PathBuf {
        self.root.join("series")
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.log.join(format!("{number:016x}.log"))
    }

    /// How far rows were acknowledged.
    pub(crate) fn acknowledged(&self) -> PathBuf {
        self.log.join("acknowledged")
    }

    pub(crate) fn spare(&self) -> PathBuf {
        self.log.join("spare")
    }

    /// Where a segment that is not needed any more waits to be used again.
    pub(crate) fn old_spare(&self, number: u64) -> PathBuf {
        self.log.join(format!("{number:016x}.spare"))
    }

    pub(crate) fn spare_new(&self) -> PathBuf {
        self.log.join("spare.tmp")
    }

    pub(crate) fn part(&self, id: u64) -> PathBuf {
        self.parts.join(format!("{id:016x}.parquet"))
    }

    pub(crate) fn part_new(&self, id: u64) -> PathBuf {
        self.parts.join(format!("{id:016x}.parquet.tmp"))
    }
}

/// The number in a file name such as `000000000000002a.log`.
pub(crate) fn numbered(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

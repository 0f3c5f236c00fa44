//! The disk as the store sees it: a trait that is small enough for a fake in tests.
//!
//! The trait promises what a POSIX file system promises, and no more: written bytes are durable only after
//! [`DiskFile::sync_data`], and a new, renamed or removed name only after [`Disk::sync_dir`].

pub mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reads. The file must exist.
    Read,
    /// For reads and writes. The file must exist.
    Write,
    /// For reads and writes. Creates the file, or empties it if it exists.
    Create,
}

/// The kinds of directory entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A plain file.
    File,
    Directory,
    /// A symbolic link, a device or a pipe.
    Other,
}

/// A file system.
pub trait Disk: Send + Sync + 'static {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, and replaces the file that has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, which must be free. Not all file systems support this.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// The kind of the entry with this name. Does not follow links.
    fn kind(&self, path: &Path) -> io::Result<EntryKind>;
    /// The names of the files in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory and its parents, unless they exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks the directory for this process, until the caller drops the returned guard.
    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, LockError>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Reads at `offset`. Reads fewer bytes than the buffer has only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes at `offset`. The file grows if necessary. After an error any of the bytes may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes content and length durable. After an error the state of unsynced bytes is unknown, and the caller must not
    /// retry.
    fn sync_data(&self) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A lock of a directory. Other processes cannot lock the directory while this value lives.
pub trait DiskLock: Send + Sync {}

/// Why a directory could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process has the lock; its name, such as "process 4711".
    Held(String),
    /// The operating system returned an error.
    Io(io::Error),
}

/// Reads a whole file.
pub(crate) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The paths of the files in a data directory.
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

    /// The note about acknowledged rows.
    pub(crate) fn acknowledged(&self) -> PathBuf {
        self.log.join("acknowledged")
    }

    pub(crate) fn spare(&self) -> PathBuf {
        self.log.join("spare")
    }

    /// The name of a recycled segment until it is used again.
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

//! A disk whose speed the test controls: chosen operations wait until the test releases them. Nothing here sleeps.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use store_local::disk::{Disk, DiskFile, DiskLock, EntryKind, LockError, OpenMode};

/// The kinds of disk operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A file is opened in any mode.
    Open,
    /// Bytes are read.
    Read,
    /// Bytes are written or the length is set.
    Write,
    /// A file or directory is synced.
    Sync,
    /// A name is created, changed or removed.
    Name,
}

/// An operation that may wait.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// The kind of the operation.
    pub act: Act,
    /// The file, by the name under which it was opened.
    pub path: &'a Path,
    /// The name of the thread; empty without a name.
    pub thread: &'a str,
}

impl Operation<'_> {
    /// Whether a merge reads or writes a part. The edit of the manifest that follows does not count.
    pub fn is_of_merge(&self) -> bool {
        let name = self.path.to_string_lossy();
        self.thread == "store-compact" && (name.ends_with(".parquet") || name.ends_with(".parquet.tmp"))
    }
}

/// A disk that delays the operations of another one.
#[derive(Clone)]
pub struct SlowDisk {
    inner: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    rules: Mutex<Rules>,
    changed: Condvar,
}

#[derive(Default)]
struct Rules {
    made: u64,
    rules: Vec<Rule>,
}

struct Rule {
    id: u64,
    which: Box<dyn Fn(&Operation<'_>) -> bool + Send>,
    /// The number of operations that may still pass.
    passes: usize,
    waiting: usize,
}

/// Holds operations back while it lives. A test must drop it before the store, otherwise the store cannot end.
pub struct HeldOperations {
    id: u64,
    gate: Arc<Gate>,
}

impl SlowDisk {
    /// A disk that is as fast as `inner` until a test holds operations.
    pub fn new(inner: impl Disk) -> Self {
        Self { inner: Arc::new(inner), gate: Arc::default() }
    }

    /// Makes the operations for which `which` is true wait while the returned value lives.
    pub fn hold(&self, which: impl Fn(&Operation<'_>) -> bool + Send + 'static) -> HeldOperations {
        let mut rules = self.gate.rules.lock();
        let id = rules.made;
        rules.made += 1;
        rules.rules.push(Rule { id, which: Box::new(which), passes: 0, waiting: 0 });
        HeldOperations { id, gate: Arc::clone(&self.gate) }
    }
}

impl HeldOperations {
    /// The number of operations that wait at this moment.
    pub fn waiting(&self) -> usize {
        self.of(|rule| rule.waiting)
    }

    /// Releases this many operations, waiting ones or the next ones.
    pub fn let_pass(&self, operations: usize) {
        self.of(|rule| rule.passes += operations);
        self.gate.changed.notify_all();
    }

    fn of<T>(&self, ask: impl FnOnce(&mut Rule) -> T) -> T {
        let mut rules = self.gate.rules.lock();
        let rule = rules.rules.iter_mut().find(|rule| rule.id == self.id);
        ask(rule.expect("BUG: a rule lives as long as its guard"))
    }
}

impl Drop for HeldOperations {
    fn drop(&mut self) {
        self.gate.rules.lock().rules.retain(|rule| rule.id != self.id);
        self.gate.changed.notify_all();
    }
}

impl Gate {
    fn wait(&self, act: Act, path: &Path) {
        let thread = std::thread::current();
        let operation = Operation { act, path, thread: thread.name().unwrap_or_default() };
        let mut rules = self.rules.lock();
        // The first matching rule decides.
        while let Some(rule) = rules.rules.iter_mut().find(|rule| (rule.which)(&operation)) {
            if rule.passes > 0 {
                rule.passes -= 1;
                return;
            }
            rule.waiting += 1;
            let id = rule.id;
            self.changed.wait(&mut rules);
            if let Some(rule) = rules.rules.iter_mut().find(|rule| rule.id == id) {
                rule.waiting -= 1;
            }
        }
    }
}

impl fmt::Debug for SlowDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowDisk").finish_non_exhaustive()
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.gate.wait(Act::Open, path);
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(SlowFile { inner, path: path.to_owned(), gate: Arc::clone(&self.gate) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.gate.wait(Act::Name, from);
        self.inner.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.gate.wait(Act::Name, from);
        self.inner.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.gate.wait(Act::Name, path);
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.gate.wait(Act::Sync, dir);
        self.inner.sync_dir(dir)
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        self.inner.kind(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, LockError> {
        self.inner.lock(path)
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.wait(Act::Read, &self.path);
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.gate.wait(Act::Write, &self.path);
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.wait(Act::Sync, &self.path);
        self.inner.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.wait(Act::Write, &self.path);
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}

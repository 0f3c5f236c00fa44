//! The files of a store at one point in time.
//!
//! Invariant 1: the bytes that a checkpoint gives never change while it lives: files that the store still appends to end, for the
//! checkpoint, where they ended when it was made.
//! Invariant 2: nobody writes to a file of a checkpoint. A store opens a copy of it ([`Checkpoint::copy_to`]), never the checkpoint.
//! Invariant 3: a copy is complete and on the disk when `copy_to` returns.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::KvError;

/// The files of a store at one point in time. A directory with copies of them is the directory of a store with the same content.
pub struct Checkpoint {
    files: Vec<CheckpointFile>,
    /// Dropped last: the links to the files.
    _links: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

/// One file of a checkpoint.
#[derive(Debug)]
pub struct CheckpointFile {
    name: String,
    bytes: u64,
    is_immutable: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The first bytes of a file.
    Linked(PathBuf),
    /// A small file.
    Held(Arc<[u8]>),
}

impl CheckpointFile {
    /// A file that is read from a path: its first `bytes`.
    pub(crate) fn linked(name: String, path: PathBuf, bytes: u64, is_immutable: bool) -> Self {
        Self { name, bytes, is_immutable, content: Content::Linked(path) }
    }

    /// A small file in memory.
    pub(crate) fn held(name: String, content: Vec<u8>) -> Self {
        let bytes = content.len() as u64;
        Self { name, bytes, is_immutable: false, content: Content::Held(content.into()) }
    }

    /// The path in the directory of the store, with `/` between its components.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the store never changes a file of this name. Another opening of the store may use the name again for another file.
    pub fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match &self.content {
            Content::Linked(path) => Box::new(File::open(path)?.take(self.bytes)),
            Content::Held(bytes) => Box::new(io::Cursor::new(Arc::clone(bytes))),
        })
    }

    fn copy_to(&self, target: &Path) -> io::Result<()> {
        if let Content::Linked(path) = &self.content
            && self.is_immutable
            && fs::hard_link(path, target).is_ok()
        {
            return File::open(target)?.sync_all();
        }
        let mut file = File::create_new(target)?;
        let copied = io::copy(&mut self.open()?, &mut file)?;
        if copied != self.bytes {
            let ends = format!("{} ends after {copied} of {} bytes", self.name, self.bytes);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, ends));
        }
        file.sync_all()
    }
}

impl Checkpoint {
    /// A checkpoint of these files. It keeps `links` until it is dropped.
    pub(crate) fn new(files: Vec<CheckpointFile>, links: impl Send + Sync + 'static) -> Self {
        Self { files, _links: Box::new(links) }
    }

    /// All files.
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// Reads a file by its place in [`files`](Self::files). The reader keeps the checkpoint, and opens the file at its first read.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn reader(self: &Arc<Self>, place: usize) -> Box<dyn Read + Send> {
        assert!(place < self.files.len(), "BUG: a checkpoint has no file {place}");
        Box::new(FileReader { checkpoint: Arc::clone(self), place, file: None })
    }

    /// Makes a directory of a store of this checkpoint. Links files that never change, if the file system can; copies the others.
    /// After an error the directory is not a store and can be removed.
    ///
    /// # Errors
    /// [`KvError::Io`], also if the directory exists.
    pub fn copy_to(&self, directory: &Path) -> Result<(), KvError> {
        let failed = |error| KvError::io("copy a checkpoint to", directory, error);
        fs::create_dir(directory).map_err(failed)?;
        let mut directories = BTreeSet::from([directory.to_owned()]);
        for file in &self.files {
            let target = directory.join(&file.name);
            let parents = target.ancestors().skip(1).take_while(|parent| *parent != directory);
            directories.extend(parents.map(Path::to_owned));
            target.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
            file.copy_to(&target).map_err(failed)?;
        }
        directories.extend(directory.parent().filter(|parent| *parent != Path::new("")).map(Path::to_owned));
        directories
            .iter()
            .try_for_each(|directory| File::open(directory).and_then(|directory| directory.sync_all()))
            .map_err(failed)
    }
}

/// Reads one file.
struct FileReader {
    checkpoint: Arc<Checkpoint>,
    place: usize,
    file: Option<Box<dyn Read + Send>>,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.checkpoint.files[self.place].open()?),
        };
        file.read(buffer)
    }
}

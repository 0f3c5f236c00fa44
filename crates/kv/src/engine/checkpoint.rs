//! Makes checkpoints: links to the files of the engine at one point in time.
//!
//! The engine's content is what the lists of tables name, and the journal's batches that are in no table yet. Tables never change. So a
//! checkpoint needs links to the tables, the lists, and the journal up to its end. Nothing is flushed and nothing is copied.
//!
//! Invariant 1: the point in time is the one at which the checkpoint has the lock that orders the commits. Under it no batch is written,
//! so the journal ends behind a whole batch, and no table can have a later one.
//! Invariant 2: under that lock the journal files are linked before the lists are compared. fjall deletes a journal file only after a
//! list names tables with all of its batches, so no batch is missing from both. A batch that is in both is read once: fjall leaves out
//! what a table has.
//! Invariant 3: a list and the links to its tables were made while the checkpoint held that version of the tree, so fjall could not
//! delete the tables in between.
//! Invariant 4: the list of the spaces (`keyspaces/0`) changes only in a commit, when a space is written for the first time.
//! Invariant 5: the directory of the links has nothing but links. It can be removed at any time, also by the next opening after a crash.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::{AbstractTree as _, Keyspace};
use rustix::fs::{SeekFrom, seek};

use super::core::Core;
use crate::checkpoint::{Checkpoint, CheckpointFile};
use crate::{KvError, Space};

/// The directory of the links, in the directory of the store, so that it is in the same file system. fjall ignores it.
const LINKS: &str = "checkpoint";

/// The names that fjall gives its files.
const KEYSPACES: &str = "keyspaces";
const TABLES: &str = "tables";
const CURRENT: &str = "current";
const MARKER: &str = "version";
const LOCK: &str = "lock";
const JOURNAL_EXTENSION: &str = "jnl";
/// The tree that has the list of the spaces.
const SPACES_TREE: &str = "keyspaces/0";

/// Attempts to read a list of tables while fjall replaces it.
const ATTEMPTS_MAX: u32 = 100;

/// Bytes that are read at once to find the end of the journal.
const BLOCK_BYTES: u64 = 64 << 10;

/// The links of the one checkpoint that a store can have at a time.
pub(super) struct Links {
    directory: PathBuf,
    is_taken: Arc<AtomicBool>,
}

impl Links {
    fn make(core: &Core) -> Result<Self, KvError> {
        if core.is_checkpoint_open.swap(true, Ordering::AcqRel) {
            let reason = "a checkpoint of the keys is open; try again when the backup before has ended";
            return Err(KvError::Busy { reason: reason.to_owned() });
        }
        // From here on dropping it gives the place free.
        let links =
            Self { directory: directory_of(&core.directory), is_taken: Arc::clone(&core.is_checkpoint_open) };
        remove(&core.directory)
            .and_then(|()| fs::create_dir(&links.directory))
            .map_err(|error| failed(core, error))?;
        Ok(links)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        if let Err(error) = remove_directory(&self.directory) {
            tracing::warn!(%error, directory = %self.directory.display(), "cannot remove the links of a checkpoint");
        }
        self.is_taken.store(false, Ordering::Release);
    }
}

/// The directory of the links of a store.
pub(super) fn directory_of(store: &Path) -> PathBuf {
    store.join(LINKS)
}

/// Removes the links that a crash has left.
pub(super) fn remove(store: &Path) -> io::Result<()> {
    remove_directory(&directory_of(store))
}

fn remove_directory(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The files of a tree.
struct TreeFiles {
    version: u64,
    files: Vec<CheckpointFile>,
}

/// Makes a checkpoint. Commits wait while the journal is linked, and while the lists are read that have changed meanwhile.
pub(super) fn checkpoint(core: &Core) -> Result<Checkpoint, KvError> {
    checkpoint_after(core, || {})
}

/// Calls `between` after the first look at the lists, before commits wait.
fn checkpoint_after(core: &Core, between: impl FnOnce()) -> Result<Checkpoint, KvError> {
    let links = Links::make(core)?;
    // Held to the end, so that the database is not opened again meanwhile.
    let generation = core.generation()?;
    let mut trees: BTreeMap<Space, TreeFiles> = BTreeMap::new();
    for (space, keyspace) in generation.spaces() {
        trees.insert(space, tree(core, &links, &keyspace)?);
    }
    between();
    let mut files = {
        let _order = core.order.lock();
        core.check_committing()?;
        generation.write_journal().map_err(|failure| core.failed(failure))?;
        let mut files = journal(core, &links).map_err(|error| failed(core, error))?;
        for (space, keyspace) in generation.spaces() {
            let known =
                trees.get(&space).is_some_and(|tree| tree.version == keyspace.tree.current_version().id());
            if !known {
                trees.insert(space, tree(core, &links, &keyspace)?);
            }
        }
        files.extend(list_of_spaces(core, &links).map_err(|error| failed(core, error))?);
        files
    };
    let marker = fs::read(core.directory.join(MARKER)).map_err(|error| failed(core, error))?;
    files.push(CheckpointFile::held(MARKER.to_owned(), marker));
    files.push(CheckpointFile::held(LOCK.to_owned(), Vec::new()));
    files.extend(trees.into_values().flat_map(|tree| tree.files));
    Ok(Checkpoint::new(files, links))
}

fn failed(core: &Core, error: io::Error) -> KvError {
    KvError::io("make a checkpoint of", &core.directory, error)
}

/// The files of the tree of a space, at its present version.
fn tree(core: &Core, links: &Links, keyspace: &Keyspace) -> Result<TreeFiles, KvError> {
    let path = keyspace.path();
    let name = format!("{KEYSPACES}/{}", path.file_name().unwrap_or_default().to_string_lossy());
    for _ in 0..ATTEMPTS_MAX {
        // Waits while fjall writes the next list. The tables of the version stay as long as it is held (invariant 3).
        let version = keyspace.tree.current_version();
        let Some(mut files) = list(path, &name, version.id()).map_err(|error| failed(core, error))? else {
            continue;
        };
        let target = links.directory.join(&name).join(TABLES);
        let linked = fs::create_dir_all(&target).and_then(|()| {
            version
                .iter_tables()
                .map(|table| link(&table.path, &target, &name))
                .collect::<io::Result<Vec<_>>>()
        });
        files.extend(linked.map_err(|error| failed(core, error))?);
        return Ok(TreeFiles { version: version.id(), files });
    }
    Err(KvError::Busy { reason: format!("the files of {name} change too fast for a checkpoint; try again") })
}

/// The list of tables of a version, and the file that names it. `None` if the newest list is of another version.
fn list(path: &Path, name: &str, version: u64) -> io::Result<Option<Vec<CheckpointFile>>> {
    let current = fs::read(path.join(CURRENT))?;
    if current.first_chunk().map(|number| u64::from_le_bytes(*number)) != Some(version) {
        return Ok(None);
    }
    let list = format!("v{version}");
    match fs::read(path.join(&list)) {
        Ok(content) => Ok(Some(vec![
            CheckpointFile::held(format!("{name}/{CURRENT}"), current),
            CheckpointFile::held(format!("{name}/{list}"), content),
        ])),
        // fjall has removed it together with the version.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Links a table. The link may be there already, from the list before.
fn link(table: &Path, target: &Path, name: &str) -> io::Result<CheckpointFile> {
    let number = table.file_name().unwrap_or_default();
    let link = target.join(number);
    match fs::hard_link(table, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let bytes = fs::metadata(&link)?.len();
    Ok(CheckpointFile::linked(format!("{name}/{TABLES}/{}", number.to_string_lossy()), link, bytes, true))
}

/// The tree of the list of spaces (invariant 4). fjall does not show its version, so all tables are linked: it removes those that its
/// list does not name when it opens the directory.
fn list_of_spaces(core: &Core, links: &Links) -> io::Result<Vec<CheckpointFile>> {
    let path = core.directory.join(SPACES_TREE);
    let current = fs::read(path.join(CURRENT))?;
    let number = current.first_chunk().map(|number| u64::from_le_bytes(*number));
    let number = number.ok_or_else(|| io::Error::other(format!("{SPACES_TREE}/{CURRENT} is too short")))?;
    let mut files = list(&path, SPACES_TREE, number)?
        .ok_or_else(|| io::Error::other(format!("{SPACES_TREE}/v{number} is missing")))?;
    let target = links.directory.join(SPACES_TREE).join(TABLES);
    fs::create_dir_all(&target)?;
    for entry in fs::read_dir(path.join(TABLES))? {
        files.push(link(&entry?.path(), &target, SPACES_TREE)?);
    }
    Ok(files)
}

/// The journal files up to their last batch.
fn journal(core: &Core, links: &Links) -> io::Result<Vec<CheckpointFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(&core.directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != JOURNAL_EXTENSION) {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        let link = links.directory.join(name);
        match fs::hard_link(&path, &link) {
            Ok(()) => {}
            // The tables have all of it (invariant 2).
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        let bytes = end_of_data(&File::open(&link)?)?;
        files.push(CheckpointFile::linked(name.to_string_lossy().into_owned(), link, bytes, false));
    }
    Ok(files)
}

/// The end of the last batch. fjall allocates a journal file with zeros; the last byte of a batch is not zero.
fn end_of_data(file: &File) -> io::Result<u64> {
    let mut end = end_of_last_extent(file)?;
    let mut block = vec![0; BLOCK_BYTES as usize];
    while end > 0 {
        let begin = end.saturating_sub(BLOCK_BYTES);
        let block = &mut block[..(end - begin) as usize];
        file.read_exact_at(block, begin)?;
        if let Some(last) = block.iter().rposition(|byte| *byte != 0) {
            return Ok(begin + last as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// The end of the file without the hole at its end, if the file system tells of holes.
fn end_of_last_extent(file: &File) -> io::Result<u64> {
    let mut end = 0;
    loop {
        match seek(file, SeekFrom::Data(end)).and_then(|data| seek(file, SeekFrom::Hole(data))) {
            Ok(hole) => end = hole,
            // There is no data any more.
            Err(rustix::io::Errno::NXIO) => return Ok(end),
            Err(_) => return Ok(file.metadata()?.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineOptions, EngineStore, KeyValueStore as _, WriteBatch};

    const SPACE: Space = Space::new("a");

    /// fjall may delete a journal file as soon as a list names its records, so the checkpoint must have that list.
    #[test]
    fn a_list_that_changes_before_the_journal_is_linked_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let options = EngineOptions { memtable_bytes: 4 << 10, ..EngineOptions::default() };
        let store = EngineStore::open(directory.path(), &options).unwrap();
        let put = |space: Space, key: &str| {
            let mut batch = WriteBatch::new();
            batch.put(space, key.to_owned(), vec![7; 3_500]);
            while store.commit(&batch).is_err() {
                std::thread::yield_now();
            }
        };
        put(SPACE, "first");
        let version = || {
            let generation = store.core.generation().unwrap();
            generation.known(SPACE).unwrap().tree.current_version().id()
        };
        let before = version();
        let checkpoint = checkpoint_after(&store.core, || {
            for number in 0.. {
                put(SPACE, &format!("{number:05}"));
                if version() > before {
                    break;
                }
            }
            // A space that comes meanwhile is in the checkpoint too.
            put(Space::new("late"), "k");
        });
        let checkpoint = checkpoint.unwrap();
        let list = format!("keyspaces/1/v{before}");
        assert!(checkpoint.files().iter().all(|file| file.name() != list), "the list is an old one");
        assert!(checkpoint.files().iter().any(|file| file.name() == "keyspaces/2/current"));
        let copy = directory.path().join("copy");
        checkpoint.copy_to(&copy).unwrap();
        let copy = EngineStore::open(&copy, &options).unwrap();
        for (space, key) in [(SPACE, "first"), (SPACE, "00000"), (Space::new("late"), "k")] {
            assert!(copy.get(space, key.as_bytes()).unwrap().is_some(), "{key}");
        }
    }

    #[test]
    fn the_end_of_the_data_is_found_before_zeros_and_holes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.jnl");
        for (data, zeros, hole) in
            [(0, 0, 0), (0, 0, 1 << 20), (1, 0, 0), (70_000, 200_000, 1 << 20), (3, 65_536, 0)]
        {
            let mut content = vec![5_u8; data];
            content.resize(data + zeros, 0);
            fs::write(&path, content).unwrap();
            let file = File::options().write(true).read(true).open(&path).unwrap();
            file.set_len((data + zeros + hole) as u64).unwrap();
            assert_eq!(end_of_data(&file).unwrap(), data as u64, "{data} {zeros} {hole}");
        }
    }
}

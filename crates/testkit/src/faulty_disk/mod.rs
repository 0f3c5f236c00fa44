//! A disk in memory that keeps exactly the promises of POSIX, and fails on command.
//!
//! Written bytes certainly survive a power cut only if their file was synced after the write. A new, renamed or removed name
//! certainly survives only if its directory was synced afterwards. For unsynced changes the test chooses ([`Survivors`]):
//! none survive, all survive, or a random subset of the sectors and the first few of the name changes.
//!
//! Every call that writes, syncs or changes a name is an *operation* and has a number. So a test can run a workload once to
//! count the operations, and then cut the power at each.

mod content;
mod survivors;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use store_local::disk::{Disk, DiskFile, DiskLock, EntryKind, LockError, OpenMode};

use content::{Content, Dice};
pub use survivors::Survivors;

/// A disk that a store and its test share.
#[derive(Debug, Clone, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

type FileId = usize;

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<PathBuf, FileId>,
    durable_names: BTreeMap<PathBuf, FileId>,
    /// Name changes that no directory sync covers yet, oldest first.
    unsynced_names: Vec<NameChange>,
    directories: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    operations: u64,
    faults: Faults,
}

#[derive(Debug, Default)]
struct Faults {
    power_is_off: bool,
    cut_power_at: Option<u64>,
    /// An operation, and the error number with which it fails.
    fail_at: Option<(u64, i32)>,
    no_descriptors: bool,
    fail_syncs: bool,
    read_only: bool,
    capacity_bytes: Option<u64>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, FileId),
    Remove(PathBuf),
}

impl FaultyDisk {
    /// An empty, healthy disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of operations so far. The next operation has this number.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Cuts the power in the middle of the operation with this number. The [`Survivors`] decide how far the operation takes
    /// effect. This call and all later ones fail.
    pub fn cut_power_at(&self, operation: u64) {
        self.state.lock().faults.cut_power_at = Some(operation);
    }

    /// Cuts the power now.
    pub fn cut_power(&self) {
        self.state.lock().faults.power_is_off = true;
    }

    /// Ends all faults and keeps the disk as it is: the process died, and its unsynced changes are still unsynced.
    pub fn heal(&self) {
        self.state.lock().faults = Faults::default();
    }

    /// Makes the operation with this number fail without effect, with this error number (such as `libc::EIO`).
    pub fn fail_at(&self, operation: u64, errno: i32) {
        self.state.lock().faults.fail_at = Some((operation, errno));
    }

    /// Makes all opens of files and directories fail as if the process had no descriptors left; `false` ends that.
    pub fn take_descriptors(&self, take: bool) {
        self.state.lock().faults.no_descriptors = take;
    }

    /// Makes all syncs fail; `false` ends that.
    pub fn fail_syncs(&self, fail: bool) {
        self.state.lock().faults.fail_syncs = fail;
    }

    /// Makes all changes of the disk fail; `false` ends that.
    pub fn set_read_only(&self, read_only: bool) {
        self.state.lock().faults.read_only = read_only;
    }

    /// Limits the sum of all file lengths. Growth beyond the limit fails as on a full disk. `None` removes the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().faults.capacity_bytes = bytes;
    }

    /// The sum of all file lengths.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// The paths of all files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state.lock().names.keys().cloned().collect()
    }

    /// The content of a file as programs see it.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn content(&self, path: &Path) -> Vec<u8> {
        let state = self.state.lock();
        state.files[state.names[path]].visible().to_vec()
    }

    /// Replaces the content of a file durably, to simulate damage or an older file.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn set_content(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        let file = state.names[path];
        state.files[file] = Content::durable(bytes);
    }

    /// Creates a file durably.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        state.files.push(Content::durable(bytes));
        let file = state.files.len() - 1;
        state.names.insert(path.to_owned(), file);
        state.durable_names.insert(path.to_owned(), file);
    }

    /// Deletes a file durably, like an operator.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn delete(&self, path: &Path) {
        let mut state = self.state.lock();
        assert!(state.names.remove(path).is_some(), "{} is not there", path.display());
        state.durable_names.remove(path);
    }

    /// The disk after the power is back: a new, healthy disk with the surviving content. Handles of this disk fail.
    pub fn reboot(&self, survivors: Survivors) -> Self {
        let mut state = self.state.lock();
        state.faults.power_is_off = true;
        let mut dice = Dice::new(match survivors {
            Survivors::Random(seed) => seed,
            Survivors::Synced | Survivors::All => 0,
        });
        let names = state.surviving_names(survivors, &mut dice);
        let files: Vec<Content> =
            state.files.iter().map(|file| file.after_cut(survivors, &mut dice)).collect();
        let rebooted = State {
            files,
            durable_names: names.clone(),
            names,
            directories: state.directories.clone(),
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(rebooted)) }
    }
}

impl State {
    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<FileId> = self.names.values().copied().collect();
        named.into_iter().map(|file| self.files[file].visible().len() as u64).sum()
    }

    fn surviving_names(&self, survivors: Survivors, dice: &mut Dice) -> BTreeMap<PathBuf, FileId> {
        let kept = match survivors {
            Survivors::Synced => 0,
            Survivors::All => self.unsynced_names.len(),
            Survivors::Random(_) => dice.below(self.unsynced_names.len() + 1),
        };
        let mut names = self.durable_names.clone();
        self.unsynced_names[..kept].iter().for_each(|change| change.apply(&mut names));
        names
    }

    fn check_descriptors(&mut self) -> io::Result<()> {
        if self.faults.no_descriptors {
            self.operations += 1;
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        if self.faults.power_is_off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// Counts an operation. `Ok(true)` when the power is cut in the middle of it.
    fn begin_operation(&mut self) -> io::Result<bool> {
        self.alive()?;
        let number = self.operations;
        self.operations += 1;
        if self.faults.read_only {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        if let Some((_, errno)) = self.faults.fail_at.filter(|(at, _)| *at == number) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if self.faults.cut_power_at.is_some_and(|at| number >= at) {
            self.faults.power_is_off = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn change_names(&mut self, changes: Vec<NameChange>) -> io::Result<()> {
        let cut = self.begin_operation()?;
        for change in changes {
            change.apply(&mut self.names);
            self.unsynced_names.push(change);
        }
        end_operation(cut)
    }

    fn check_room(&self, file: FileId, new_len: u64) -> io::Result<()> {
        let Some(capacity) = self.faults.capacity_bytes else { return Ok(()) };
        let old_len = self.files[file].visible().len() as u64;
        let growth = new_len.saturating_sub(old_len);
        if growth > 0 && self.used_bytes() + growth > capacity {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn create(&mut self, path: &Path) -> io::Result<FileId> {
        if let Some(file) = self.names.get(path).copied() {
            let cut = self.begin_operation()?;
            self.files[file].set_len(0);
            return end_operation(cut).map(|()| file);
        }
        self.files.push(Content::default());
        let file = self.files.len() - 1;
        self.change_names(vec![NameChange::Set(path.to_owned(), file)])?;
        Ok(file)
    }

    fn find(&self, path: &Path) -> io::Result<FileId> {
        self.names.get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, FileId>) {
        match self {
            Self::Set(path, file) => drop(names.insert(path.clone(), *file)),
            Self::Remove(path) => drop(names.remove(path)),
        }
    }

    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Set(path, _) | Self::Remove(path) => path.parent(),
        }
    }
}

fn end_operation(cut: bool) -> io::Result<()> {
    if cut { Err(io::Error::other("the power went off")) } else { Ok(()) }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.alive()?;
        state.check_descriptors()?;
        let file = match mode {
            OpenMode::Create => state.create(path)?,
            OpenMode::Write if state.faults.read_only => return Err(ErrorKind::ReadOnlyFilesystem.into()),
            OpenMode::Read | OpenMode::Write => state.find(path)?,
        };
        Ok(Arc::new(FaultyFile { state: Arc::clone(&self.state), file, writable: mode != OpenMode::Read }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.find(from)?;
        // One change in the journal of the file system: no reader sees both names or none.
        state.change_names(vec![NameChange::Remove(from.to_owned()), NameChange::Set(to.to_owned(), file)])
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.find(from)?;
        if state.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.change_names(vec![NameChange::Set(to.to_owned(), file)])
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.find(path)?;
        state.change_names(vec![NameChange::Remove(path.to_owned())])
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_descriptors()?;
        let cut = state.begin_operation()?;
        end_operation(cut)?;
        if state.faults.fail_syncs {
            return Err(io::Error::other("the directory cannot be synced"));
        }
        let changes = std::mem::take(&mut state.unsynced_names);
        let (synced, left): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.directory() == Some(dir));
        synced.iter().for_each(|change| change.apply(&mut state.durable_names));
        state.unsynced_names = left;
        Ok(())
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        let state = self.state.lock();
        state.alive()?;
        match (state.names.contains_key(path), state.directories.contains(path)) {
            (true, _) => Ok(EntryKind::File),
            (_, true) => Ok(EntryKind::Directory),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive()?;
        if !state.directories.contains(dir) {
            return Err(ErrorKind::NotFound.into());
        }
        let inside = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside
            .filter_map(|path| path.file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        if !state.directories.contains(dir) && state.faults.read_only {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        // A store creates directories once at the beginning. Their names count as durable.
        state.directories.extend(dir.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn DiskLock>, LockError> {
        let mut state = self.state.lock();
        state.alive().map_err(LockError::Io)?;
        if state.faults.read_only {
            return Err(LockError::Io(ErrorKind::ReadOnlyFilesystem.into()));
        }
        if !state.locked.insert(path.to_owned()) {
            return Err(LockError::Held("another store of this test".into()));
        }
        Ok(Box::new(Lock { state: Arc::clone(&self.state), path: path.to_owned() }))
    }
}

struct Lock {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl DiskLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.state.lock().locked.remove(&self.path);
    }
}

struct FaultyFile {
    state: Arc<Mutex<State>>,
    file: FileId,
    writable: bool,
}

impl FaultyFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(ErrorKind::PermissionDenied.into()) }
    }
}

impl DiskFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state.lock();
        state.alive()?;
        let bytes = state.files[self.file].visible();
        let start = bytes.len().min(offset as usize);
        let len = buffer.len().min(bytes.len() - start);
        buffer[..len].copy_from_slice(&bytes[start..start + len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.state.lock();
        state.alive()?;
        if let Err(full) = state.check_room(self.file, offset + bytes.len() as u64) {
            state.operations += 1;
            return Err(full);
        }
        let cut = state.begin_operation()?;
        state.files[self.file].write(bytes, offset as usize);
        end_operation(cut)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let cut = state.begin_operation()?;
        end_operation(cut)?;
        if state.faults.fail_syncs {
            // The kernel drops the bytes that it could not write. The success of a later sync does not cover them.
            state.files[self.file].forget_unsynced();
            return Err(io::Error::other("the file cannot be synced"));
        }
        state.files[self.file].sync();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.state.lock();
        state.alive()?;
        if let Err(full) = state.check_room(self.file, len) {
            state.operations += 1;
            return Err(full);
        }
        let cut = state.begin_operation()?;
        state.files[self.file].set_len(len as usize);
        end_operation(cut)
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        state.alive()?;
        Ok(state.files[self.file].visible().len() as u64)
    }
}

#[cfg(test)]
mod tests;

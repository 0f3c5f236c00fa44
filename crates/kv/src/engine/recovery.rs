//! Opens the database again in place after a lack of space, quota, descriptors or memory.
//!
//! fjall refuses all writes after any failed one. The steps, in this order:
//!
//! 1. The journal is synced on the descriptors that were open before, and the file system is asked for lost writes. If one was lost,
//!    the store is sealed: what the page cache has may not be on the disk.
//! 2. Wait until there is room. Reads go on meanwhile.
//! 3. The database is closed: open scans and snapshots are taken back, and reads are busy. The next opening waits until the process has
//!    no descriptor of the files any more, so nothing of the old database can write to them.
//! 4. The database is opened. fjall cuts off what was half written: that was refused.
//! 5. The effects of all batches that are not durable are written as *one* batch. Some may be in the journal already. One batch is whole
//!    or absent: if the process ends here, the directory has a prefix of the batches or all of them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::core::Core;
use super::failure::Failure;
use super::generation::Generation;
use super::journal::JournalFiles;
use super::state::Suspension;
use crate::KvError;

/// The first pause; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// During a lack, and while the store closes, the pauses do not grow beyond those of this number of attempts.
const SHORT_ATTEMPTS: u32 = 2;

/// A time without a failure after which the failures before do not count.
const GOOD_TIME: Duration = Duration::from_secs(60);

/// Openings one after the other that failed without a lack. Then the disk is broken in another way. The pauses are more than a minute
/// together.
const ATTEMPTS_MAX: u32 = 20;

/// Attempts after the store was told to close.
const ATTEMPTS_WHEN_CLOSED: u32 = 20;

/// The longest wait for the end of the old database.
const CLOSING_MAX: Duration = Duration::from_secs(30);

/// The longest wait until fjall has written to files what the journal had.
const SETTLING_MAX: Duration = Duration::from_secs(30);

/// The attempts to open a database again.
#[derive(Default)]
pub(super) struct Recovery {
    attempts: u32,
    attempts_when_closed: u32,
    resumed: Option<Instant>,
}

impl Recovery {
    /// Opens the database again. Returns when it works.
    ///
    /// # Errors
    /// The store must be sealed.
    pub(super) fn recover(&mut self, core: &Core, journal: &mut JournalFiles) -> Result<(), KvError> {
        if self.resumed.take().is_none_or(|resumed| resumed.elapsed() >= GOOD_TIME) {
            self.attempts = 0;
        }
        check_lost_writes(core, journal)?;
        loop {
            self.pause(core)?;
            match attempt(core, journal) {
                Ok(()) => break,
                Err(Failure::Lack(error)) => core.state.lock().suspended = Some(Suspension::of_lack(&error)),
                Err(Failure::Background | Failure::Lasting(KvError::InUse { .. })) => {
                    core.state.lock().suspended = Some(Suspension::of_background(&core.directory));
                }
                Err(Failure::Lasting(error)) => return Err(error),
            }
        }
        self.resumed = Some(Instant::now());
        resume(core);
        Ok(())
    }

    /// Waits before an attempt, but not before the first one.
    fn pause(&mut self, core: &Core) -> Result<(), KvError> {
        let mut state = core.state.lock();
        let suspension = state.suspended.as_ref();
        if suspension.is_some_and(|suspension| suspension.is_lack) {
            self.attempts = self.attempts.min(SHORT_ATTEMPTS);
        }
        let mut pause = PAUSE.saturating_mul(1 << self.attempts >> 1).min(PAUSE_MAX);
        if state.closed {
            self.attempts_when_closed += 1;
            pause = PAUSE;
        }
        if self.attempts > ATTEMPTS_MAX || self.attempts_when_closed > ATTEMPTS_WHEN_CLOSED {
            let cause = suspension.map_or_else(String::new, |suspension| suspension.reason.clone());
            return Err(KvError::Sealed { cause });
        }
        if self.attempts > 0 {
            core.work.wait_for(&mut state, pause);
        }
        self.attempts += 1;
        Ok(())
    }
}

/// Step 1. The journal has all batches that were told to be durable.
fn check_lost_writes(core: &Core, journal: &JournalFiles) -> Result<(), KvError> {
    let synced = journal.sync().and_then(|()| Ok(rustix::fs::syncfs(&core.directory_file)?));
    synced.map_err(|error| KvError::io("sync the files of", &core.directory, error))
}

/// Steps 2 to 5.
fn attempt(core: &Core, journal: &mut JournalFiles) -> Result<(), Failure> {
    if let Some(reason) = core.room.lack_for(0) {
        return Err(Failure::Lack(KvError::Busy { reason }));
    }
    core.room.probe().map_err(|error| Failure::of_io(&core.directory, "allocate a file in", error))?;
    close(core, journal)?;
    let generation = Generation::open(&core.directory, &core.options)?;
    generation.settle(SETTLING_MAX)?;
    if let Some(reason) = generation.backlog_of_all() {
        return Err(Failure::Lack(KvError::Busy { reason }));
    }
    let kept = core.state.lock().kept();
    generation.write(&kept)?;
    *core.generation.write() = Some(Arc::new(generation));
    Ok(())
}

/// Step 3. Does nothing if the database is closed already.
fn close(core: &Core, journal: &mut JournalFiles) -> Result<(), Failure> {
    let generation = {
        // A commit that runs holds the database. Later ones are refused.
        let _order = core.order.lock();
        core.generation.write().take()
    };
    if let Some(mut generation) = generation {
        // Single reads and the keeper hold it for a short time.
        while let Err(shared) = Arc::try_unwrap(generation) {
            generation = shared;
            std::thread::sleep(Duration::from_millis(1));
        }
        core.readers.revoke();
    }
    *journal = JournalFiles::new(&core.directory);
    wait_for_descriptors(&core.directory)
}

/// Waits until the process has no file of the directory open. fjall's threads may outlive its handles by a moment, and its journal writes
/// its buffer when the last of them ends.
fn wait_for_descriptors(directory: &Path) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        match open_files(directory) {
            Ok(0) => return Ok(()),
            // Without the list of the system only time can help.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(500));
                return Ok(());
            }
            Err(error) => return Err(Failure::of_io(directory, "list the open files of", error)),
            Ok(_) if began.elapsed() > CLOSING_MAX => {
                return Err(Failure::Lasting(KvError::InUse { path: directory.to_owned() }));
            }
            Ok(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// The number of descriptors of this process of files below a directory, without those of a checkpoint.
fn open_files(directory: &Path) -> io::Result<usize> {
    let directory = directory.canonicalize()?;
    // A backup may read from a checkpoint for long; it has links of its own, which the database does not use.
    let links = super::checkpoint::directory_of(&directory);
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        // A descriptor may be closed meanwhile.
        let Ok(target) = std::fs::read_link(entry?.path()) else { continue };
        count +=
            usize::from(target != directory && target.starts_with(&directory) && !target.starts_with(&links));
    }
    Ok(count)
}

fn resume(core: &Core) {
    let mut state = core.state.lock();
    let cause = state.suspended.take().map(|suspension| suspension.reason);
    tracing::info!(cause, "the key-value store accepts writes again");
    state.end_busy();
    drop(state);
    core.chores.notify_all();
    core.notify_watchers();
}

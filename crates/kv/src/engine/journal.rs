//! The journal files of the engine, to sync them without the engine's lock.
//!
//! The engine's own sync holds the lock that commits need. So the committer opens the files itself: `fdatasync` writes all data of
//! a file, also what another descriptor wrote. Before the engine begins a new file, it syncs the old file and the directory.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The journal files of a directory.
#[derive(Debug)]
pub(super) struct JournalFiles {
    directory: PathBuf,
    open: HashMap<OsString, File>,
}

impl JournalFiles {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: HashMap::new() }
    }

    /// Syncs the data of the open journal files.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.open.values().try_for_each(File::sync_data)
    }

    /// Opens new files and closes those that the engine has deleted. After an error it can be called again.
    pub(super) fn follow(&mut self) -> io::Result<()> {
        let mut present = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            if Path::new(&name).extension().is_some_and(|extension| extension == "jnl") {
                present.push(name);
            }
        }
        self.open.retain(|name, _| present.contains(name));
        for name in present {
            if self.open.contains_key(&name) {
                continue;
            }
            match File::options().write(true).open(self.directory.join(&name)) {
                Ok(file) => drop(self.open.insert(name, file)),
                // The engine deletes a file when its content is in the trees, which are synced.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

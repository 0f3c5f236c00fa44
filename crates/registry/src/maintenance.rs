//! Copies and checks of the registry's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::error::RegistryError;
use super::handle::Registry;

/// Most problems that SQLite reports.
const PROBLEMS_MAX: u32 = 20;

impl Registry {
    /// Problems in the structure of the file, in SQLite's words. Changes wait for the check.
    pub fn problems(&self) -> Result<Vec<String>, RegistryError> {
        problems(&self.writer.lock()).map_err(RegistryError::sqlite("check the registry", &self.path))
    }

    /// Copies the registry into a file without a name. Changes wait for the copy.
    pub fn copy(&self) -> Result<File, RegistryError> {
        copy(&self.writer.lock(), &self.path)
    }
}

/// Like [`Registry::problems`], for a file that no server has open. A missing file has no problems.
pub fn problems_of(path: &Path) -> Result<Vec<String>, RegistryError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        problems(&Connection::open_with_flags(path, flags)?)
    };
    open().map_err(RegistryError::sqlite("check the registry", path))
}

/// Like [`Registry::copy`], for a file that no server has open.
pub fn copy_for_backup(path: &Path) -> Result<File, RegistryError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(RegistryError::sqlite("open the registry", path))?;
    copy(&connection, path)
}

fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({PROBLEMS_MAX})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    found.retain(|line| line != "ok");
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let orphans = statement.query_map([], |row| row.get::<_, String>(0))?;
    for table in orphans.take(PROBLEMS_MAX as usize) {
        found.push(format!("a row of the table {} refers to one that is not there", table?));
    }
    Ok(found)
}

/// Copies into a file beside the registry and unlinks it, so the file ends with its handle.
fn copy(connection: &Connection, path: &Path) -> Result<File, RegistryError> {
    let beside: PathBuf = path.with_extension("copy");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RegistryError::io("remove", &beside)(error));
        }
        _ => {}
    }
    // Created here, so only its owner can read it. SQLite fills an empty file.
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&beside);
    let file = file.map_err(RegistryError::io("create", &beside))?;
    let copied = connection.execute("VACUUM INTO ?1", [beside.to_string_lossy()]);
    let copied = copied.map_err(RegistryError::sqlite("copy the registry", path));
    std::fs::remove_file(&beside).map_err(RegistryError::io("remove", &beside))?;
    copied.map(|_| file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::NewDevice;

    #[test]
    fn a_copy_is_a_registry_with_everything_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.sqlite");
        let (registry, _) = Registry::open(&path).unwrap();
        let new = NewDevice { name: "truck", token: Some("secret"), ..NewDevice::default() };
        registry.add_device(registry.default_tenant(), new).unwrap();
        let copy = |mut file: File, name: &str| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let (copied, _) = Registry::open(&path).unwrap();
            assert!(copied.device_by_name(copied.default_tenant(), "truck").is_some());
        };
        copy(registry.copy().unwrap(), "running");
        assert_eq!(registry.problems().unwrap(), Vec::<String>::new());
        drop(registry);
        copy(copy_for_backup(&path).unwrap(), "stopped");
        assert!(!directory.path().join("registry.copy").exists());
    }

    #[test]
    fn damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.sqlite");
        assert_eq!(problems_of(&path).unwrap(), Vec::<String>::new());
        drop(Registry::open(&path).unwrap());
        assert_eq!(problems_of(&path).unwrap(), Vec::<String>::new());
        let mut bytes = std::fs::read(&path).unwrap();
        // Page headers but for the first page's.
        for page in (4_096..bytes.len()).step_by(4_096) {
            bytes[page..page + 8].fill(0x77);
        }
        std::fs::write(&path, bytes).unwrap();
        assert!(problems_of(&path).map_or(true, |found| !found.is_empty()));
    }
}

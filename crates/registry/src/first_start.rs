//! The administrator's first password, until it is written down.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::RegistryError;
use super::handle::Registry;
use super::{file, random};

/// Name of the file in the data directory that keeps the administrator's first password.
pub const ADMIN_PASSWORD_FILE: &str = "admin-password";

/// The administrator's first password. Print it once and [`keep`](Self::keep) it.
pub struct FirstStart {
    /// Login of the administrator.
    pub login: String,
    /// Random password. Only its hash is in the registry.
    pub password: String,
}

impl fmt::Debug for FirstStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstStart").field("login", &self.login).finish_non_exhaustive()
    }
}

impl FirstStart {
    pub(super) fn begin(registry: &Registry, login: String) -> Result<Self, RegistryError> {
        let password = random::password();
        registry.store_password(&login, &password, false)?;
        Ok(Self { login, password })
    }

    /// Writes the password into [`ADMIN_PASSWORD_FILE`] in `directory`, readable by its owner only, and makes it the lasting
    /// password. Replaces the file of an earlier, interrupted start.
    pub fn keep(&self, registry: &Registry, directory: &Path) -> Result<PathBuf, RegistryError> {
        let path = directory.join(ADMIN_PASSWORD_FILE);
        write_private(&path, &format!("{}\n", self.password))?;
        registry.confirm_first_start()?;
        Ok(path)
    }
}

impl Registry {
    fn confirm_first_start(&self) -> Result<(), RegistryError> {
        let mut writer = self.writer.lock();
        self.commit(&mut writer, "confirm the first password", |transaction| {
            transaction.execute("DELETE FROM setting WHERE key = 'admin_pending'", [])?;
            Ok(())
        })
    }
}

/// Removes the file with the first password, which is no longer valid and would mislead commands.
pub(super) fn forget_kept(registry: &Path) {
    // A failure does not matter: the password in the file is not valid.
    drop(std::fs::remove_file(registry.with_file_name(ADMIN_PASSWORD_FILE)));
}

/// Writes and syncs a temporary file, renames it, and syncs the directory: the file is complete or absent at any moment.
fn write_private(path: &Path, text: &str) -> Result<(), RegistryError> {
    let unfinished = path.with_extension("tmp");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RegistryError::io("remove", &unfinished)(error));
        }
        _ => {}
    }
    // A new file: an existing one could have another mode.
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    written.map_err(RegistryError::io("write", &unfinished))?;
    std::fs::rename(&unfinished, path).map_err(RegistryError::io("rename into", path))?;
    file::sync_directory_of(path)
}

//! The administrator's first password, until somebody has it.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Registry, RegistryError, file, random};

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

    /// Writes the password into [`ADMIN_PASSWORD_FILE`] in `directory`, readable by its owner only, and makes it the
    /// lasting one. Replaces a file that an earlier, interrupted start left there.
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

/// Removes the file with the first password: it is no longer the right one, and a wrong one misleads commands.
pub(super) fn forget_kept(registry: &Path) {
    // Failing is no reason to refuse what was asked: the password in the file opens nothing.
    drop(std::fs::remove_file(registry.with_file_name(ADMIN_PASSWORD_FILE)));
}

/// File, sync, rename, sync of the directory: at any moment the whole text is there or none of it.
fn write_private(path: &Path, text: &str) -> Result<(), RegistryError> {
    let unfinished = path.with_extension("tmp");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RegistryError::io("remove", &unfinished)(error));
        }
        _ => {}
    }
    // A new file, because the mode of one that somebody else put there would stay.
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    written.map_err(RegistryError::io("write", &unfinished))?;
    std::fs::rename(&unfinished, path).map_err(RegistryError::io("rename into", path))?;
    file::sync_directory_of(path)
}

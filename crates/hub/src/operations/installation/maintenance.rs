//! Maintenance of a running installation: a check of all files, and backups.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use store::backup::{BackupList, Extra, stream_bytes, write_stream};
use store::{ByteProgress, CheckReport, Finding, Rewritten, StoreError, StoreFiles};

use crate::caller::{Action, Caller, Forbidden};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::keys_dump::keys_extras;
use crate::registry::{ADMIN_PASSWORD_FILE, Registry, RegistryError, copy_for_backup};

pub use crate::keys_dump::{KEYS_DUMP, keys_findings};

/// Files of a data directory that a backup includes if they exist.
pub const SMALL_FILES: [&str; 2] = ["tacho.toml", ADMIN_PASSWORD_FILE];

/// A backup that is ready to be sent. The store keeps its files unchanged while this lives.
pub struct BackupStream {
    files: Box<dyn StoreFiles>,
    extras: Vec<Extra>,
    have: BackupList,
    created_us: i64,
}

impl BackupStream {
    /// The files of the store, and the other files of the installation in `data`. `registry` is the path of the registry and
    /// `copy` a copy of its content. `keys` is the key-value engine, if there is one. `have` lists the parts and tables that the receiver
    /// has.
    ///
    /// # Errors
    /// [`Error::Store`] when a file cannot be read, [`Error::Kv`] when one of the engine cannot.
    pub fn new(
        files: Box<dyn StoreFiles>,
        data: &Path,
        registry: &Path,
        copy: File,
        keys: Option<&dyn kv::KeyValueStore>,
        have: BackupList,
    ) -> Result<Self, Error> {
        let created_us = system_now().micros();
        let mut extras = Vec::new();
        let registry_name = registry.file_name().unwrap_or_default().to_string_lossy();
        extras.push(extra(&registry_name, copy).map_err(|error| StoreError::io("read", registry, error))?);
        for name in SMALL_FILES {
            let path = data.join(name);
            match File::open(&path).and_then(|file| extra(name, file)) {
                Ok(small) => extras.push(small),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("read", path, error).into()),
            }
        }
        if let Some(keys) = keys {
            extras.extend(keys_extras(keys, &have)?);
        }
        Ok(Self { files, extras, have, created_us })
    }

    /// Bytes of all files of the backup.
    pub fn bytes(&self) -> u64 {
        stream_bytes(self.files.as_ref(), &self.extras, &self.have)
    }

    /// Writes the files as a tar stream.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        write_stream(self.files.as_ref(), self.extras, &self.have, self.created_us, out)
    }
}

fn extra(name: &str, file: File) -> io::Result<Extra> {
    let bytes = file.metadata()?.len();
    Ok(Extra { path: name.to_owned(), bytes, content: Box::new(file), known: None })
}

/// Problems that SQLite reports for the registry's file, as findings.
pub fn registry_findings(path: &Path, problems: Result<Vec<String>, RegistryError>) -> Vec<Finding> {
    let problems = problems.unwrap_or_else(|error| vec![error.to_string()]);
    let finding = |problem: String| {
        Finding::damage(path, None, problem).with(
            "Devices, access tokens and users may be missing or the server may not start. No row of the store is lost by it.",
            "Put the registry of a backup there (`tacho restore` into a new directory) and add the devices that came later.",
        )
    };
    problems.into_iter().map(finding).collect()
}

impl Hub {
    /// Reads all files and verifies their checksums, while the installation serves. It takes as long as reading the files: call it
    /// on a thread that may block.
    ///
    /// # Errors
    /// The caller lacks the permission, or the check could not run. Damage is not an error; the report lists it.
    pub fn check(&self, caller: &Caller, progress: &mut ByteProgress<'_>) -> Result<CheckReport, Error> {
        self.check_installation(caller, Action::Maintain)?;
        let registry: &Registry = self.registry();
        let mut findings = registry_findings(registry.path(), registry.problems());
        findings.extend(keys_findings(&*self.kv, Path::new("keys")));
        let mut report = self.store().check(progress)?;
        report.findings.extend(findings);
        self.audit(caller, "check", &format!("{} findings", report.findings.len()));
        Ok(report)
    }

    /// Writes everything acknowledged so far into files, and keeps the files. Blocks for a flush.
    ///
    /// # Errors
    /// The caller lacks the permission, the store accepts no writes, or a file cannot be read.
    pub fn backup(&self, caller: &Caller, have: BackupList) -> Result<BackupStream, Error> {
        self.check_installation(caller, Action::Maintain)?;
        // Before the flush, so that the backup has the row.
        self.audit(caller, "back up", "");
        let registry = self.registry();
        let data = registry.path().parent().unwrap_or(Path::new("."));
        let copy = registry.copy()?;
        let files = self.store().files()?;
        BackupStream::new(files, data, registry.path(), copy, Some(&*self.kv), have)
    }

    /// Writes all rows in memory into parts. Blocks until that is done.
    ///
    /// # Errors
    /// The caller lacks the permission, the store accepts no writes, or it has no files.
    pub fn flush(&self, caller: &Caller) -> Result<Rewritten, Error> {
        self.check_installation(caller, Action::Maintain)?;
        // Before the flush, so that the parts have the row.
        self.audit(caller, "flush", "");
        Ok(self.store().flush()?)
    }

    /// Merges parts until there is nothing to merge. Blocks until that is done, which may take as long as rewriting all parts.
    ///
    /// # Errors
    /// The errors of [`flush`](Self::flush).
    pub fn compact(&self, caller: &Caller) -> Result<Rewritten, Error> {
        self.check_installation(caller, Action::Maintain)?;
        self.audit(caller, "compact", "");
        Ok(self.store().compact()?)
    }

    /// Checks a permission on the whole installation, which belongs to the default tenant. Every operation on the installation
    /// checks it; a door that begins its answer before the operation checks it first.
    pub fn check_installation(&self, caller: &Caller, action: Action) -> Result<(), Forbidden> {
        caller.check_on(action, self.registry.default_tenant(), None)
    }
}

/// A copy of the registry of a stopped installation.
///
/// # Errors
/// Like [`Registry::open`].
pub fn stopped_registry(path: &Path) -> Result<File, RegistryError> {
    copy_for_backup(path)
}

//! Maintenance of a running installation: a check of all files, backups, exports and imports.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::backup::{BackupList, Extra, stream_bytes, write_stream};
use store::{ByteProgress, CheckReport, Finding, StoreError, StoreFiles, TableStatus};

use crate::bulk::{
    BulkError, Export, ExportRequest, ImportCounts, ImportRules, ParquetBounds, TableColumn, Zone, drop_key,
    import_parquet, table_columns,
};
use crate::clock::system_now;
use crate::hub::Hub;
use crate::registry::{ADMIN_PASSWORD_FILE, Registry, RegistryError, copy_for_backup};

/// Files of a data directory that a backup includes if they exist.
pub const SMALL_FILES: [&str; 2] = ["tacho.toml", ADMIN_PASSWORD_FILE];

/// A backup could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// A backup that is ready to be sent. The store keeps its files unchanged while this lives.
pub struct BackupStream {
    files: Box<dyn StoreFiles>,
    extras: Vec<Extra>,
    have: BackupList,
    created_us: i64,
}

impl BackupStream {
    /// The files of the store, and the other files of the installation in `data`. `registry` is the path of the registry and
    /// `copy` a copy of its content. `have` lists the parts that the receiver has.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a file cannot be read.
    pub fn new(
        files: Box<dyn StoreFiles>,
        data: &Path,
        registry: &Path,
        copy: File,
        have: BackupList,
    ) -> Result<Self, StoreError> {
        let created_us = system_now().micros();
        let mut extras = Vec::new();
        let registry_name = registry.file_name().unwrap_or_default().to_string_lossy();
        extras.push(extra(&registry_name, copy).map_err(|error| StoreError::io("read", registry, error))?);
        for name in SMALL_FILES {
            let path = data.join(name);
            match File::open(&path).and_then(|file| extra(name, file)) {
                Ok(small) => extras.push(small),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("read", path, error)),
            }
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
    Ok(Extra { path: name.to_owned(), bytes, content: Box::new(file) })
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
    /// The check could not run. Damage is not an error; the report lists it.
    pub fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        let registry: &Registry = self.registry();
        let findings = registry_findings(registry.path(), registry.problems());
        let mut report = self.store().check(progress)?;
        report.findings.extend(findings);
        Ok(report)
    }

    /// Writes everything acknowledged so far into files, and keeps the files. Blocks for a flush.
    ///
    /// # Errors
    /// The store accepts no writes, or a file cannot be read.
    pub fn backup(&self, have: BackupList) -> Result<BackupStream, BackupError> {
        let registry = self.registry();
        let data = registry.path().parent().unwrap_or(Path::new("."));
        let copy = registry.copy()?;
        let files = self.store().files()?;
        Ok(BackupStream::new(files, data, registry.path(), copy, have)?)
    }
}

impl Hub {
    /// The status of all tables.
    ///
    /// # Errors
    /// Like [`store::Store::tables`].
    pub fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.store().tables()
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// Like [`table_columns`].
    pub fn columns(&self, table: &str) -> Result<Vec<TableColumn>, BulkError> {
        table_columns(self.store(), table)
    }

    /// Drops a key of a table with all its columns.
    ///
    /// # Errors
    /// As [`drop_key`].
    pub fn drop_key(&self, table: &str, key: &str, dry_run: bool) -> Result<Vec<TableColumn>, BulkError> {
        drop_key(self.store(), table, key, dry_run)
    }

    /// Begins an export.
    ///
    /// # Errors
    /// Like [`Export::begin`].
    pub fn export(&self, request: &ExportRequest) -> Result<Export, BulkError> {
        Export::begin(self.store(), request)
    }

    /// Imports a Parquet file that unpacks within `bounds`. Rows have the bounds of devices; with `any_time` they may have any
    /// time. Times without a zone are local times of `zone`. Live subscribers do not get the rows: imports are historical. Blocks
    /// until the rows are durable.
    ///
    /// # Errors
    /// Like [`import_parquet`].
    pub fn import_parquet(
        &self,
        table: &str,
        file: Bytes,
        bounds: ParquetBounds,
        zone: Option<&Zone>,
        any_time: bool,
        busy_timeout: Duration,
    ) -> Result<ImportCounts, BulkError> {
        let rules = ImportRules::of(self.limits(), system_now(), any_time);
        import_parquet(self.store(), table, file, bounds, zone, rules, busy_timeout)
    }
}

/// A copy of the registry of a stopped installation.
///
/// # Errors
/// Like [`Registry::open`].
pub fn stopped_registry(path: &Path) -> Result<File, RegistryError> {
    copy_for_backup(path)
}

//! What an operator's tools ask of a running installation: a check of everything on disk, and a backup's stream.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::backup::{BackupList, Extra, stream_bytes, write_stream};
use store::{ByteProgress, CheckReport, Finding, StoreError, StoreFiles, TableStatus};

use crate::Hub;
use crate::bulk::{
    BulkError, Export, ExportRequest, ImportCounts, ImportRules, ParquetBounds, TableColumn, Zone,
    import_parquet, table_columns,
};
use crate::clock::system_now;
use crate::registry::{ADMIN_PASSWORD_FILE, Registry, RegistryError, copy_for_backup};

/// Files of a data directory that a backup takes along if they are there.
pub const SMALL_FILES: [&str; 2] = ["tacho.toml", ADMIN_PASSWORD_FILE];

/// Why a backup could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// A backup that is ready to be sent. The store's files stay as they are while this lives.
pub struct BackupStream {
    files: Box<dyn StoreFiles>,
    extras: Vec<Extra>,
    have: BackupList,
    created_us: i64,
}

impl BackupStream {
    /// The store's files with what else belongs to the installation in `data`. `registry` is the registry's file and
    /// `copy` a copy of its content; `have` lists what the receiver has.
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

    /// Bytes of the files that will be written.
    pub fn bytes(&self) -> u64 {
        stream_bytes(self.files.as_ref(), &self.extras, &self.have)
    }

    /// Writes the files as a tar stream.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        write_stream(self.files.as_ref(), self.extras, &self.have, self.created_us, out)
    }
}

fn extra(name: &str, file: File) -> io::Result<Extra> {
    let bytes = file.metadata()?.len();
    Ok(Extra { path: name.to_owned(), bytes, content: Box::new(file) })
}

/// What SQLite says about a registry's file, as findings.
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
    /// Reads everything on disk and compares it with its checksums, while the installation serves. Takes as long as
    /// reading the files takes: call it where blocking is allowed.
    ///
    /// # Errors
    /// That the check could not be made; what it found is in the report.
    pub fn check(&self, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
        let registry: &Registry = self.registry();
        let findings = registry_findings(registry.path(), registry.problems());
        let mut report = self.store().check(progress)?;
        report.findings.extend(findings);
        Ok(report)
    }

    /// Brings everything acknowledged so far into files and holds them. Blocks for a flush.
    ///
    /// # Errors
    /// When the store takes no writes, and when a file cannot be read.
    pub fn backup(&self, have: BackupList) -> Result<BackupStream, MaintenanceError> {
        let registry = self.registry();
        let data = registry.path().parent().unwrap_or(Path::new("."));
        let copy = registry.copy()?;
        let files = self.store().files()?;
        Ok(BackupStream::new(files, data, registry.path(), copy, have)?)
    }
}

impl Hub {
    /// What tables there are.
    ///
    /// # Errors
    /// As [`store::Store::tables`].
    pub fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        self.store().tables()
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// As [`table_columns`].
    pub fn columns(&self, table: &str) -> Result<Vec<TableColumn>, BulkError> {
        table_columns(self.store(), table)
    }

    /// Begins an export.
    ///
    /// # Errors
    /// As [`Export::begin`].
    pub fn export(&self, request: &ExportRequest) -> Result<Export, BulkError> {
        Export::begin(self.store(), request)
    }

    /// Imports a Parquet file that unfolds within `bounds`; rows have the bounds that devices have, and with `any_time` may
    /// be of any time. Times without a zone are those of `zone`. Live subscribers are not told: these are no news. Blocks
    /// until the rows are durable.
    ///
    /// # Errors
    /// As [`import_parquet`].
    pub fn import_parquet(
        &self,
        table: &str,
        file: Bytes,
        bounds: ParquetBounds,
        zone: Option<&Zone>,
        any_time: bool,
        patience: Duration,
    ) -> Result<ImportCounts, BulkError> {
        let rules = ImportRules::of(self.limits(), system_now(), any_time);
        import_parquet(self.store(), table, file, bounds, zone, rules, patience)
    }
}

/// A copy of the registry of an installation that does not run.
///
/// # Errors
/// As [`Registry::open`].
pub fn stopped_registry(path: &Path) -> Result<File, RegistryError> {
    copy_for_backup(path)
}

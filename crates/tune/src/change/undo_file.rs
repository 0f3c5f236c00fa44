//! The undo file: what a change needs to be undone later. It is written before anything is changed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ParameterChange, UndoFileError};
use crate::limits::UNDO_FILE_BYTES_MAX;
use crate::probe::Identity;

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

/// The content of an undo file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoFile {
    format: u32,
    /// The time of writing, UTC.
    pub written: String,
    /// The target without its password.
    pub target: String,
    /// The product, such as `mysql`.
    pub product: String,
    /// The variant of the product.
    pub variant: String,
    /// The version of the target.
    pub version: Option<String>,
    /// The changes in the order in which they were made.
    pub changes: Vec<ParameterChange>,
}

impl UndoFile {
    /// The undo of changes of a target. `target` has no password.
    pub fn new(target: &str, identity: &Identity, changes: Vec<ParameterChange>) -> Self {
        Self {
            format: FORMAT,
            written: load::utc_now(),
            target: target.to_owned(),
            product: identity.product.to_owned(),
            variant: identity.variant.clone(),
            version: identity.version.clone(),
            changes,
        }
    }

    /// The same file with other changes.
    pub(crate) fn with(&self, changes: Vec<ParameterChange>) -> Self {
        Self { changes, ..self.clone() }
    }

    /// The default name, with the time.
    pub fn default_path(&self) -> PathBuf {
        format!("tacho-tune-undo-{}.json", self.written.replace(':', "")).into()
    }

    /// Writes a new file and syncs it. An existing file stays as it is.
    pub fn write(&self, path: &Path) -> Result<(), UndoFileError> {
        let text = serde_json::to_string_pretty(self).expect("BUG: an undo file is plain JSON") + "\n";
        let write = || {
            let mut file = File::create_new(path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => UndoFileError::Exists(path.to_owned()),
            _ => UndoFileError::Write { path: path.to_owned(), source },
        })
    }

    pub fn read(path: &Path) -> Result<Self, UndoFileError> {
        let failed = |source| UndoFileError::Read { path: path.to_owned(), source };
        let wrong = |reason: String| UndoFileError::Format { path: path.to_owned(), reason };
        let bytes = fs::metadata(path).map_err(failed)?.len();
        if bytes > UNDO_FILE_BYTES_MAX {
            return Err(wrong(format!("it has {bytes} bytes, {UNDO_FILE_BYTES_MAX} is the limit")));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let file: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match file.format {
            FORMAT => Ok(file),
            other => Err(wrong(format!("it has the format {other}, this program reads {FORMAT}"))),
        }
    }

    /// Refuses a target that is another product.
    pub fn check(&self, identity: &Identity) -> Result<(), UndoFileError> {
        let (expected, found) =
            ((self.product.as_str(), &self.variant), (identity.product, &identity.variant));
        if expected == found {
            return Ok(());
        }
        Err(UndoFileError::OtherProduct { expected: self.variant.clone(), found: identity.variant.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Restart;
    use crate::statement::Statement;
    use crate::unit::Unit;

    fn identity(variant: &str) -> Identity {
        Identity {
            product: "mysql",
            title: "t".into(),
            variant: variant.into(),
            version: Some("8.0.36".into()),
            role: None,
        }
    }

    fn file() -> UndoFile {
        let change = ParameterChange {
            rule: "mysql-r".into(),
            parameter: "p".into(),
            subject: None,
            unit: Unit::Bytes,
            old: 4096.0.into(),
            new: 8192.0.into(),
            restart: Restart::Dynamic,
            change: vec![Statement::Sql("SET GLOBAL p = 8192".into())],
            keep: Vec::new(),
            undo: vec![Statement::Sql("SET GLOBAL p = 4096".into())],
            grant: None,
            also: None,
        };
        UndoFile::new("mysql://db:3306", &identity("mysql"), vec![change])
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file().default_path());
        file().write(&path).unwrap();
        let read = UndoFile::read(&path).unwrap();
        assert_eq!((read.changes, read.target), (file().changes, "mysql://db:3306".to_owned()));
        assert!(matches!(file().write(&path), Err(UndoFileError::Exists(_))));
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("undo.json");
        assert!(matches!(UndoFile::read(&path), Err(UndoFileError::Read { .. })));
        let text = serde_json::to_string(&file()).unwrap();
        for (text, reason) in [
            ("{}".to_owned(), "missing field"),
            (text.replace("\"format\":1", "\"format\":2"), "the format 2"),
            (text.replace("\"rule\"", "\"rules\""), "unknown field"),
        ] {
            fs::write(&path, text).unwrap();
            let error = UndoFile::read(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let other = file().check(&identity("mariadb")).unwrap_err().to_string();
        assert!(other.contains("of mysql") && other.contains("is mariadb"), "{other}");
        file().check(&identity("mysql")).unwrap();
    }
}

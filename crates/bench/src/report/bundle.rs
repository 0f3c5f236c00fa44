//! Directories of results, and what the commands write that have a report of their own (`ledger`, `reads`).

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::machine::utc_now;

/// `bench-runs/<UTC>-<scenario>`, relative to the working directory.
pub fn default_directory(scenario: &str) -> PathBuf {
    PathBuf::from("bench-runs").join(format!("{}-{scenario}", utc_now().replace(':', "")))
}

/// A temporary directory on the file system of `out`: /tmp may be memory, where a sync costs nothing and proves nothing.
pub(crate) fn temporary_beside(out: &Path) -> Result<tempfile::TempDir> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::file(parent))?;
    tempfile::Builder::new().prefix("data-").tempdir_in(parent).map_err(Error::file(parent))
}

/// Writes `result.json`, and in `summary.txt` what the terminal shows.
pub(crate) fn write_result(report: &(impl Serialize + Display), directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(Error::file(directory))?;
    let json = serde_json::to_string_pretty(report).expect("BUG: a report has only text keys");
    write(directory, "result.json", &(json + "\n"))?;
    write(directory, "summary.txt", &format!("{report}\n"))
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(Error::file(path))
}

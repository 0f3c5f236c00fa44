//! Writes a bundle into a temporary directory beside its place and renames it, so that a directory with the name of a
//! bundle is always complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Bundle;
use super::series::seconds_to_csv;

pub(super) const RESULT: &str = "result.json";
pub(super) const HISTOGRAMS: &str = "histograms.hlog";
pub(super) const SECONDS: &str = "seconds.csv";
pub(super) const TELEMETRY: &str = "telemetry.csv";
const SUMMARY: &str = "summary.txt";

/// A bundle could not be written. Its directory does not exist.
#[derive(Debug, thiserror::Error)]
#[error("the result could not be written to {}: {}{}", .directory.display(), .source, advice(.source, *.bytes))]
pub struct WriteError {
    /// The intended directory.
    pub directory: PathBuf,
    /// The size of the bundle, bytes.
    pub bytes: u64,
    pub source: io::Error,
    /// The most important parts: the summary and `result.json`.
    pub rescued: String,
}

fn advice(source: &io::Error, bytes: u64) -> String {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(
                ". The bundle needs {bytes} bytes; free some or name another disk with --out. \
                 Histograms and seconds of this run are lost, its figures follow as text"
            )
        }
        io::ErrorKind::AlreadyExists => ". Name a directory that does not exist with --out".to_owned(),
        _ => ". The figures follow as text".to_owned(),
    }
}

impl Bundle {
    /// The files of the bundle by name.
    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
        let mut files = vec![
            (RESULT, self.json().into_bytes()),
            (SUMMARY, format!("{self}\n").into_bytes()),
            (SECONDS, seconds_to_csv(&self.seconds).map_err(|error| error.to_string())?),
        ];
        if !self.histograms.is_empty() {
            files.push((HISTOGRAMS, self.histograms.to_log(self.result.started_unix_s)?));
        }
        if !self.telemetry.is_empty() {
            files.push((TELEMETRY, self.telemetry.to_csv().map_err(|error| error.to_string())?));
        }
        Ok(files)
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(&self.result).expect("BUG: a result has only text keys") + "\n"
    }

    /// Writes the bundle as `directory`, which must not exist or be empty.
    pub fn write(&self, directory: &Path) -> Result<(), Box<WriteError>> {
        self.write_with(directory, &mut |path, bytes| write_synced(path, bytes))
    }

    /// Like `write`. After a failure, the most important parts go to `rescue`, which is normally standard error.
    pub fn write_or_rescue(&self, directory: &Path, rescue: &mut dyn Write) -> Result<(), Box<WriteError>> {
        let written = self.write(directory);
        if let Err(error) = &written {
            // Standard error may be closed as well; then only the returned error is left.
            let _ = writeln!(rescue, "{}", error.rescued);
        }
        written
    }

    fn write_with(
        &self,
        directory: &Path,
        put: &mut dyn FnMut(&Path, &[u8]) -> io::Result<()>,
    ) -> Result<(), Box<WriteError>> {
        let failed = |bytes: u64, source: io::Error| {
            let rescued = format!("{self}\n{}", self.json());
            Box::new(WriteError { directory: directory.to_owned(), bytes, source, rescued })
        };
        let files = self.files().map_err(|what| failed(0, io::Error::other(what)))?;
        let bytes = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        place(directory, &files, put).map_err(|source| failed(bytes, source))
    }
}

/// Moves the files to their place. On failure the temporary directory removes itself.
fn place(
    directory: &Path,
    files: &[(&'static str, Vec<u8>)],
    put: &mut dyn FnMut(&Path, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory exists and is not empty"));
    }
    let parent = parent_of(directory);
    fs::create_dir_all(parent)?;
    let temporary = tempfile::Builder::new().prefix(".bundle-").tempdir_in(parent)?;
    for (name, bytes) in files {
        put(&temporary.path().join(name), bytes)?;
    }
    // The private temporary directory gets the usual permissions.
    fs::set_permissions(temporary.path(), PermissionsExt::from_mode(0o755))?;
    fs::rename(temporary.path(), directory)?;
    let _ = temporary.keep();
    File::open(parent)?.sync_all()
}

/// Writes a file beside its place and renames it, so that the name always stands for a complete file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = parent_of(path);
    let mut temporary = tempfile::Builder::new().prefix(".file-").tempfile_in(parent)?;
    temporary.write_all(bytes)?;
    temporary.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(parent)?.sync_all()
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs before the rename, so that the name never stands for an empty file after a power cut.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn a_full_disk_leaves_nothing_behind_and_keeps_the_figures() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("runs/one");
        let bundle = example();
        for full_after in 0..4 {
            let mut files = 0;
            let error = bundle
                .write_with(&directory, &mut |path, bytes| {
                    files += 1;
                    if files > full_after {
                        return Err(io::ErrorKind::StorageFull.into());
                    }
                    write_synced(path, bytes)
                })
                .unwrap_err();
            assert!(error.to_string().contains("free some or name another disk with --out"), "{error}");
            assert!(
                error.rescued.contains("\"schema\": 1") && error.rescued.contains("VALID"),
                "{}",
                error.rescued
            );
            assert_eq!(
                fs::read_dir(home.path().join("runs")).unwrap().count(),
                0,
                "after {full_after} files"
            );
        }
        bundle.write(&directory).unwrap();
        assert!(directory.join(RESULT).exists());
    }

    #[test]
    fn an_older_bundle_is_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let bundle = example();
        bundle.write(home.path()).unwrap();
        let mut rescue = Vec::new();
        let error = bundle.write_or_rescue(home.path(), &mut rescue).unwrap_err();
        assert!(error.to_string().contains("does not exist with --out"), "{error}");
        assert!(!rescue.is_empty());
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ab.json");
        for text in ["older", "newer"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        fs::create_dir(home.path().join("taken")).unwrap();
        assert!(write_whole(&home.path().join("taken"), b"text").is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing is left behind");
    }
}

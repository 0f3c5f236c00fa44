//! The directory of descriptors: which files have changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sensors::virtual_sensors::limits::DESCRIPTOR_BYTES_MAX;

use crate::limits::SENSOR_FILES_MAX;

/// A directory that is looked at again and again.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    files: BTreeMap<String, Stamp>,
    /// The last fault of the directory itself, so that the log has it once.
    fault: Option<String>,
}

/// A file with another stamp has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

/// What has changed since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// New and changed files with their text, or why it cannot be read.
    pub(crate) changed: BTreeMap<String, Result<String, String>>,
    /// Files that are gone.
    pub(crate) gone: Vec<String>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, files: BTreeMap::new(), fault: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The changes since the last look. A directory that does not exist has no files; one that cannot be read has not changed.
    pub(crate) fn changes(&mut self) -> Changes {
        let found = match self.list() {
            Ok(found) => {
                self.fault = None;
                found
            }
            Err(error) => {
                let fault = error.to_string();
                if self.fault.as_ref() != Some(&fault) {
                    tracing::warn!(directory = %self.path.display(), %error, "cannot read the directory of virtual sensors");
                }
                self.fault = Some(fault);
                return Changes::default();
            }
        };
        let changed = found.iter().filter(|(name, stamp)| self.files.get(*name) != Some(stamp));
        let changed = changed.map(|(name, stamp)| (name.clone(), self.text(name, *stamp))).collect();
        let gone = self.files.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
        self.files = found;
        Changes { changed, gone }
    }

    fn list(&self) -> io::Result<BTreeMap<String, Stamp>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            entries => entries?,
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !is_descriptor(&name) {
                continue;
            }
            // A file may go at this moment.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            if metadata.is_file() {
                let stamp = Stamp { modified: metadata.modified().ok(), bytes: metadata.len() };
                files.insert(name, stamp);
            }
        }
        while files.len() > SENSOR_FILES_MAX {
            let left_out = files.pop_last();
            if let Some((file, _)) = left_out.filter(|(name, _)| !self.files.contains_key(name)) {
                tracing::debug!(file, "not read: the directory has more files than SENSOR_FILES_MAX");
            }
        }
        Ok(files)
    }

    fn text(&self, name: &str, stamp: Stamp) -> Result<String, String> {
        if stamp.bytes > DESCRIPTOR_BYTES_MAX as u64 {
            let bytes = stamp.bytes;
            return Err(format!(
                "the file has {bytes} bytes; at most {DESCRIPTOR_BYTES_MAX} (DESCRIPTOR_BYTES_MAX)"
            ));
        }
        fs::read_to_string(self.path.join(name)).map_err(|error| format!("the file cannot be read: {error}"))
    }
}

/// Editors keep other files besides those that they write.
fn is_descriptor(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    !name.starts_with('.') && ending.is_some_and(|ending| matches!(ending, "xml" | "toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("sensors");
        let mut directory = Directory::new(path.clone());
        assert!(directory.changes().is_empty(), "it does not exist");
        fs::create_dir(&path).unwrap();
        let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        write("one.xml", "1");
        write("two.toml", "2");
        write(".one.xml.swp", "");
        write("notes.txt", "");
        let changes = directory.changes();
        let texts: Vec<_> =
            changes.changed.iter().map(|(name, text)| (&**name, text.clone().unwrap())).collect();
        assert_eq!(texts, [("one.xml", "1".to_owned()), ("two.toml", "2".to_owned())]);
        assert!(directory.changes().is_empty());
        write("one.xml", "10");
        fs::remove_file(path.join("two.toml")).unwrap();
        let changes = directory.changes();
        assert_eq!(changes.changed.keys().collect::<Vec<_>>(), ["one.xml"]);
        assert_eq!(changes.gone, ["two.toml"]);
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("large.xml"), " ".repeat(DESCRIPTOR_BYTES_MAX + 1)).unwrap();
        let changes = Directory::new(place.path().to_owned()).changes();
        let reason = changes.changed["large.xml"].clone().unwrap_err();
        assert!(reason.contains("DESCRIPTOR_BYTES_MAX"), "{reason}");
    }
}

//! Checks the manifest, the definitions and the series file.

use std::sync::Arc;

use store::{Finding, StoreError};

use super::checker::Checker;
use super::words;
use crate::disk::OpenMode;
use crate::manifest::ManifestContent;
use crate::series_file::read_series;
use crate::tombstone::Tombstone;

const NOTHING_OPENS: &str =
    "The store does not open with it, so nothing is served. No other file is touched by it.";

impl Checker<'_, '_> {
    /// The content of the manifest; `None` when it is damaged.
    pub(super) fn manifest(&mut self, bytes: &[u8]) -> Option<ManifestContent> {
        let path = self.layout.manifest();
        match ManifestContent::read(&path, bytes) {
            Ok(content) => {
                if (bytes.len() as u64) > content.end && !self.live {
                    let cut = bytes.len() as u64 - content.end;
                    let what = format!("the last {cut} bytes are an unfinished write");
                    let means =
                        "Nobody was told that it was kept: what it would have named is still in the log.";
                    self.find(Finding::note(path, what).with(means, "Nothing; the next start cuts it off."));
                }
                Some(content)
            }
            Err(error) => {
                self.fail(&error, NOTHING_OPENS, words::RESTORE);
                None
            }
        }
    }

    /// Checks that the tables and keys of deletions are defined, and that the parts cover their sequences.
    fn deletions(&self, manifest: &ManifestContent) -> Result<(), StoreError> {
        let covered = manifest.state.covered.sequence;
        let is_wrong = |of: &&Arc<Tombstone>| !of.is_defined(&self.catalog) || of.sequence > covered;
        match manifest.state.deletions.iter().find(is_wrong) {
            None => Ok(()),
            Some(of) => {
                let reason = format!(
                    "the deletion with the sequence {} has a table or key that is not defined, or is newer than the parts",
                    of.sequence
                );
                Err(StoreError::Corrupt { path: self.layout.manifest(), offset: 0, reason })
            }
        }
    }

    /// Reads tables, columns, tags and series. `false` when they are damaged, so that rows cannot be compared with them.
    pub(super) fn definitions(&mut self, manifest: &ManifestContent) -> bool {
        let path = self.layout.manifest();
        let applied = self.catalog.apply_all(&path, &manifest.state.definitions);
        if let Err(error) = applied.and_then(|()| self.deletions(manifest)) {
            self.fail(&error, NOTHING_OPENS, words::RESTORE);
            return false;
        }
        let path = self.layout.series();
        let wanted = manifest.state.series_bytes;
        let opened = self.disk.open(&path, OpenMode::Read).and_then(|file| Ok((file.len()?, file)));
        let opened = opened.map_err(|error| StoreError::io("open", &path, error));
        let read = opened.and_then(|(found, file)| {
            read_series(file.as_ref(), self.layout, wanted, &mut self.catalog)?;
            Ok(found)
        });
        self.meter.add(wanted);
        self.report.bytes += wanted;
        self.report.tables = self.catalog.live_tables() as u64;
        self.report.series = self.catalog.series.read().live() as u64;
        match read {
            Ok(found) => {
                if found > wanted && !self.live {
                    let what = format!("{} bytes behind the end that the manifest names", found - wanted);
                    let means = "An interrupted flush left them; these series are in the log too.";
                    self.find(
                        Finding::note(path, what).with(means, "Nothing; the next start cuts them off."),
                    );
                }
                true
            }
            Err(error) => {
                self.fail(&error, NOTHING_OPENS, words::RESTORE);
                false
            }
        }
    }
}

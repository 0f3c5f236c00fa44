//! Compares the files with the manifest, and checks the ranges that the manifest names.

use std::collections::BTreeMap;

use store::Finding;

use super::checker::{Checker, Names};
use super::words;
use crate::disk::numbered;
use crate::manifest::ManifestContent;
use crate::part::PartInfo;
use crate::part::blocks::BLOCK_BYTES;

const NO_ROW_IS_LOST: &str = "No row is lost by it.";

impl Checker<'_, '_> {
    /// Reports every file that does not belong to the store.
    pub(super) fn directory(&mut self, names: &Names, manifest: &ManifestContent) {
        let ours = ["LOCK", "manifest", "series"];
        for name in names.root.iter().filter(|name| !ours.contains(&name.as_str())) {
            self.stray(self.layout.root.join(name), name.ends_with(".tmp"));
        }
        let is_log = |name: &str| {
            ["spare", "acknowledged"].contains(&name)
                || numbered(name, ".log").is_some()
                || numbered(name, ".spare").is_some()
        };
        for name in names.log.iter().filter(|name| !is_log(name)) {
            self.stray(self.layout.log.join(name), name.ends_with(".tmp"));
        }
        for name in &names.parts {
            match numbered(name, ".parquet") {
                Some(id) if manifest.parts.contains_key(&id) => {}
                Some(_) => self.orphan(name),
                None => self.stray(self.layout.parts.join(name), name.ends_with(".tmp")),
            }
        }
    }

    fn stray(&mut self, path: std::path::PathBuf, unfinished: bool) {
        let finding = match unfinished {
            true => Finding::note(path, "an unfinished file, left by the end of the process")
                .with(NO_ROW_IS_LOST, "Nothing; the next start removes it."),
            false => Finding::note(path, "not a file of the store; it is left alone")
                .with(NO_ROW_IS_LOST, "Move it away if you know what it is."),
        };
        self.find(finding);
    }

    fn orphan(&mut self, name: &str) {
        let path = self.layout.parts.join(name);
        let damaged = self.report.is_damaged();
        let finding = Finding::note(path, "a part that the manifest does not name");
        self.find(match damaged {
            false => finding.with(
                "An interrupted flush or merge left it; its rows are in the log or in other parts.",
                "Nothing; the next start removes it.",
            ),
            true => finding.with(
                "It may hold rows that the damage above took away.",
                "Keep a copy: it is plain Parquet. The next start renames it to *.kept if rows are missing in the log.",
            ),
        });
    }

    /// Checks the entry of each part in the manifest, and the order of the parts of a table.
    pub(super) fn ranges(&mut self, manifest: &ManifestContent) {
        let mut tables: BTreeMap<u32, Vec<&PartInfo>> = BTreeMap::new();
        for part in manifest.parts.values() {
            if let Some(wrong) = self.contradiction(part, manifest) {
                self.impossible(part, &wrong);
            }
            tables.entry(part.tables.0).or_default().push(part);
        }
        for parts in tables.values_mut() {
            parts.sort_by_key(|part| (part.partition, part.sequence));
            self.overlaps(parts);
        }
    }

    /// Checks that parts that may have the same row have an order. `parts` are the parts of one table, by their days.
    fn overlaps(&mut self, parts: &[&PartInfo]) {
        let mut earlier: Vec<&PartInfo> = Vec::new();
        for part in parts {
            earlier.retain(|other| other.partition.1 > part.partition.0);
            let (from, to) = part.sequence;
            let clash = earlier.iter().find(|other| other.sequence.0 <= to && from <= other.sequence.1);
            if let Some(other) = clash {
                let (a, b) = other.sequence;
                let id = other.id;
                self.impossible(
                    part,
                    &format!("its rows {from} to {to} overlap with rows {a} to {b} of part {id:016x}"),
                );
            }
            earlier.push(part);
        }
    }

    fn impossible(&mut self, part: &PartInfo, wrong: &str) {
        let table = self.table_name(part.tables.0);
        let what = format!("the manifest's entry of part {:016x} cannot be true: {wrong}", part.id);
        let means = format!(
            "Reads of {} may leave out rows or prefer older values.",
            words::rows_of(part, table.as_deref().unwrap_or("?"))
        );
        let action = "This is a fault of the program, not of the disk: its checksum is right. Keep a copy of the directory and report it.";
        self.find(
            Finding::damage(self.layout.manifest(), None, what)
                .with(means, action)
                .of(table.as_deref(), Some(part.rows)),
        );
    }

    fn contradiction(&self, part: &PartInfo, manifest: &ManifestContent) -> Option<String> {
        let PartInfo { tables: (table, _), partition, rows, bytes, series, ts, sequence, block_crcs, .. } =
            part;
        let covered = manifest.state.covered.sequence;
        let last_inside = ts.1 < partition.1 || partition.1 == i64::MAX;
        let rules = [
            (self.catalog.tables.get(*table as usize).is_none(), "its table is not defined"),
            (*rows == 0, "it has no rows"),
            (partition.0 >= partition.1, "its days are an empty range"),
            (ts.0 > ts.1 || series.0 > series.1 || sequence.0 > sequence.1, "a range ends before it begins"),
            (ts.0 < partition.0 || !last_inside, "its times lie outside of its days"),
            (sequence.1 > covered, "it has rows that the log is still said to hold"),
            (part.applied > covered, "it was made with deletions that the log is still said to hold"),
            (self.catalog.series.read().table(series.1).is_none(), "its last series is not defined"),
            (
                block_crcs.len() as u64 != bytes.div_ceil(BLOCK_BYTES as u64),
                "it has not one checksum for each block",
            ),
        ];
        rules.into_iter().find(|(broken, _)| *broken).map(|(_, rule)| rule.to_owned())
    }

    /// The name of a table; `None` if it is not defined.
    pub(super) fn table_name(&self, table: u32) -> Option<String> {
        self.catalog.tables.get(table as usize).map(|table| table.name.to_string())
    }
}

//! Checks the log: every frame and every entry.

use model::FieldType;
use store::{Finding, Sequence, StoreError};

use super::checker::Checker;
use super::words;
use crate::catalog::Catalog;
use crate::codec::Reader;
use crate::entry::Entry;
use crate::log::acknowledged::missing;
use crate::log::recover::{Replay, Walk};
use crate::manifest::ManifestContent;
use crate::report::RecoveryReport;
use crate::row::{KeyId, read_field};
use crate::tombstone::read_tombstone;

const LOST: &str = "The rows of these frames were acknowledged and are in no other file here; all other rows are served. \
     Definitions among them come back as \"lost ...\".";
const KEEP: &str = "Back the directory up as it is before the next start: the start drops what it cannot read. The rows can \
     only come from their senders, or from a backup that was made after they were written.";

impl Checker<'_, '_> {
    /// Checks the segments; of each only the given number of bytes, if there is one. `durable` is the sequence up to which
    /// the log must have all rows.
    pub(super) fn log(
        &mut self,
        manifest: &ManifestContent,
        segments: &[(u64, Option<u64>)],
        segment_bytes: u64,
        durable: Option<Sequence>,
    ) {
        let mut recovery = RecoveryReport::default();
        let mut catalog = std::mem::take(&mut self.catalog);
        let mut rows = Rows { catalog: &mut catalog };
        let mut walk = Walk::new(manifest.state.covered, segment_bytes, &mut rows, &mut recovery);
        let mut failed = Vec::new();
        for (number, bytes) in segments {
            let path = self.layout.segment(*number);
            let walked = self.read(&path).and_then(|mut content| {
                content.truncate(bytes.map_or(usize::MAX, |bytes| bytes as usize));
                walk.segment(*number, &path, &content).map(drop)
            });
            failed.extend(walked.err());
        }
        walk.finish();
        let next = walk.next_sequence();
        self.catalog = catalog;
        self.report.log_segments = recovery.segments;
        self.report.log_rows = recovery.rows;
        self.report.series = self.catalog.series.read().live() as u64;
        self.report.tables = self.catalog.live_tables() as u64;
        failed.iter().for_each(|error| self.unreadable(error));
        recovery.damages.iter().for_each(|damage| self.fail(damage, LOST, KEEP));
        if let Some(torn) = recovery.torn_tail.filter(|_| !self.live) {
            let what = format!("an unfinished write at byte {}", torn.offset);
            let means = "The process ended in the middle of it. Nobody was told that it was kept.";
            self.find(Finding::note(torn.path, what).with(means, "Nothing; the next start cuts it off."));
        }
        if let Some((durable, what)) = durable.and_then(|durable| Some((durable, missing(next, durable)?))) {
            let rows = Some(durable + 1 - next);
            self.find(Finding::damage(&self.layout.log, None, what).with(LOST, KEEP).of(None, rows));
        }
    }

    fn unreadable(&mut self, error: &StoreError) {
        let (means, action) = match error {
            StoreError::Corrupt { .. } => (
                "Another version of the program wrote this segment; this one does not start on it. Nothing is lost.",
                "Use the program that wrote the directory, or a newer one.",
            ),
            _ => {
                ("The store does not open when it cannot read its log, so nothing is served.", words::RESTORE)
            }
        };
        self.fail(error, means, action);
    }
}

/// Compares rows with definitions. Keeps no row.
struct Rows<'a> {
    catalog: &'a mut Catalog,
}

impl Replay for Rows<'_> {
    fn replay(
        &mut self,
        entry: Entry<'_>,
        sequence: Sequence,
        _covered: Sequence,
    ) -> Result<(), &'static str> {
        match entry {
            Entry::Row { series, body, .. } => self.row(series, body),
            Entry::Run(run) => {
                run.rows().try_for_each(|(series, _, _)| self.column(series, run.key, FieldType::F64))
            }
            Entry::Deletion { .. } | Entry::DroppedSeries { .. } => {
                let tombstone = read_tombstone(sequence, entry).map_err(|malformed| malformed.0)?;
                let known = tombstone.is_defined(self.catalog).then_some(());
                known.ok_or("a deletion's table or key is not defined")?;
                if tombstone.ends_series {
                    self.catalog.apply(entry).map_err(|malformed| malformed.0)?;
                }
                Ok(())
            }
            definition => {
                let applied = self.catalog.apply(definition).map(drop);
                let applied = applied.or_else(|_| {
                    self.catalog.fill_gaps(definition)?;
                    self.catalog.apply(definition).map(drop)
                });
                applied.map_err(|malformed| malformed.0)
            }
        }
    }
}

impl Rows<'_> {
    fn row(&self, series: u32, body: &[u8]) -> Result<(), &'static str> {
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            let (key, value) = read_field(&mut reader).map_err(|malformed| malformed.0)?;
            self.column(series, key, value.field_type())?;
        }
        Ok(())
    }

    fn column(&self, series: u32, key: KeyId, field_type: FieldType) -> Result<(), &'static str> {
        let table = self.catalog.series.read().table(series).ok_or("a row's series is not defined")?;
        let keys = &self.catalog.tables[table as usize].keys;
        let known = keys.get(key as usize).and_then(|key| key.column(field_type));
        known.map(drop).ok_or("a row's column is not defined")
    }
}

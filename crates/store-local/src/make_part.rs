//! Makes part files for the flusher and the compactor: temporary name, rows, sync, final name (part/mod.rs, invariant 1).

use std::path::Path;

use store::{Sequence, StoreError};

use crate::abort::Abort;
use crate::codec::Malformed;
use crate::core::Core;
use crate::disk::OpenMode;
use crate::part::context::{TableNames, TagVisitor, WriteContext};
use crate::part::schema::{PartSchema, PartSettings};
use crate::part::write::PartWriter;
use crate::part::{PartInfo, PartLayout};

/// The identity of a new part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartPlan {
    /// Its number, which no other part has had.
    pub(crate) id: u64,
    /// The range of time of the rows that it may have, half-open.
    pub(crate) partition: (i64, i64),
    /// The smallest and the largest sequence of its rows.
    pub(crate) sequence: (Sequence, Sequence),
    /// The sequence up to which `fill` leaves out what deletions hide.
    pub(crate) applied: Sequence,
}

/// Makes a part of the rows that `fill` gives to the writer; `None` without rows. After an error no file is left.
///
/// The caller must sync the directory before a manifest edit names the part.
pub(crate) fn make_part(
    core: &Core,
    plan: PartPlan,
    schema: &PartSchema,
    fill: impl FnOnce(&mut PartWriter<'_>) -> Result<(), Abort>,
) -> Result<Option<PartInfo>, Abort> {
    let (new, path) = (core.layout.part_new(plan.id), core.layout.part(plan.id));
    let settings = PartSettings {
        row_group_rows: core.options.row_group_rows,
        row_group_bytes: core.options.row_group_bytes,
        page_rows: core.options.page_rows,
        zstd_level: core.options.zstd_level,
    };
    let file =
        core.disk.open(&new, OpenMode::Create).map_err(|error| StoreError::io("create", &path, error))?;
    let unfinished = Unfinished { core, path: &new };
    let context = Live(core);
    let write = || {
        let mut writer = PartWriter::new(file, path.clone(), schema, settings, &context)?;
        fill(&mut writer)?;
        writer.finish()
    };
    let summary = write().map_err(|abort| if context.should_continue() { abort } else { Abort::Stopped })?;
    if summary.rows == 0 {
        return Ok(None);
    }
    std::mem::forget(unfinished);
    core.disk.rename(&new, &path).map_err(|error| StoreError::io("rename", &path, error))?;
    Ok(Some(PartInfo {
        id: plan.id,
        layout: schema.layout,
        tables: summary.tables(),
        partition: plan.partition,
        rows: summary.rows,
        bytes: summary.bytes,
        series: summary.series,
        ts: summary.ts,
        sequence: plan.sequence,
        applied: plan.applied,
        points: summary.points,
        raw_bytes: summary.raw_bytes,
        shares: if schema.layout == PartLayout::Narrow { summary.tables } else { Vec::new() },
        block_crcs: summary.block_crcs,
    }))
}

/// A file that the drop removes, unless it is finished. If the removal fails, the next open removes the file.
struct Unfinished<'a> {
    core: &'a Core,
    path: &'a Path,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _ = self.core.disk.remove(self.path);
    }
}

/// The open store. It copies the tags of a thousand series under one lock.
struct Live<'a>(&'a Core);

impl WriteContext for Live<'_> {
    fn should_continue(&self) -> bool {
        self.0.state.lock().is_open()
    }

    fn tags(&self, series: &[u32], visit: &mut TagVisitor<'_>) {
        let (mut encoded, mut ends) = (Vec::new(), Vec::new());
        for series in series.chunks(1024) {
            encoded.clear();
            ends.clear();
            {
                let index = self.0.series.read();
                for id in series {
                    encoded.extend_from_slice(index.encoded_tags(*id));
                    ends.push(encoded.len());
                }
            }
            let mut start = 0;
            for end in &ends {
                for tag in crate::catalog::tags(&encoded[start..*end]) {
                    let tag = tag
                        .unwrap_or_else(|Malformed(reason)| unreachable!("BUG: a known series has {reason}"));
                    visit(Some(tag));
                }
                visit(None);
                start = *end;
            }
        }
    }

    fn table(&self, table: u32) -> TableNames {
        let state = self.0.state.lock();
        let definitions = &state.catalog.tables[table as usize];
        TableNames {
            name: definitions.name.canonical().clone(),
            field: definitions.keys[0].name.clone(),
            tags: definitions.tags.iter().map(|tag| tag.name.clone()).collect(),
        }
    }
}

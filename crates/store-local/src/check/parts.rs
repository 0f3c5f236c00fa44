//! Checks parts: existence, length, the checksum of every block, and then the rows (part.rs).

use std::sync::Arc;

use model::limits::CHECK_FINDINGS_PER_FILE_MAX as FINDINGS_MAX;
use store::{Finding, StoreError};

use super::checker::Checker;
use super::words;
use crate::disk::{DiskFile, OpenMode};
use crate::part::PartInfo;
use crate::part::blocks::BLOCK_BYTES;

/// The number of blocks that are read at once.
const READ_BLOCKS: usize = 32;

impl Checker<'_, '_> {
    /// Checks all parts. Compares rows with definitions only if these are `known`.
    pub(super) fn parts(&mut self, parts: &[Arc<PartInfo>], known: bool) {
        for part in parts {
            if self.meter.ended {
                return;
            }
            let before = self.meter.done;
            self.part(part, known);
            // Counts the bytes that the check has skipped because of damage.
            let rest = (before + 2 * part.bytes).saturating_sub(self.meter.done);
            self.meter.add(rest);
        }
    }

    fn part(&mut self, part: &Arc<PartInfo>, known: bool) {
        let path = self.layout.part(part.id);
        let file = match self.disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.lost(part, None, "the file is missing");
            }
            Err(error) => return self.lost(part, None, &format!("it cannot be opened: {error}")),
        };
        self.report.parts += 1;
        match file.len() {
            Ok(len) if len == part.bytes => {}
            Ok(len) => {
                let what = format!("it has {len} bytes instead of {}", part.bytes);
                self.lost(part, Some(len.min(part.bytes)), &what);
                if len < part.bytes {
                    return;
                }
            }
            Err(error) => return self.lost(part, None, &format!("its length cannot be read: {error}")),
        }
        let bad = match self.blocks(file.as_ref(), part) {
            Ok(bad) => bad,
            Err(error) => return self.lost(part, None, &format!("it cannot be read: {error}")),
        };
        if bad.is_empty() && !self.meter.ended && known {
            self.rows(file, part);
        } else if !bad.is_empty() {
            self.bad_blocks(file, part, &bad);
        }
    }

    /// The offsets of the blocks whose checksums do not match.
    fn blocks(&mut self, file: &dyn DiskFile, part: &PartInfo) -> std::io::Result<Vec<u64>> {
        let mut bad = Vec::new();
        let mut buffer = vec![0; READ_BLOCKS * BLOCK_BYTES];
        for (read, crcs) in part.block_crcs.chunks(READ_BLOCKS).enumerate() {
            let offset = (read * buffer.len()) as u64;
            let wanted = buffer.len().min(part.bytes.saturating_sub(offset) as usize);
            let count = file.read_at(&mut buffer[..wanted], offset)?;
            for (index, block) in buffer[..count].chunks(BLOCK_BYTES).enumerate() {
                if crcs.get(index) != Some(&crc32c::crc32c(block)) {
                    bad.push(offset + (index * BLOCK_BYTES) as u64);
                }
            }
            self.report.bytes += count as u64;
            self.meter.add(count as u64);
            if self.meter.ended {
                break;
            }
        }
        Ok(bad)
    }

    fn bad_blocks(&mut self, file: Arc<dyn DiskFile>, part: &Arc<PartInfo>, bad: &[u64]) {
        let row_groups = self.row_groups(file, part);
        let table = self.table_name(part.tables.0);
        for offset in &bad[..bad.len().min(FINDINGS_MAX)] {
            let end = (offset + BLOCK_BYTES as u64).min(part.bytes);
            let what = format!("the checksum of the block of {} bytes does not match", end - offset);
            let (means, rows) = match &row_groups {
                Some(row_groups) => row_groups.affected(*offset..end, part, table.as_deref()),
                None => {
                    let rows = words::rows_of(part, table.as_deref().unwrap_or("?"));
                    (
                        format!(
                            "The file's footer cannot be read, so none of its {rows} can. They were acknowledged; all other rows are served."
                        ),
                        part.rows,
                    )
                }
            };
            self.find(
                Finding::damage(self.layout.part(part.id), Some(*offset), what)
                    .with(means, words::REPLACE_PART)
                    .of(table.as_deref(), Some(rows)),
            );
        }
        if bad.len() > FINDINGS_MAX {
            let what = format!("{} more blocks do not match their checksums", bad.len() - FINDINGS_MAX);
            self.lost(part, Some(bad[FINDINGS_MAX]), &what);
        }
    }

    /// Reports damage that affects all rows of a part.
    pub(super) fn lost(&mut self, part: &PartInfo, offset: Option<u64>, what: &str) {
        let table = self.table_name(part.tables.0);
        let rows = words::rows_of(part, table.as_deref().unwrap_or("?"));
        let means = format!(
            "It holds {rows}. They were acknowledged and cannot be relied on; all other rows are served."
        );
        self.find(
            Finding::damage(self.layout.part(part.id), offset, what)
                .with(means, words::REPLACE_PART)
                .of(table.as_deref(), Some(part.rows)),
        );
    }

    /// Reports an error of the reader of a part.
    pub(super) fn unreadable_part(&mut self, part: &PartInfo, error: &StoreError) {
        match error {
            StoreError::Corrupt { offset, reason, .. } => self.lost(part, Some(*offset), reason),
            other => self.lost(part, None, &other.to_string()),
        }
    }
}

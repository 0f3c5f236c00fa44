//! Checksums of files that are on a disk already.

use std::ops::ControlFlow;
use std::path::Path;

use store::backup::{BackupFile, BackupList, Sums};
use store::{ByteProgress, Finding};

use super::entries::{check_plain, is_same};
use crate::disk::{Disk, OpenMode};

/// Bytes of one read.
const READ_BYTES: usize = 1024 * 1024;

/// Compares the files of a backup with its list. A finding names a file that does not match.
pub fn compare_with_list(
    disk: &dyn Disk,
    backup: &Path,
    list: &BackupList,
    progress: &mut ByteProgress<'_>,
) -> Vec<Finding> {
    let (mut findings, mut done) = (Vec::new(), 0);
    for file in &list.files {
        let problem = match sums_of(disk, backup, file, &mut |bytes| progress(done + bytes, list.bytes())) {
            Err(problem) => Some(problem),
            Ok(found) if found.bytes != file.bytes => {
                Some(format!("it has {} bytes, the list says {}", found.bytes, file.bytes))
            }
            Ok(found) if is_same(&found, file) => None,
            Ok(_) => Some("it does not have the checksum that the list says".to_owned()),
        };
        done += file.bytes;
        findings.extend(problem.map(|problem| {
            Finding::damage(backup.join(&file.stored), None, problem).with(
                "The backup does not hold what it says it holds.",
                "This backup cannot be restored; make a new one.",
            )
        }));
    }
    findings
}

/// The list entry of a file as it is on the disk. `progress` gets the number of bytes that were read.
fn sums_of(
    disk: &dyn Disk,
    dir: &Path,
    file: &BackupFile,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<BackupFile, String> {
    check_plain(disk, dir, &file.stored)?;
    let failed = |error| format!("it cannot be read: {error}");
    let content = disk.open(&dir.join(&file.stored), OpenMode::Read).map_err(failed)?;
    let (mut sums, mut buffer) = (Sums::default(), vec![0; READ_BYTES]);
    loop {
        let count = content.read_at(&mut buffer, sums.bytes()).map_err(failed)?;
        if count == 0 {
            break;
        }
        sums.add(&buffer[..count]);
        if progress(sums.bytes()).is_break() {
            return Err("interrupted".to_owned());
        }
    }
    let (bytes, crc, sha256) = (sums.bytes(), sums.crc(), sums.digest());
    Ok(BackupFile { path: file.path.clone(), stored: file.stored.clone(), bytes, crc, sha256 })
}

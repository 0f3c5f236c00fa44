//! The check of all records.

use std::ops::ControlFlow;

use crate::{Direction, KeyRange, KvError, Snapshot, Space};

/// Takes the number of records that are done. `Break` ends the work.
pub type RecordProgress<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// The outcome of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The spaces, in order of their names, with their numbers of records.
    pub spaces: Vec<(Space, u64)>,
    /// Bytes of all keys and values that were read.
    pub bytes: u64,
    /// What cannot be read, and where.
    pub damage: Vec<String>,
    /// Whether the caller ended the check early. Records that were not read may be damaged.
    pub interrupted: bool,
}

impl CheckReport {
    /// Number of records that were read.
    pub fn records(&self) -> u64 {
        self.spaces.iter().map(|(_, records)| records).sum()
    }
}

/// The check reports its progress after this number of records.
const RECORDS_PER_STEP: u64 = 1024;

pub(crate) fn check(
    snapshot: &dyn Snapshot,
    progress: &mut RecordProgress<'_>,
) -> Result<CheckReport, KvError> {
    let mut report = CheckReport::default();
    let mut done = 0;
    for space in snapshot.spaces() {
        let mut records = 0;
        let mut last = None;
        for record in snapshot.scan(space, &KeyRange::all(), Direction::Ascending)? {
            let (key, value) = match record {
                Ok(record) => record,
                // The scan was ended; the records are not damaged.
                Err(error @ KvError::Busy { .. }) => return Err(error),
                Err(error) => {
                    report.damage.push(format!("space {space}, after {records} records: {error}"));
                    break;
                }
            };
            if last.as_ref().is_some_and(|last| *last >= key) {
                report.damage.push(format!("space {space}, after {records} records: keys are out of order"));
            }
            report.bytes += (key.len() + value.len()) as u64;
            records += 1;
            done += 1;
            last = Some(key);
            if done % RECORDS_PER_STEP == 0 && progress(done).is_break() {
                report.interrupted = true;
                break;
            }
        }
        report.spaces.push((space, records));
        if report.interrupted {
            break;
        }
    }
    Ok(report)
}

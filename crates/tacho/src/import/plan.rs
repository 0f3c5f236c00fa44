//! The first pass: what will be sent, and when each row was.

use std::path::PathBuf;

use jiff::Timestamp;

use super::header::Column;
use super::rows::{Cells, FileError, Rows};
use super::time::{Clock, TimeFormat};

/// What the command line says about time.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    pub column: Option<String>,
    pub format: TimeFormat,
    pub start_ms: Option<i64>,
    pub interval_ms: i64,
}

/// A file that can be imported.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub path: PathBuf,
    pub columns: Vec<Column>,
    /// Positions of columns without a name, from 0.
    pub unnamed: Vec<usize>,
    pub cells: Cells,
}

/// All files, in the order in which they are sent.
#[derive(Debug)]
pub(super) struct Plan {
    pub files: Vec<FilePlan>,
    pub timing: Timing,
    /// For rows without a time of their own.
    pub clock: Clock,
}

impl Plan {
    /// Reads all files to their ends.
    pub(super) fn read(paths: &[PathBuf], timing: &Timing) -> Result<Self, FileError> {
        let mut files = Vec::new();
        for path in paths {
            let mut rows = Rows::open(path, timing.column.as_deref(), &timing.format)?;
            while rows.next()?.is_some() {}
            if rows.cells.rows == 0 {
                return Err(FileError::NoRows { path: path.clone() });
            }
            let (columns, unnamed) = (rows.header.columns.clone(), rows.header.unnamed.clone());
            files.push(FilePlan { path: path.clone(), columns, unnamed, cells: rows.cells });
        }
        let rows: u64 = files.iter().map(|file| file.cells.rows).sum();
        let interval_ms = timing.interval_ms;
        let last = i64::try_from(rows - 1).expect("BUG: fewer rows than a file has bytes");
        let now_ms = Timestamp::now().as_millisecond();
        let start_ms =
            timing.start_ms.unwrap_or_else(|| now_ms.saturating_sub(last.saturating_mul(interval_ms)));
        Ok(Self { files, timing: timing.clone(), clock: Clock { start_ms, interval_ms } })
    }

    /// Rows of all files.
    pub(super) fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.cells.rows).sum()
    }

    /// What will be sent and how times are given, for people.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{} rows in {} to import", self.rows(), files(self.files.len()));
        match &self.timing.column {
            Some(column) => text.push_str(&format!("; times from the column \"{column}\"")),
            None => {
                let how = if self.timing.start_ms.is_some() {
                    ""
                } else {
                    ", so that the last row is now (--start sets it)"
                };
                let start = shown(self.clock.start_ms);
                text.push_str(&format!(
                    "; the files have no times: rows {} ms apart from {start} on{how}",
                    self.clock.interval_ms
                ));
            }
        }
        text
    }
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

/// A time for people.
pub(super) fn shown(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |time| time.to_string())
}

//! The first pass over files of devices' data: finds the devices, the types of the columns and the times of the rows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use model::calendar::exact_of_micros;

use super::header::Column;
use super::rows::{Cells, Roles, Rows, ValueTypes};
use crate::csv_file::{FileError, delimiter_name};
use crate::limits::IMPORT_DEVICES_MAX;
use crate::time::Clock;

/// The device of a file's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceOf {
    /// The device with this name.
    Named(String),
    /// A column names the device of each row.
    Column,
    /// The device with the name of the file.
    FileName,
}

/// The options for rows without a time of their own.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Time of the first row, in microseconds since 1970; `None` puts the last row at the present.
    pub start_us: Option<i64>,
    /// Time between two rows.
    pub interval: Duration,
}

/// A file that can be imported.
#[derive(Debug)]
pub struct FilePlan {
    pub(crate) path: PathBuf,
    pub(crate) columns: Vec<Column>,
    /// Positions of columns without a name, from 0.
    pub(crate) unnamed: Vec<usize>,
    /// The character between cells.
    pub(crate) delimiter: u8,
    pub(crate) cells: Cells,
    pub(crate) seen: Vec<ValueTypes>,
    /// The device of rows that name none.
    pub(crate) device: Option<String>,
}

/// All files, in the order in which they are imported.
#[derive(Debug)]
pub struct Plan {
    pub files: Vec<FilePlan>,
    pub(crate) roles: Roles,
    pub(crate) devices: BTreeSet<String>,
    /// The times of rows without a time of their own.
    pub(crate) clock: Clock,
    is_start_said: bool,
}

impl Plan {
    /// Reads all files to the end.
    pub fn read(paths: &[PathBuf], roles: &Roles, timing: &Timing, of: &DeviceOf) -> anyhow::Result<Self> {
        let (mut files, mut devices) = (Vec::new(), BTreeSet::new());
        for path in paths {
            let mut rows = Rows::open(path, roles)?;
            let device = match of {
                DeviceOf::Named(name) => Some(name.clone()),
                DeviceOf::FileName => Some(stem(path)?),
                DeviceOf::Column => None,
            };
            devices.extend(device.clone());
            while let Some(row) = rows.next()? {
                let Some(name) = row.device.filter(|name| !devices.contains(name)) else { continue };
                devices.insert(name);
                ensure!(
                    devices.len() <= IMPORT_DEVICES_MAX,
                    "the column of the devices has more than {IMPORT_DEVICES_MAX} names; is it the right one?"
                );
            }
            if rows.cells.rows == 0 {
                return Err(FileError::NoRows { path: path.clone() }.into());
            }
            files.push(FilePlan {
                path: path.clone(),
                columns: rows.header.columns.clone(),
                unnamed: rows.header.unnamed.clone(),
                delimiter: rows.delimiter(),
                cells: rows.cells,
                seen: rows.seen,
                device,
            });
        }
        let rows: u64 = files.iter().map(|file| file.cells.rows).sum();
        let interval_us = i64::try_from(timing.interval.as_micros()).context("the interval is too long")?;
        let last = i64::try_from(rows - 1).expect("BUG: fewer rows than a file has bytes");
        let now_us = hub::clock::system_now().millis() * 1_000;
        let start_us =
            timing.start_us.unwrap_or_else(|| now_us.saturating_sub(last.saturating_mul(interval_us)));
        let clock = Clock { start_us, interval_us };
        let is_start_said = timing.start_us.is_some();
        Ok(Self { files, roles: roles.clone(), devices, clock, is_start_said })
    }

    /// The number of rows of all files.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.cells.rows).sum()
    }

    /// Describes the files and the source of the times.
    pub fn describe(&self) -> String {
        let mut text = format!("{} rows in {} to import", self.rows(), files(self.files.len()));
        match &self.roles.time {
            Some(column) => text.push_str(&format!("; times from the column \"{column}\"")),
            None => {
                let how =
                    if self.is_start_said { "" } else { ", so that the last row is now (--start sets it)" };
                let start = exact_of_micros(self.clock.start_us);
                let interval = self.clock.interval_us.unsigned_abs();
                let interval = model::time::shown_duration(Duration::from_micros(interval));
                text.push_str(&format!(
                    "; the files have no times: rows {interval} apart from {start} on{how}"
                ));
            }
        }
        for file in self.files.iter().filter(|file| file.delimiter != b',') {
            let delimiter = delimiter_name(file.delimiter);
            text.push_str(&format!("\n{}: {delimiter} between cells", file.path.display()));
        }
        text
    }
}

/// A file's name without its extension.
fn stem(path: &Path) -> anyhow::Result<String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    Ok(stem
        .with_context(|| format!("{}: no device can be called so; say --device", path.display()))?
        .to_owned())
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

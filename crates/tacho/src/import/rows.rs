//! The rows of one file, with every cell accounted for.

use std::fs::File;
use std::path::{Path, PathBuf};

use csv::{Reader, ReaderBuilder, StringRecord, Trim};
use serde_json::Value;

use super::cell;
use super::header::{Header, HeaderError};
use super::time::TimeFormat;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("cannot read {}", .path.display())]
    Csv {
        path: PathBuf,
        #[source]
        source: csv::Error,
    },
    #[error("{}: {source}", .path.display())]
    Header {
        path: PathBuf,
        #[source]
        source: HeaderError,
    },
    #[error("{}:{line}: {reason}", .path.display())]
    Time { path: PathBuf, line: u64, reason: String },
    #[error("{} has no rows after its first line", .path.display())]
    NoRows { path: PathBuf },
}

/// What the cells of a file were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cells {
    /// Rows after the first line.
    pub rows: u64,
    /// Cells that became values.
    pub values: u64,
    /// Those of them that are text.
    pub texts: u64,
    /// Cells without text in a column with a name.
    pub empty: u64,
    /// Cells that a row lacks at its end.
    pub missing: u64,
    /// Cells in columns without a name, with text in them or not.
    pub unnamed: u64,
    /// Cells beyond the last column that hold text.
    pub beyond: u64,
    /// Empty cells beyond the last column: a comma at the end of a row makes one.
    pub trailing: u64,
    /// Rows in which nothing was left to send.
    pub rows_without_values: u64,
}

impl Cells {
    /// Adds those of another file.
    pub(super) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.texts += other.texts;
        self.empty += other.empty;
        self.missing += other.missing;
        self.unnamed += other.unnamed;
        self.beyond += other.beyond;
        self.trailing += other.trailing;
        self.rows_without_values += other.rows_without_values;
    }
}

/// One row, ready to send.
#[derive(Debug)]
pub(super) struct Row {
    /// From the column with the time, in milliseconds since 1970.
    pub time_ms: Option<i64>,
    /// Index of the header's column, and value.
    pub values: Vec<(usize, Value)>,
}

/// Reads a file row by row.
pub(super) struct Rows {
    pub(super) header: Header,
    pub(super) cells: Cells,
    path: PathBuf,
    reader: Reader<File>,
    record: StringRecord,
    format: TimeFormat,
}

impl Rows {
    /// Opens a file and reads its first line.
    pub(super) fn open(path: &Path, time: Option<&str>, format: &TimeFormat) -> Result<Self, FileError> {
        let csv = |source| FileError::Csv { path: path.into(), source };
        // Rows may have more or fewer cells than the first line: that is counted, not refused.
        let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_path(path).map_err(csv)?;
        let line = reader.headers().map_err(csv)?.clone();
        let header = Header::read(&line, time);
        let header = header.map_err(|source| FileError::Header { path: path.into(), source })?;
        let (cells, record, format) = (Cells::default(), StringRecord::new(), format.clone());
        Ok(Self { header, cells, path: path.into(), reader, record, format })
    }

    /// The next row; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Row>, FileError> {
        let csv = |source| FileError::Csv { path: self.path.clone(), source };
        if !self.reader.read_record(&mut self.record).map_err(csv)? {
            return Ok(None);
        }
        let time_ms = self.time()?;
        let mut values = Vec::with_capacity(self.header.columns.len());
        self.cells.rows += 1;
        for (at, column) in self.header.columns.iter().enumerate() {
            match self.record.get(column.index).map(cell::value) {
                Some(Some(value)) => {
                    self.cells.texts += u64::from(value.is_string());
                    values.push((at, value));
                }
                Some(None) => self.cells.empty += 1,
                None => self.cells.missing += 1,
            }
        }
        let unnamed = self.header.unnamed.iter().filter(|index| **index < self.record.len()).count();
        self.cells.unnamed += unnamed as u64;
        for text in self.record.iter().skip(self.header.width) {
            *(if text.is_empty() { &mut self.cells.trailing } else { &mut self.cells.beyond }) += 1;
        }
        self.cells.values += values.len() as u64;
        self.cells.rows_without_values += u64::from(values.is_empty());
        Ok(Some(Row { time_ms, values }))
    }

    fn time(&self) -> Result<Option<i64>, FileError> {
        let Some(index) = self.header.time else { return Ok(None) };
        let text = self.record.get(index).unwrap_or_default();
        let line = self.record.position().map_or(0, csv::Position::line);
        let wrong = |reason| FileError::Time { path: self.path.clone(), line, reason };
        self.format.parse(text).map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, time: Option<&str>) -> Result<(Vec<Row>, Rows), FileError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        std::fs::write(&path, text).unwrap();
        let mut rows = Rows::open(&path, time, &TimeFormat::Rfc3339)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(row);
        }
        Ok((all, rows))
    }

    #[test]
    fn every_cell_is_accounted_for() {
        let text = "A (),B,,C (x)\r\n1, 2.0,zz, on,\r\n,,,\r\n3\r\n4,5,6,7,,8\r\n";
        let (all, rows) = read(text, None).unwrap();
        assert_eq!(all[0].values, [(0, json!(1)), (1, json!(2.0)), (2, json!("on"))]);
        assert!(all[1].values.is_empty());
        let expected = Cells {
            rows: 4,
            values: 7,
            texts: 1,
            empty: 3,
            missing: 2,
            unnamed: 3,
            beyond: 1,
            trailing: 2,
            rows_without_values: 1,
        };
        assert_eq!(rows.cells, expected);
        let columns = rows.header.columns.len() as u64;
        assert_eq!(expected.values + expected.empty + expected.missing, expected.rows * columns);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_named_with_its_line() {
        let text = "t,a\n2024-05-01T08:00:00Z,1\nnoon,2\n";
        let error = read(text, Some("t")).err().unwrap().to_string();
        assert!(error.contains("x.csv:3: \"noon\" is no time"), "{error}");
        let (all, _) = read("t,a\n2024-05-01T08:00:00Z,1\n", Some("t")).unwrap();
        assert_eq!((all[0].time_ms, all[0].values.len()), (Some(1_714_550_400_000), 1));
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        std::fs::write(&path, b"a\n\xff\xfe\n").unwrap();
        let mut rows = Rows::open(&path, None, &TimeFormat::Rfc3339).unwrap();
        assert!(matches!(rows.next(), Err(FileError::Csv { .. })));
    }
}

//! Reads the rows of one file of devices' data and counts every cell.

use std::path::{Path, PathBuf};

use csv::{StringRecord, Trim};
use serde_json::Value;

use super::header::Header;
use crate::cell::{self, has_decimal_comma, is_not_finite, is_rounded};
use crate::csv_file::{CsvFile, Dialect, FileError, line_of};
use crate::time::{Time, TimeCounts, TimeError, TimeReader};

/// The roles of columns, and the form of the file.
#[derive(Debug, Clone)]
pub struct Roles {
    /// The name of the column with the time.
    pub time: Option<String>,
    /// The reader of the times.
    pub times: TimeReader,
    /// The name of the column with the device.
    pub device: Option<String>,
    /// The form of the file.
    pub dialect: Dialect,
}

/// Counts of the cells of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cells {
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
    /// Cells with text in columns without a name.
    pub unnamed: u64,
    /// Cells beyond the last column that hold text.
    pub beyond: u64,
    /// Empty cells without a column with a name: a comma at the end of a row makes one.
    pub trailing: u64,
    /// Cells such as NaN among numbers.
    pub not_finite: u64,
    /// Numbers that lost digits.
    pub rounded: u64,
    /// Rows whose cells are all empty.
    pub empty_rows: u64,
    /// Rows with a time or a device and no value.
    pub rows_without_values: u64,
    /// Rows without the name of a device.
    pub without_device: u64,
}

/// One row, ready to send.
#[derive(Debug)]
pub(super) struct Row {
    /// From the column with the time.
    pub time: Option<Time>,
    /// From the column with the device.
    pub device: Option<String>,
    /// Index of the header's column, and value. None if the row is left out.
    pub values: Vec<(usize, Value)>,
}

/// The types of values that a column has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ValueTypes {
    numbers: bool,
    texts: bool,
}

impl ValueTypes {
    fn is_numeric(self) -> bool {
        self.numbers && !self.texts
    }
}

/// Reads a file row by row.
pub(super) struct Rows {
    pub(super) header: Header,
    pub(super) cells: Cells,
    /// The types of values of each column, from the rows so far or from the first reading.
    pub(super) seen: Vec<ValueTypes>,
    /// Counts about the times.
    pub(super) times: TimeCounts,
    /// Whether this is the second reading. Only then the columns of numbers are known, in which words such as NaN are not
    /// values.
    second: bool,
    path: PathBuf,
    file: CsvFile,
    record: StringRecord,
    roles: Roles,
}

impl Rows {
    /// Opens a file for the first reading, which finds the types of the columns.
    pub(super) fn open(path: &Path, roles: &Roles) -> Result<Self, FileError> {
        let file = CsvFile::open(path, &roles.dialect, Trim::All)?;
        let header = Header::read(file.header(), roles.time.as_deref(), roles.device.as_deref());
        let header = header.map_err(|source| FileError::Header { path: path.into(), source })?;
        Ok(Self {
            cells: Cells::default(),
            seen: vec![ValueTypes::default(); header.columns.len()],
            header,
            times: TimeCounts::default(),
            second: false,
            path: path.into(),
            file,
            record: StringRecord::new(),
            roles: roles.clone(),
        })
    }

    /// Opens a file for the second reading, with the result of the first.
    pub(super) fn open_again(path: &Path, roles: &Roles, seen: &[ValueTypes]) -> Result<Self, FileError> {
        Ok(Self { second: true, seen: seen.to_vec(), ..Self::open(path, roles)? })
    }

    /// The character between cells.
    pub(super) fn delimiter(&self) -> u8 {
        self.file.delimiter
    }

    /// The next row; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Row>, FileError> {
        if !self.file.read(&mut self.record)? {
            return Ok(None);
        }
        self.cells.rows += 1;
        let mut row = Row { time: None, device: None, values: self.values()? };
        self.count_others();
        if row.values.is_empty() && self.record.iter().all(str::is_empty) {
            self.cells.empty_rows += 1;
            return Ok(Some(row));
        }
        let is_whole = self.time(&mut row) && self.device(&mut row);
        if is_whole {
            self.cells.rows_without_values += u64::from(row.values.is_empty());
        } else {
            row.values.clear();
        }
        self.cells.values += row.values.len() as u64;
        self.cells.texts += row.values.iter().filter(|(_, value)| value.is_string()).count() as u64;
        Ok(Some(row))
    }

    fn values(&mut self) -> Result<Vec<(usize, Value)>, FileError> {
        let mut values = Vec::with_capacity(self.header.columns.len());
        for (at, column) in self.header.columns.iter().enumerate() {
            let Some(text) = self.record.get(column.index) else {
                self.cells.missing += 1;
                continue;
            };
            let Some(value) = cell::value(text, self.roles.dialect.mark()) else {
                self.cells.empty += 1;
                continue;
            };
            if is_not_finite(text) && self.second && self.seen[at].is_numeric() {
                self.cells.not_finite += 1;
                continue;
            }
            if !self.second {
                let seen = &mut self.seen[at];
                seen.numbers |= value.is_number();
                seen.texts |= value.is_string() && !is_not_finite(text);
                if self.roles.dialect.decimal.is_none() && has_decimal_comma(text) {
                    let (path, line) = (self.path.clone(), line_of(&self.record));
                    let (column, cell) = (column.key.clone(), text.to_owned());
                    return Err(FileError::DecimalComma { path, line, column, cell });
                }
            }
            self.cells.rounded +=
                u64::from(value.as_f64().is_some_and(|number| value.is_f64() && is_rounded(text, number)));
            values.push((at, value));
        }
        Ok(values)
    }

    /// Counts the cells without a named column.
    fn count_others(&mut self) {
        let unnamed = self.header.unnamed.iter().filter_map(|index| self.record.get(*index));
        let beyond = self.record.iter().skip(self.header.width);
        for text in unnamed {
            *(if text.is_empty() { &mut self.cells.trailing } else { &mut self.cells.unnamed }) += 1;
        }
        for text in beyond {
            *(if text.is_empty() { &mut self.cells.trailing } else { &mut self.cells.beyond }) += 1;
        }
    }

    /// Reads the time; `false` if the row is left out for it.
    fn time(&mut self, row: &mut Row) -> bool {
        let Some(index) = self.header.time else { return true };
        let text = self.record.get(index).unwrap_or_default();
        let read = match text {
            "" => Err(TimeError::Unknown("it has no time".to_owned())),
            text => self.roles.times.parse(text),
        };
        row.time = self.times.count(read, || format!("line {}", line_of(&self.record)));
        row.time.is_some()
    }

    /// Reads the device; `false` if the row is left out because it names none.
    fn device(&mut self, row: &mut Row) -> bool {
        let Some(index) = self.header.device else { return true };
        row.device = self.record.get(index).filter(|text| !text.is_empty()).map(str::to_owned);
        self.cells.without_device += u64::from(row.device.is_none());
        row.device.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::time::TimeFormat;

    fn roles(time: Option<&str>) -> Roles {
        let times = TimeReader { format: TimeFormat::Rfc3339, zone: None };
        let time = time.map(str::to_owned);
        Roles { time, times, device: None, dialect: Dialect::default() }
    }

    fn read(text: &str, roles: &Roles) -> Result<(Vec<Row>, Rows), FileError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        std::fs::write(&path, text).unwrap();
        let mut first = Rows::open(&path, roles)?;
        while first.next()?.is_some() {}
        let mut rows = Rows::open_again(&path, roles, &first.seen)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(row);
        }
        Ok((all, rows))
    }

    #[test]
    fn every_cell_is_accounted_for() {
        let text = "A (),B,,C (x)\r\n1, 2.0,zz, on,\r\n,,,\r\n3\r\n4,5,6,7,,8\r\n";
        let (all, rows) = read(text, &roles(None)).unwrap();
        assert_eq!(all[0].values, [(0, json!(1)), (1, json!(2.0)), (2, json!("on"))]);
        assert!(all[1].values.is_empty());
        let expected = Cells {
            rows: 4,
            values: 7,
            texts: 1,
            empty: 3,
            missing: 2,
            unnamed: 2,
            beyond: 1,
            trailing: 3,
            empty_rows: 1,
            ..Cells::default()
        };
        assert_eq!(rows.cells, expected);
        let columns = rows.header.columns.len() as u64;
        assert_eq!(expected.values + expected.empty + expected.missing, expected.rows * columns);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_counted_and_the_first_is_named_with_its_line() {
        let text = "t,a\n2024-05-01T08:00:00Z,1\nnoon,2\n,3\n2024-05-01T08:00:01Z,\n";
        let (all, rows) = read(text, &roles(Some("t"))).unwrap();
        assert_eq!(all[0].time, Some(Time { micros: 1_714_550_400_000_000, cut: false, is_chosen: false }));
        assert!(all[1].values.is_empty() && all[2].values.is_empty());
        assert_eq!((rows.times.bad, rows.cells.rows_without_values, rows.cells.values), (2, 1, 1));
        let reason = rows.times.first_bad.unwrap();
        assert!(reason.starts_with("line 3: \"noon\" is not a time"), "{reason}");
    }

    #[test]
    fn words_for_no_number_are_skipped_among_numbers_and_text_elsewhere() {
        let text = "n,t\n1,off\nNaN,nan\ninf,on\n";
        let (all, rows) = read(text, &roles(None)).unwrap();
        assert_eq!(all[1].values, [(1, json!("nan"))]);
        assert_eq!(all[2].values, [(1, json!("on"))]);
        assert_eq!(rows.cells.not_finite, 2);
    }

    #[test]
    fn devices_come_from_a_column() {
        let roles = Roles { device: Some("car".into()), ..roles(None) };
        let (all, rows) = read("car,n\nred,1\n,2\n", &roles).unwrap();
        assert_eq!((all[0].device.as_deref(), all[0].values.len()), (Some("red"), 1));
        assert_eq!((rows.cells.without_device, rows.cells.values), (1, 1));
    }

    #[test]
    fn a_decimal_comma_needs_the_option() {
        let error = read("a;b\n1;x\n1,5;y\n", &roles(None)).err().unwrap().to_string();
        assert!(
            error.contains("x.csv:3: \"1,5\" in the column \"a\"") && error.contains("--decimal ,"),
            "{error}"
        );
        let decimal = |mark| {
            let dialect = Dialect { delimiter: None, decimal: Some(mark) };
            read("a;b\n1,5;y\n", &Roles { dialect, ..roles(None) }).unwrap().0[0].values[0].1.clone()
        };
        assert_eq!(decimal(cell::DecimalMark::Comma), json!(1.5));
        assert_eq!(decimal(cell::DecimalMark::Point), json!("1,5"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        std::fs::write(&path, b"a\n\xff\xfe\n").unwrap();
        let mut rows = Rows::open(&path, &roles(None)).unwrap();
        assert!(matches!(rows.next(), Err(FileError::Csv { .. })));
    }
}

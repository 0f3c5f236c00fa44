//! Makes keys from the first line of a CSV file.
//!
//! Blanks around a name are removed, and so is a unit in parentheses after a blank at its end, or an empty `()`:
//! `ENGINE_RPM ()` is the key `ENGINE_RPM`, `SPEED (km/h)` the key `SPEED` in km/h. Everything else stays as it is written.
//! A column without a name (a trailing comma makes one) is skipped. The report names units and columns without a name.

use csv::StringRecord;

use crate::csv_file::HeaderError;

/// A column that becomes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// Position in the row, from 0.
    pub index: usize,
    pub key: String,
    /// The unit that was in parentheses.
    pub unit: Option<String>,
}

/// The columns of the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The columns with keys, in the order of the file.
    pub columns: Vec<Column>,
    /// Position of the column with the time.
    pub time: Option<usize>,
    /// Position of the column with the device.
    pub device: Option<usize>,
    /// Positions of columns without a name.
    pub unnamed: Vec<usize>,
    /// Number of columns.
    pub width: usize,
}

impl Header {
    /// Reads the first line. `time` and `device` name the columns with the time and the device, as written or as keys.
    pub(super) fn read(
        line: &StringRecord,
        time: Option<&str>,
        device: Option<&str>,
    ) -> Result<Self, HeaderError> {
        let (columns, unnamed) = (Vec::new(), Vec::new());
        let mut header = Self { columns, time: None, device: None, unnamed, width: line.len() };
        for (index, text) in line.iter().enumerate() {
            let (key, unit) = split_unit(text.trim_start_matches('\u{feff}').trim());
            let is = |wanted: Option<&str>| wanted.is_some_and(|it| it.trim() == text.trim() || it == key);
            if key.is_empty() {
                header.unnamed.push(index);
            } else if header.time.is_none() && is(time) {
                header.time = Some(index);
            } else if header.device.is_none() && is(device) {
                header.device = Some(index);
            } else {
                let (key, unit) = (key.to_owned(), unit.map(str::to_owned));
                header.columns.push(Column { index, key, unit });
            }
        }
        header.check(time, device)?;
        Ok(header)
    }

    fn check(&self, time: Option<&str>, device: Option<&str>) -> Result<(), HeaderError> {
        let wanted = [("the time", time, self.time), ("the device", device, self.device)];
        for (what, wanted, found) in wanted {
            if let (Some(wanted), None) = (wanted, found) {
                let known = self.columns.iter().map(|column| column.key.clone()).collect();
                return Err(HeaderError::NoColumn { what, wanted: wanted.into(), known });
            }
        }
        if self.columns.is_empty() {
            return Err(HeaderError::Empty);
        }
        for (at, column) in self.columns.iter().enumerate() {
            if let Some(first) = self.columns[..at].iter().find(|earlier| earlier.key == column.key) {
                let (key, first, second) = (column.key.clone(), first.index + 1, column.index + 1);
                return Err(HeaderError::Duplicate { key, first, second });
            }
            if let Err(error) = model::name::check_key(&column.key) {
                return Err(HeaderError::Name { position: column.index + 1, reason: error.to_string() });
            }
        }
        Ok(())
    }
}

/// Splits a unit off the end of a name.
fn split_unit(name: &str) -> (&str, Option<&str>) {
    let Some((before, unit)) = name.strip_suffix(')').and_then(|open| open.rsplit_once('(')) else {
        return (name, None);
    };
    let (key, unit) = (before.trim_end(), unit.trim());
    match (key.is_empty(), unit.is_empty(), key.len() < before.len()) {
        (false, true, _) => (key, None),
        (false, false, true) => (key, Some(unit)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], time: Option<&str>) -> Result<Header, HeaderError> {
        Header::read(&StringRecord::from(names.to_vec()), time, None)
    }

    fn keys(header: &Header) -> Vec<&str> {
        header.columns.iter().map(|column| column.key.as_str()).collect()
    }

    #[test]
    fn blanks_and_empty_parentheses_are_dropped_and_units_kept_apart() {
        let header =
            read(&["ENGINE_RPM ()", " SPEED (km/h) ", "f(x)", "a b", "T()", "(x)", ""], None).unwrap();
        assert_eq!(keys(&header), ["ENGINE_RPM", "SPEED", "f(x)", "a b", "T", "(x)"]);
        let units: Vec<_> = header.columns.iter().filter_map(|column| column.unit.as_deref()).collect();
        assert_eq!(units, ["km/h"]);
        assert_eq!((header.unnamed, header.width), (vec![6], 7));
    }

    #[test]
    fn two_columns_of_one_key_are_both_named() {
        let error = read(&["RPM ()", "SPEED", "RPM"], None).unwrap_err();
        assert_eq!(error, HeaderError::Duplicate { key: "RPM".into(), first: 1, second: 3 });
    }

    #[test]
    fn the_column_of_the_time_is_found_by_either_name_and_is_not_a_key() {
        for name in ["time (s)", "time"] {
            let header = read(&["time (s)", "a"], Some(name)).unwrap();
            assert_eq!((header.time, keys(&header)), (Some(0), vec!["a"]));
        }
        let error = read(&["t", "a"], Some("time")).unwrap_err().to_string();
        assert!(error.contains("no column \"time\"") && error.ends_with("the file has t, a"), "{error}");
    }

    #[test]
    fn a_line_without_names_is_not_a_header() {
        assert_eq!(read(&["", " "], None), Err(HeaderError::Empty));
        assert!(matches!(read(&[&"k".repeat(300)], None), Err(HeaderError::Name { position: 1, .. })));
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_name() {
        assert_eq!(keys(&read(&["\u{feff}a", "b"], None).unwrap()), ["a", "b"]);
    }
}

//! The values of one line.

use model::Value;
use virtual_sensors::{CsvColumn, CsvFile, CsvFormat, TimePattern, TimeZone};

use super::line::split;

/// How the columns of a file are read.
pub(super) struct Columns {
    columns: Vec<Column>,
    separator: char,
    quote: char,
    zone: TimeZone,
    bad_values: Vec<String>,
}

struct Column {
    name: String,
    kind: Kind,
}

enum Kind {
    Number,
    Integer,
    Text,
    /// One time in several columns, with the separator between their patterns.
    Time {
        pattern: TimePattern,
        parts: Vec<Part>,
    },
    /// A later part of a time.
    OfTime,
}

/// A part of a time: its column, and the length to which it is padded.
struct Part {
    column: usize,
    padded_to: usize,
}

/// A line: its time in milliseconds, and the values of its fields.
pub(super) struct Decoded<'c> {
    pub(super) timed: Option<i64>,
    pub(super) values: Vec<(&'c str, Value)>,
}

impl Columns {
    /// # Errors
    /// Parts of a time have no pattern together.
    pub(super) fn of(file: &CsvFile) -> Result<Self, String> {
        let columns = (0..file.columns.len()).map(|at| Column::of(file, at)).collect::<Result<_, _>>()?;
        let (separator, quote) = (file.separator, file.quote);
        Ok(Self { columns, separator, quote, zone: file.zone, bad_values: file.bad_values.clone() })
    }

    /// The values of a line. A column that the line does not have has no value; more columns are not read.
    ///
    /// # Errors
    /// Names the column and what is wrong with it.
    pub(super) fn decode(&self, line: &[u8]) -> Result<Decoded<'_>, String> {
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8 text".to_owned())?;
        let cells = split(line, self.separator, self.quote)?;
        let cell = |at: usize| cells.get(at).map(|cell| &**cell).filter(|cell| self.is_value(cell));
        let mut decoded = Decoded { timed: None, values: Vec::with_capacity(self.columns.len()) };
        for (at, column) in self.columns.iter().enumerate() {
            let value = match &column.kind {
                Kind::OfTime => continue,
                Kind::Time { pattern, parts } => self.time(pattern, parts, &cell, &column.name)?,
                _ => match cell(at) {
                    Some(text) => Some(column.value(text)?),
                    None => None,
                },
            };
            match value {
                None => {}
                Some(value) if column.name == "timed" => decoded.timed = Some(millis(&value)?),
                Some(value) => decoded.values.push((column.name.as_str(), value)),
            }
        }
        Ok(decoded)
    }

    fn is_value(&self, cell: &str) -> bool {
        let text = cell.trim();
        !text.is_empty() && !self.bad_values.iter().any(|bad| bad.eq_ignore_ascii_case(text))
    }

    fn time<'t>(
        &self,
        pattern: &TimePattern,
        parts: &[Part],
        cell: &impl Fn(usize) -> Option<&'t str>,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let mut text = String::new();
        for (at, part) in parts.iter().enumerate() {
            let Some(cell) = cell(part.column) else { return Ok(None) };
            if at > 0 {
                text.push(self.separator);
            }
            let cell = cell.trim();
            let missing = part.padded_to.saturating_sub(cell.chars().count());
            text.extend(std::iter::repeat_n('0', missing));
            text.push_str(cell);
        }
        match pattern.millis(&text, self.zone) {
            Some(millis) => Ok(Some(Value::I64(millis))),
            None => Err(format!("{text:?} in the column {name} is not a time of its format and zone")),
        }
    }
}

impl Column {
    fn of(file: &CsvFile, at: usize) -> Result<Self, String> {
        let CsvColumn { name, format } = &file.columns[at];
        let kind = match format {
            CsvFormat::Number => Kind::Number,
            CsvFormat::Integer => Kind::Integer,
            CsvFormat::Text => Kind::Text,
            CsvFormat::Time { .. } if file.columns[..at].iter().any(|other| other.name == *name) => {
                Kind::OfTime
            }
            CsvFormat::Time { .. } => time(file, name)?,
        };
        Ok(Self { name: name.clone(), kind })
    }

    fn value(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let no_number = || format!("{text:?} in the column {} is not a number", self.name);
        match self.kind {
            Kind::Integer => trimmed.parse().map(Value::I64).map_err(|_| no_number()),
            Kind::Number => match (trimmed.parse::<i64>(), trimmed.parse::<f64>()) {
                (Ok(number), _) => Ok(Value::I64(number)),
                (_, Ok(number)) if number.is_finite() => Ok(Value::F64(number)),
                _ => Err(no_number()),
            },
            Kind::Text | Kind::Time { .. } | Kind::OfTime => Ok(Value::String(text.into())),
        }
    }
}

/// All columns of one name are parts of one time.
fn time(file: &CsvFile, name: &str) -> Result<Kind, String> {
    let mut text = String::new();
    let mut parts = Vec::new();
    for (column, said) in file.columns.iter().enumerate().filter(|(_, column)| column.name == name) {
        let CsvFormat::Time { pattern, is_padded } = &said.format else { continue };
        if !parts.is_empty() {
            text.push('\'');
            text.push(file.separator);
            text.push('\'');
        }
        text.push_str(pattern);
        let padded_to = if *is_padded { pattern.chars().count() } else { 0 };
        parts.push(Part { column, padded_to });
    }
    Ok(Kind::Time { pattern: TimePattern::parse(&text)?, parts })
}

fn millis(value: &Value) -> Result<i64, String> {
    match value {
        Value::I64(millis) => Ok(*millis),
        Value::F64(millis) if millis.abs() < 9e18 => Ok(*millis as i64),
        _ => Err("the time is not a number of milliseconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, CsvFormat)]) -> Columns {
        let columns =
            columns.iter().map(|(name, format)| CsvColumn { name: (*name).into(), format: format.clone() });
        let file = CsvFile {
            file: "f.csv".into(),
            columns: columns.collect(),
            separator: ',',
            quote: '"',
            skip_first_lines: 0,
            zone: TimeZone::parse("+01:00").unwrap(),
            bad_values: vec!["nan".into()],
            sampling_ms: 1,
        };
        Columns::of(&file).unwrap()
    }

    fn time(pattern: &str, is_padded: bool) -> CsvFormat {
        CsvFormat::Time { pattern: pattern.into(), is_padded }
    }

    #[test]
    fn a_line_has_a_time_and_values() {
        let columns = columns(&[
            ("timed", time("d.M.yyyy", false)),
            ("timed", time("HHmm", true)),
            ("x", CsvFormat::Number),
            ("n", CsvFormat::Integer),
            ("t", CsvFormat::Text),
        ]);
        let decoded = columns.decode(b"1.1.1970,130,2.5,7,007").unwrap();
        assert_eq!(decoded.timed, Some(30 * 60_000));
        let expected = [("x", Value::F64(2.5)), ("n", Value::I64(7)), ("t", Value::String("007".into()))];
        assert_eq!(decoded.values, expected);
        let decoded = columns.decode(b"2.1.1970,0000,NaN,").unwrap();
        assert_eq!((decoded.timed, decoded.values.len()), (Some(82_800_000), 0));
    }

    #[test]
    fn a_fault_names_its_column() {
        let columns =
            columns(&[("timed", CsvFormat::Integer), ("x", CsvFormat::Number), ("u", time("HH:mm", false))]);
        let fault = |line: &[u8]| columns.decode(line).err().unwrap();
        assert!(fault(b"1,two").contains("\"two\" in the column x is not a number"));
        assert!(fault(b"now,2").contains("column timed"));
        assert!(fault(b"1,2,25:00").contains("column u"));
        assert!(fault(b"1,\xff").contains("UTF-8"));
        assert!(fault(b"1,inf").contains("not a number"));
    }
}

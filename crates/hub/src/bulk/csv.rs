//! CSV (RFC 4180 with line feeds) that keeps null and empty text apart.
//!
//! Text holds integers and floats alike, so the exact integers of a key need no column of their own: they stand in that of all its
//! numbers.

use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use model::Timestamp;
use store::TableColumns;

/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;

pub(super) struct CsvWriter<'a> {
    out: &'a mut (dyn Write + Send),
    /// The columns that are written.
    columns: Vec<Numbered>,
    lines: Vec<u8>,
}

/// A column by its number in the batches.
struct Numbered {
    column: usize,
    /// That of the exact integers, which are written instead.
    integers: Option<usize>,
}

impl<'a> CsvWriter<'a> {
    /// Writes the names of the columns of a table.
    pub(super) fn begin(out: &'a mut (dyn Write + Send), table: &TableColumns) -> io::Result<Self> {
        let schema = table.schema();
        let of = |column| Numbered { column, integers: table.exact_integers(column) };
        let mut columns: Vec<Numbered> = (0..schema.fields().len()).map(of).collect();
        let integers: Vec<usize> = columns.iter().filter_map(|of| of.integers).collect();
        columns.retain(|of| !integers.contains(&of.column));
        let names: Vec<&String> = columns.iter().map(|of| schema.field(of.column).name()).collect();
        let mut writer = Self { out, columns: Vec::new(), lines: Vec::new() };
        for (index, name) in names.into_iter().enumerate() {
            writer.separate(index);
            put_text(&mut writer.lines, name);
        }
        writer.end_line()?;
        Ok(Self { columns, ..writer })
    }

    /// Writes the rows of all columns of the table.
    pub(super) fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            for (index, of) in self.columns.iter().enumerate() {
                if index > 0 {
                    self.lines.push(b',');
                }
                let integers = of.integers.map(|integers| batch.column(integers));
                let exact = integers.filter(|integers| integers.is_valid(row));
                put_cell(&mut self.lines, exact.unwrap_or(batch.column(of.column)).as_ref(), row)?;
            }
            self.lines.push(b'\n');
        }
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.lines.push(b',');
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.lines.push(b'\n');
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

fn put_cell(out: &mut Vec<u8>, column: &dyn Array, row: usize) -> io::Result<()> {
    if column.is_null(row) {
        return Ok(());
    }
    match column.data_type() {
        DataType::Boolean => {
            out.extend_from_slice(if column.as_boolean().value(row) { b"true" } else { b"false" })
        }
        DataType::Int64 => write!(out, "{}", column.as_primitive::<Int64Type>().value(row))?,
        // The shortest text that reads back as the same number.
        DataType::Float64 => write!(out, "{:?}", column.as_primitive::<Float64Type>().value(row))?,
        DataType::Utf8View => put_text(out, column.as_string_view().value(row)),
        DataType::Timestamp(_, _) => {
            put_time(out, column.as_primitive::<TimestampMicrosecondType>().value(row))?;
        }
        other => return Err(io::Error::other(format!("BUG: a table has no columns of type {other}"))),
    }
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) && text.trim() == text {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

/// A time in UTC with as many digits as it has.
fn put_time(out: &mut Vec<u8>, micros: i64) -> io::Result<()> {
    let (second, fraction) = (micros.div_euclid(SECOND_US), micros.rem_euclid(SECOND_US));
    let in_day = second.rem_euclid(86_400);
    let (hour, minute, second) = (in_day / 3_600, in_day / 60 % 60, in_day % 60);
    write!(out, "{}T{hour:02}:{minute:02}:{second:02}", Timestamp::from_micros(micros).date())?;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    out.push(b'Z');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_have_the_digits_they_need() {
        let time = |micros| text(|out| put_time(out, micros).unwrap());
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(time(1_714_550_400_250_000), "2024-05-01T08:00:00.25Z");
        assert_eq!(time(951_782_400_000_000), "2000-02-29T00:00:00Z");
    }

    #[test]
    fn text_that_could_be_misread_is_quoted() {
        let quoted = |text_: &str| text(|out| put_text(out, text_));
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted(""), "\"\"");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(quoted(" x"), "\" x\"");
    }
}

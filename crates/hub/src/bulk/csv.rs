//! Exports tables as CSV.
//!
//! A CSV column can hold integers and floats, so the exact integers of a key need no column of their own: they are in the column
//! of its numbers.

use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use model::Timestamp;
use store::TableColumns;

use crate::csv::{CsvLines, Dialect};

/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;

pub(super) struct CsvWriter<'a> {
    out: &'a mut (dyn Write + Send),
    /// The exported columns.
    columns: Vec<Numbered>,
    lines: CsvLines,
}

/// A column by its index in the batches.
struct Numbered {
    column: usize,
    /// The column of the exact integers of the same key, which take precedence.
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
        let mut writer = Self { out, columns: Vec::new(), lines: CsvLines::new(Dialect::EXPORT) };
        names.into_iter().for_each(|name| writer.lines.text_cell(name.as_bytes()));
        writer.lines.end_line();
        writer.write()?;
        Ok(Self { columns, ..writer })
    }

    /// Writes the rows of all columns of the table.
    pub(super) fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        for row in 0..batch.num_rows() {
            for of in &self.columns {
                self.lines.begin_cell();
                let integers = of.integers.map(|integers| batch.column(integers));
                let exact = integers.filter(|integers| integers.is_valid(row));
                put_cell(&mut self.lines, exact.unwrap_or(batch.column(of.column)).as_ref(), row)?;
            }
            self.lines.end_line();
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(self.lines.lines())?;
        self.lines.clear();
        Ok(())
    }
}

fn put_cell(lines: &mut CsvLines, column: &dyn Array, row: usize) -> io::Result<()> {
    if column.is_null(row) {
        return Ok(());
    }
    let out = lines.out();
    match column.data_type() {
        DataType::Boolean => {
            out.extend_from_slice(if column.as_boolean().value(row) { b"true" } else { b"false" })
        }
        DataType::Int64 => write!(out, "{}", column.as_primitive::<Int64Type>().value(row))?,
        // The shortest text that reads back as the same number.
        DataType::Float64 => write!(out, "{:?}", column.as_primitive::<Float64Type>().value(row))?,
        DataType::Utf8View => lines.text(column.as_string_view().value(row).as_bytes()),
        DataType::Timestamp(_, _) => {
            put_time(out, column.as_primitive::<TimestampMicrosecondType>().value(row))?;
        }
        other => return Err(io::Error::other(format!("BUG: a table has no columns of type {other}"))),
    }
    Ok(())
}

/// Writes a time in UTC with as many decimals as necessary.
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
}

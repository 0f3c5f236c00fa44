//! Writes rows as COPY does: text with escapes, CSV, or PostgreSQL's binary form (its manual, "COPY", "File Formats").

use bytes::{Buf, BufMut, BytesMut};

use super::copy_statement::{CopyFormat, CopyOptions, ForceQuote};
use super::error::PgError;
use super::rows::Page;

/// The begin of the binary form: a signature, no flags and no extension.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end of the binary form.
const BINARY_TRAILER: i16 = -1;

/// Writes the pieces of one COPY.
pub(super) struct CopyWriter<'a> {
    options: &'a CopyOptions,
    /// Whether each column is quoted always.
    is_quoted: Vec<bool>,
    /// Whether the binary header is written. Clients expect it before the first row in one message.
    has_begun: bool,
    /// A row in the form of a DataRow.
    row: BytesMut,
}

impl<'a> CopyWriter<'a> {
    pub(super) fn new(options: &'a CopyOptions, names: &[String]) -> Result<Self, PgError> {
        let is_quoted = match &options.force_quote {
            ForceQuote::All => vec![true; names.len()],
            ForceQuote::Columns(columns) => {
                if let Some(unknown) = columns.iter().find(|column| !names.contains(column)) {
                    let message = format!("FORCE_QUOTE column {unknown:?} is not copied");
                    return Err(PgError::new("42703", message));
                }
                names.iter().map(|name| columns.contains(name)).collect()
            }
        };
        Ok(Self { options, is_quoted, has_begun: false, row: BytesMut::new() })
    }

    /// Appends the line with the names of the columns.
    pub(super) fn write_names(&self, names: &[String], out: &mut BytesMut) {
        let is_only = names.len() == 1;
        for (index, name) in names.iter().enumerate() {
            self.separate(index, out);
            match self.options.format {
                CopyFormat::Csv => self.write_csv(name.as_bytes(), false, is_only, out),
                _ => self.write_escaped(name.as_bytes(), out),
            }
        }
        out.put_u8(b'\n');
    }

    /// Appends a row.
    pub(super) fn write(&mut self, page: &mut Page, row: usize, out: &mut BytesMut) -> Result<(), PgError> {
        if self.options.format == CopyFormat::Binary {
            self.begin(out);
            return page.write(row, out);
        }
        let mut values = std::mem::take(&mut self.row);
        values.clear();
        page.write(row, &mut values)?;
        self.write_text(&values, out);
        self.row = values;
        Ok(())
    }

    /// Appends the end of the binary form.
    pub(super) fn end(&mut self, out: &mut BytesMut) {
        self.begin(out);
        out.put_i16(BINARY_TRAILER);
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if !self.has_begun {
            out.put_slice(BINARY_HEADER);
            self.has_begun = true;
        }
    }

    /// Writes the values of a DataRow as a line.
    fn write_text(&self, mut values: &[u8], out: &mut BytesMut) {
        let columns = usize::from(values.get_u16());
        for index in 0..columns {
            self.separate(index, out);
            let Ok(length) = usize::try_from(values.get_i32()) else {
                out.put_slice(self.options.null.as_bytes());
                continue;
            };
            let (value, rest) = values.split_at(length);
            values = rest;
            match self.options.format {
                CopyFormat::Csv => self.write_csv(value, self.is_quoted[index], columns == 1, out),
                _ => self.write_escaped(value, out),
            }
        }
        out.put_u8(b'\n');
    }

    fn separate(&self, index: usize, out: &mut BytesMut) {
        if index > 0 {
            out.put_u8(self.options.delimiter);
        }
    }

    fn write_escaped(&self, value: &[u8], out: &mut BytesMut) {
        for byte in value {
            let escaped = match byte {
                b'\\' => b'\\',
                b'\x08' => b'b',
                b'\x0c' => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'\x0b' => b'v',
                delimiter if *delimiter == self.options.delimiter => *delimiter,
                other => {
                    out.put_u8(*other);
                    continue;
                }
            };
            out.put_slice(&[b'\\', escaped]);
        }
    }

    /// Quotes a value if it would be read as something else.
    fn write_csv(&self, value: &[u8], is_quoted: bool, is_only: bool, out: &mut BytesMut) {
        let CopyOptions { delimiter, quote, escape, null, .. } = self.options;
        let is_special = |byte: &u8| [*delimiter, *quote, b'\n', b'\r'].contains(byte);
        let is_end = is_only && value == b"\\.";
        if !is_quoted && !is_end && value != null.as_bytes() && !value.iter().any(is_special) {
            return out.put_slice(value);
        }
        out.put_u8(*quote);
        for byte in value {
            if byte == quote || byte == escape {
                out.put_u8(*escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(*quote);
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement::{Statement, parse};
    use super::*;

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut row = Vec::new();
        row.put_u16(values.len() as u16);
        for value in values {
            row.put_i32(value.map_or(-1, |value| value.len() as i32));
            row.put_slice(value.unwrap_or_default().as_bytes());
        }
        row
    }

    fn line(statement: &str, values: &[Option<&str>]) -> String {
        let Ok(Statement::Copy { options, .. }) = parse(statement) else { panic!("{statement}") };
        let names: Vec<String> = (0..values.len()).map(|index| format!("c{index}")).collect();
        let mut out = BytesMut::new();
        CopyWriter::new(&options, &names).unwrap().write_text(&row(values), &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn lines_are_those_of_postgresql() {
        let values = [Some("a\tb\\c\nd"), None, Some(""), Some("x,\"y\"")];
        assert_eq!(line("COPY t TO STDOUT", &values), "a\\tb\\\\c\\nd\t\\N\t\tx,\"y\"\n");
        assert_eq!(line("COPY t TO STDOUT CSV", &values), "\"a\tb\\c\nd\",,\"\",\"x,\"\"y\"\"\"\n");
        assert_eq!(line("COPY t TO STDOUT CSV FORCE QUOTE c0", &[Some("a"), Some("b")]), "\"a\",b\n");
        assert_eq!(line("COPY t TO STDOUT (DELIMITER '|', NULL 'x')", &[Some("a|b"), None]), "a\\|b|x\n");
        assert_eq!(line("COPY t TO STDOUT CSV", &[Some("\\.")]), "\"\\.\"\n");
    }
}

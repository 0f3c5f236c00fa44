//! Reads files in InfluxDB's line protocol as Arrow batches, one per table and piece of the file.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use wire::line::{LINE_BYTES_MAX, Line};

use crate::file_format::Precision;
use crate::limits::{IMPORT_CELLS_MAX, IMPORT_PIECE_BYTES};
use crate::table_rows::TableRows;

/// An open file.
pub(super) struct LineFile {
    path: PathBuf,
    reader: BufReader<File>,
    precision: Precision,
    /// The beginning of a line whose end is not read yet.
    begun: Vec<u8>,
    /// Complete lines, and the bytes of them that are rows already.
    text: String,
    taken: usize,
    position: u64,
    /// Lines that are not understood or whose time cannot be represented, and the reason for the first.
    pub(super) bad: u64,
    pub(super) first_bad: Option<String>,
    /// Times with digits finer than microseconds.
    pub(super) cut_times: u64,
    lines: u64,
}

impl LineFile {
    pub(super) fn open(path: &Path, precision: Precision) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(IMPORT_PIECE_BYTES, file),
            precision,
            begun: Vec::new(),
            text: String::new(),
            taken: 0,
            position: 0,
            bad: 0,
            first_bad: None,
            cut_times: 0,
            lines: 0,
        })
    }

    /// Bytes of the file that were read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The rows of the next lines, by table; `None` after the last.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<(String, RecordBatch)>>> {
        if self.taken >= self.text.len() {
            let Some(text) = self.piece()? else { return Ok(None) };
            (self.text, self.taken) = (text, 0);
        }
        let text = std::mem::take(&mut self.text);
        let mut rest = &text[self.taken..];
        let mut tables: BTreeMap<String, TableRows> = BTreeMap::new();
        let mut cells = 0;
        while cells < IMPORT_CELLS_MAX
            && let Some(line) = wire::line::next_line(&mut rest)
        {
            self.lines += 1;
            let row = line.map_err(|error| error.to_string()).and_then(|line| {
                check(&line)?;
                let time = line.time.map(|time| self.precision.unit().time(time)).transpose()?;
                self.cut_times += u64::from(time.is_some_and(|time| time.cut));
                Ok((line, time.map(|time| time.micros)))
            });
            match row {
                Ok((line, micros)) => cells += push(&mut tables, line, micros),
                Err(reason) => {
                    self.bad += 1;
                    self.first_bad.get_or_insert_with(|| {
                        format!("line {}, not counting comments: {reason}", self.lines)
                    });
                }
            }
        }
        self.taken = text.len() - rest.len();
        self.text = text;
        let batches = tables.into_iter().map(|(table, rows)| Ok((table, rows.finish()?)));
        Ok(Some(batches.collect::<Result<_, ArrowError>>()?))
    }

    /// The next complete lines; at the end of the file also a line without a line end.
    fn piece(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            let read =
                self.reader.fill_buf().with_context(|| format!("cannot read {}", self.path.display()))?;
            let bytes = read.len();
            self.begun.extend_from_slice(read);
            self.reader.consume(bytes);
            if self.position == 0 && self.begun.starts_with("\u{feff}".as_bytes()) {
                self.begun.drain(..3);
            }
            self.position += bytes as u64;
            if bytes == 0 && self.begun.is_empty() {
                return Ok(None);
            }
            // The cut is after a line break, so never within a character.
            let breaks = match bytes {
                0 => self.begun.len(),
                _ => self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            };
            let text = match std::str::from_utf8(&self.begun[..breaks]) {
                Ok(text) => text,
                Err(error) => {
                    let at = self.position - self.begun.len() as u64 + error.valid_up_to() as u64;
                    bail!("the file is not UTF-8 at byte {at}; write it as UTF-8 (iconv)");
                }
            };
            let whole = if bytes == 0 { text.len() } else { wire::line::whole_lines(text) };
            if whole > 0 {
                let piece = text[..whole].to_owned();
                self.begun.drain(..whole);
                return Ok(Some(piece));
            }
            if self.begun.len() > LINE_BYTES_MAX + IMPORT_PIECE_BYTES {
                bail!("a line is longer than {LINE_BYTES_MAX} bytes; is this a file in line protocol?");
            }
        }
    }
}

/// Adds a row to its table. Returns the number of cells that it takes.
fn push(tables: &mut BTreeMap<String, TableRows>, line: Line<'_>, micros: Option<i64>) -> usize {
    if !tables.contains_key(line.measurement.as_ref()) {
        tables.insert(line.measurement.to_string(), TableRows::default());
    }
    let rows = tables.get_mut(line.measurement.as_ref()).expect("BUG: it was just inserted");
    let before = rows.cells();
    rows.push(line, micros);
    rows.cells() - before
}

fn check(line: &Line<'_>) -> Result<(), String> {
    model::name::check_table(&line.measurement).map_err(|error| error.to_string())?;
    let mut seen = HashSet::with_capacity(line.tags.len() + line.fields.len());
    for (key, _) in &line.fields {
        model::name::check_key(key).map_err(|error| error.to_string())?;
        if !seen.insert(key.as_ref()) {
            return Err(format!("the field {key:?} appears twice"));
        }
    }
    seen.clear();
    match line.tags.iter().find(|(key, _)| !seen.insert(key.as_ref())) {
        Some((key, _)) => Err(format!("the tag {key:?} appears twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, TimestampMicrosecondType};
    use store::table::COLUMN_NAME;

    use super::*;
    use crate::table_rows::COLUMN_ROWS_MIN;

    fn read(text: &[u8], precision: Precision) -> anyhow::Result<(Vec<(String, RecordBatch)>, LineFile)> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("f.lp");
        std::fs::write(&path, text)?;
        let mut file = LineFile::open(&path, precision)?;
        let mut batches = Vec::new();
        while let Some(piece) = file.next()? {
            batches.extend(piece);
        }
        Ok((batches, file))
    }

    #[test]
    fn rows_of_a_table_have_a_column_for_each_tag_and_each_type_of_a_field() {
        let text = b"m,t=a f=1 1000\nm,u=b f=2i,g=t 2000\nother f=\"x\" 3000\nm f=3\n";
        let (batches, file) = read(text, Precision::Ns).unwrap();
        assert_eq!((batches.len(), file.bad, file.cut_times), (2, 0, 0));
        let (table, rows) = &batches[0];
        assert_eq!((table.as_str(), rows.num_rows()), ("m", 3));
        let names: Vec<&str> =
            rows.schema_ref().fields().iter().map(|field| field.metadata()[COLUMN_NAME].as_str()).collect();
        assert_eq!(names, ["ts", "t", "u", "g", "f", "f"]);
        let ts = rows.column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!((ts.value(0), ts.value(1), ts.is_null(2)), (1, 2, true));
        let floats = rows.column(5).as_primitive::<Float64Type>();
        assert_eq!((floats.value(0), floats.is_null(1), floats.value(2)), (1.0, true, 3.0));
    }

    #[test]
    fn invalid_lines_are_counted_with_the_first_reason() {
        let text = b"# c\nm f=1 1\nm f= 2\nm f=1,f=2 3\nm f=1 9223372036854775807\n";
        let (batches, file) = read(text, Precision::S).unwrap();
        assert_eq!((batches[0].1.num_rows(), file.bad), (1, 3));
        assert!(
            file.first_bad
                .unwrap()
                .starts_with("line 2, not counting comments: missing field value at byte 4")
        );
        let error = read(b"m f=1 1\nm f=\xff 2\n", Precision::S).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("the file is not UTF-8 at byte 12"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_not_a_part_of_a_table() {
        let (batches, _) = read("\u{feff}m f=1 1\n".as_bytes(), Precision::S).unwrap();
        assert_eq!(batches[0].0, "m");
        assert!(read(b"\xff\xfem\0 \0", Precision::S).is_err());
    }

    #[test]
    fn times_finer_than_microseconds_are_counted() {
        let (_, file) =
            read(b"m f=1 1714550400000000001\nm f=1 1714550400000001000\n", Precision::Ns).unwrap();
        assert_eq!((file.cut_times, file.bad), (1, 0));
    }

    #[test]
    fn lines_with_many_fields_and_tables_are_read_a_few_at_once() {
        for of in [|n: usize| format!("m f{n}=1 {n}\n"), |n: usize| format!("m{n} f=1 {n}\n")] {
            let text: String = (0..20_000).map(of).collect();
            let (batches, file) = read(text.as_bytes(), Precision::S).unwrap();
            let rows: usize = batches.iter().map(|(_, rows)| rows.num_rows()).sum();
            assert_eq!((rows, file.bad), (20_000, 0));
            for (_, rows) in &batches {
                assert!(rows.num_rows() * rows.num_columns() < 2 * IMPORT_CELLS_MAX);
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.lp");
        std::fs::write(&path, (0..20_000).map(|n| format!("m{n} f=1 1\n")).collect::<String>()).unwrap();
        let first = LineFile::open(&path, Precision::S).unwrap().next().unwrap().unwrap();
        assert!(first.len() <= IMPORT_CELLS_MAX / COLUMN_ROWS_MIN, "{} tables", first.len());
    }

    #[test]
    fn a_line_without_an_end_is_refused_and_not_buffered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.lp");
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let mut file = LineFile::open(&path, Precision::S).unwrap();
        let error = file.next().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("longer than 1048576 bytes"), "{error}");
        assert!(file.position() <= 3 * IMPORT_PIECE_BYTES as u64, "{}", file.position());
    }

    #[test]
    fn lines_across_pieces_are_read_whole() {
        let mut text = String::new();
        let lines = 3 * IMPORT_PIECE_BYTES / 40;
        for line in 0..lines {
            text.push_str(&format!("m,t=\u{e4} f=\"{line}\nsecond half of a text\" {line}\n"));
        }
        let (batches, file) = read(text.as_bytes(), Precision::Us).unwrap();
        assert!(batches.len() > 2);
        assert_eq!((batches.iter().map(|(_, rows)| rows.num_rows()).sum::<usize>(), file.bad), (lines, 0));
    }
}

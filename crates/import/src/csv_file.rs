//! Opens CSV files: finds the delimiter, refuses other kinds of files, knows the line of a row.
//!
//! With a wrong delimiter a file would become one column. So the first line decides unless `--delimiter` is given, and an
//! ambiguous line is an error that names the option.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ReaderBuilder, StringRecord, Trim};
use model::limits::COLUMNS_PER_TABLE_MAX;

use super::cell::DecimalMark;
use crate::limits::{CSV_HEAD_BYTES, CSV_ROW_BYTES_MAX};

/// The options for the CSV form files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dialect {
    /// The character between cells; `None` looks for it in the first line.
    pub delimiter: Option<u8>,
    /// The decimal mark of numbers; `None` is a point, and a number with a comma is an error that names the option.
    pub decimal: Option<DecimalMark>,
}

impl Dialect {
    pub(super) fn mark(&self) -> DecimalMark {
        self.decimal.unwrap_or_default()
    }
}

/// The delimiters that are looked for, most common first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Reads `--delimiter`: one character, or `tab`.
pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text.eq_ignore_ascii_case("tab") || text == "\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(format!("\"{text}\" cannot be between cells; use one character such as ; or the word tab")),
    }
}

/// The reason why the first line cannot be used. Columns are counted from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("the columns {first} and {second} both become the key \"{key}\"; rename one of them in the file")]
    Duplicate { key: String, first: usize, second: usize },
    #[error("there is no column \"{wanted}\" for {what}; the file has {}", .known.join(", "))]
    NoColumn { what: &'static str, wanted: String, known: Vec<String> },
    #[error("no column has a name; the first line must name the columns")]
    Empty,
    #[error("column {position}: {reason}")]
    Name { position: usize, reason: String },
}

/// The reason why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("cannot read {}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
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
    #[error("{} is not a CSV file: {reason}", .path.display())]
    Form { path: PathBuf, reason: String },
    #[error("{}:{line}: \"{cell}\" in the column \"{column}\" may be a number with a decimal comma; say --decimal , if it is, and --decimal . if it is text", .path.display())]
    DecimalComma { path: PathBuf, line: u64, column: String, cell: String },
    #[error("{} has {columns} columns, the limit of a table is {max} (COLUMNS_PER_TABLE_MAX); divide the file", .path.display())]
    Columns { path: PathBuf, columns: usize, max: usize },
    #[error("{} has no rows after its first line", .path.display())]
    NoRows { path: PathBuf },
}

/// An open file whose first line is read.
pub(super) struct CsvFile {
    path: PathBuf,
    reader: csv::Reader<Box<dyn Read + Send>>,
    header: StringRecord,
    /// Bytes left for the current row.
    row_bytes_left: Arc<AtomicUsize>,
    /// The character between cells.
    pub delimiter: u8,
}

impl CsvFile {
    /// Opens a file. Rows may have more or fewer cells than the first line; the caller counts them.
    pub(super) fn open(path: &Path, dialect: &Dialect, trim: Trim) -> Result<Self, FileError> {
        let io = |source| FileError::Io { path: path.into(), source };
        let form = |reason| FileError::Form { path: path.into(), reason };
        let mut file = File::open(path).map_err(io)?;
        let mut head = Vec::new();
        (&mut file).take(CSV_HEAD_BYTES).read_to_end(&mut head).map_err(io)?;
        check(&head).map_err(|reason| form(reason.into()))?;
        let skipped = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (wanted, skipped) = match delimiter_of_excel(&head[skipped..]) {
            Some((delimiter, bytes)) => (Some(delimiter), skipped + bytes),
            None => (None, skipped),
        };
        let delimiter =
            delimiter(first_line(&head[skipped..]), dialect.delimiter.or(wanted)).map_err(form)?;
        let row_bytes_left = Arc::new(AtomicUsize::new(CSV_ROW_BYTES_MAX));
        let bytes: Box<dyn Read + Send> = Box::new(Bounded {
            inner: Cursor::new(head.split_off(skipped)).chain(BufReader::with_capacity(1024 * 1024, file)),
            left: Arc::clone(&row_bytes_left),
        });
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter).flexible(true).trim(trim).from_reader(bytes);
        let header = reader.headers().map_err(|source| FileError::Csv { path: path.into(), source })?.clone();
        if header.len() > COLUMNS_PER_TABLE_MAX {
            let columns = header.len();
            return Err(FileError::Columns { path: path.into(), columns, max: COLUMNS_PER_TABLE_MAX });
        }
        Ok(Self { path: path.into(), reader, header, row_bytes_left, delimiter })
    }

    /// The cells of the first line.
    pub(super) fn header(&self) -> &StringRecord {
        &self.header
    }

    /// The next row; `false` at the end of the file.
    pub(crate) fn read(&mut self, record: &mut StringRecord) -> Result<bool, FileError> {
        self.row_bytes_left.store(CSV_ROW_BYTES_MAX, Ordering::Relaxed);
        let read = self.reader.read_record(record);
        read.map_err(|source| FileError::Csv { path: self.path.clone(), source })
    }

    /// Bytes of the file that were read.
    pub(super) fn position(&self) -> u64 {
        self.reader.position().byte()
    }
}

/// The number of the line on which a row begins, from 1.
pub(super) fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

/// Limits the bytes of a row: without a closing quote the whole file would be read into memory.
struct Bounded<R> {
    inner: R,
    left: Arc<AtomicUsize>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(count), Ordering::Relaxed);
        if count > 0 && left == 0 {
            let limit = CSV_ROW_BYTES_MAX / (1024 * 1024);
            return Err(io::Error::other(format!(
                "a row is longer than {limit} MiB; is a closing quote missing?"
            )));
        }
        Ok(count)
    }
}

/// Recognises files that are not CSV by their first bytes.
fn check(head: &[u8]) -> Result<(), &'static str> {
    const UTF_16: &str = "it is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)";
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(UTF_16),
        [0x1f, 0x8b, ..] => Err("it is compressed with gzip; unpack it (gunzip)"),
        [b'P', b'K', 3, 4, ..] => {
            Err("it is a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV")
        }
        [b'P', b'A', b'R', b'1', ..] => Err("it is Parquet; say --format parquet, or name it .parquet"),
        _ if head.contains(&0) => {
            Err("it holds zero bytes: it is binary, or UTF-16 (iconv -f UTF-16 -t UTF-8 makes it UTF-8)")
        }
        _ => Ok(()),
    }
}

/// The delimiter of a line `sep=;`, which Excel writes, and the length of the line.
fn delimiter_of_excel(head: &[u8]) -> Option<(u8, usize)> {
    let line = head.split_inclusive(|byte| *byte == b'\n').next()?;
    match line.strip_prefix(b"sep=")? {
        [delimiter, b'\n'] | [delimiter, b'\r', b'\n'] => Some((*delimiter, line.len())),
        _ => None,
    }
}

/// The first line that is not empty, without quoted text.
fn first_line(head: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let mut quoted = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\r' | b'\n' if !quoted && line.is_empty() => {}
            b'\r' | b'\n' if !quoted => break,
            _ if quoted => {}
            byte => line.push(*byte),
        }
    }
    line
}

/// Finds the delimiter in the first line, unless it is ambiguous.
fn delimiter(line: Vec<u8>, wanted: Option<u8>) -> Result<u8, String> {
    let has = |delimiter: &u8| line.contains(delimiter);
    let found: Vec<u8> = DELIMITERS.into_iter().filter(has).collect();
    // A bar is part of a name more often than not.
    let common: Vec<u8> = found.iter().copied().filter(|byte| *byte != b'|').collect();
    let shown =
        |found: &[u8]| found.iter().map(|byte| delimiter_name(*byte)).collect::<Vec<_>>().join(" and ");
    match (wanted, common.as_slice()) {
        (Some(wanted), _) if has(&wanted) || found.is_empty() => Ok(wanted),
        (Some(wanted), _) => Err(format!(
            "there is no {} in its first line, but {}; see --delimiter",
            delimiter_name(wanted),
            shown(&found)
        )),
        (None, [only]) => Ok(*only),
        (None, []) => Ok(found.first().copied().unwrap_or(b',')),
        (None, several) => Err(format!(
            "its first line has {}; say with --delimiter which of them is between cells",
            shown(several)
        )),
    }
}

/// A delimiter in the form of the option.
pub(super) fn delimiter_name(delimiter: u8) -> String {
    match delimiter {
        b'\t' => "tab".into(),
        other => format!("'{}'", char::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8], delimiter: Option<u8>) -> Result<(CsvFile, Vec<Vec<String>>), FileError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        std::fs::write(&path, bytes).unwrap();
        let mut file = CsvFile::open(&path, &Dialect { delimiter, decimal: None }, Trim::None)?;
        let cells = |record: &StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let mut rows = vec![cells(file.header())];
        let mut record = StringRecord::new();
        while file.read(&mut record)? {
            rows.push(cells(&record));
        }
        Ok((file, rows))
    }

    #[test]
    fn a_file_with_more_columns_than_a_table_is_refused_at_its_first_line() {
        let columns = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
        assert!(open(columns(COLUMNS_PER_TABLE_MAX).as_bytes(), None).is_ok());
        let refused = open(columns(COLUMNS_PER_TABLE_MAX + 1).as_bytes(), None).err().unwrap().to_string();
        assert!(refused.contains("20001 columns") && refused.contains("COLUMNS_PER_TABLE_MAX"), "{refused}");
    }

    #[test]
    fn the_first_line_determines_the_delimiter() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n", b';'),
            ("a\tb\n1\t2\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("a,b|c\n1,2\n", b','),
            ("\r\n\"a,x\";b\n1;2\n", b';'),
            ("sep=;\r\na;b\r\n1;2\r\n", b';'),
            ("\u{feff}a;b\n1;2\n", b';'),
            ("a\n1\n", b','),
        ] {
            let (file, rows) = open(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(file.delimiter, expected, "{text}");
            assert!(!rows[0][0].contains('\u{feff}') && rows[0].len() == rows[1].len(), "{rows:?}");
        }
        assert_eq!(open(b"a:b\n1:2\n", Some(b':')).unwrap().1[1], ["1", "2"]);
    }

    #[test]
    fn ambiguous_delimiters_need_the_option_and_invalid_files_are_named() {
        let wide: Vec<u8> = "a,b\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, wanted, expected) in [
            (b"a;b, c;d\n".as_slice(), None, "has ',' and ';'; say with --delimiter"),
            (b"a;b\n", Some(b','), "there is no ',' in its first line, but ';'"),
            (b"\xff\xfea\0", None, "UTF-16"),
            (&wide, None, "UTF-16"),
            (b"\x1f\x8b\x08\0", None, "gzip"),
            (b"PK\x03\x04....", None, "spreadsheet"),
            (b"PAR1....", None, "--format parquet"),
        ] {
            let error = open(bytes, wanted).err().expect(expected).to_string();
            assert!(error.contains(expected) && error.contains("x.csv"), "{error}");
        }
    }

    #[test]
    fn a_forgotten_quote_ends_the_reading() {
        let mut text = b"a,b\n1,\"x\n".to_vec();
        text.resize(2 * CSV_ROW_BYTES_MAX + 4 * 1024 * 1024, b'x');
        let error = anyhow::Error::new(open(&text, None).err().unwrap());
        assert!(format!("{error:#}").contains("is a closing quote missing?"), "{error:#}");
    }

    #[test]
    fn delimiters_are_parsed() {
        assert_eq!(parse_delimiter(";"), Ok(b';'));
        assert_eq!(
            (parse_delimiter("tab"), parse_delimiter("\\t"), parse_delimiter("\t")),
            (Ok(9), Ok(9), Ok(9))
        );
        for text in ["", ";;", "x", "\"", "§"] {
            assert!(parse_delimiter(text).unwrap_err().contains(text), "{text}");
        }
    }
}

//! Reads CSV files as Arrow batches. A column has one type, which a first pass over the file finds.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use csv::{StringRecord, Trim};
use model::limits::EXPORT_BATCH_ROWS;
use store::table::COLUMN_NAME;

use crate::cell::{DecimalMark, has_decimal_comma, is_not_finite, number};
use crate::csv_counts::CsvCounts;
use crate::csv_file::{CsvFile, Dialect, FileError, HeaderError, line_of};
use crate::limits::{IMPORT_CELLS_MAX, IMPORT_PIECE_BYTES};
use crate::time::{TimeReader, ts_type};

/// Whole numbers up to this are exact as floating-point numbers.
const EXACT_IN_F64: u64 = 1 << 53;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The column has no cell so far.
    Unknown,
    Bool,
    I64,
    F64,
    /// Whole and floating-point numbers, and some of the whole numbers are not exact as floating-point numbers.
    Both,
    Text,
    /// Text, also if it looks like a number.
    Tag,
    Time,
    /// The column has no name and is not imported.
    Unnamed,
}

impl Kind {
    fn is_number(self) -> bool {
        matches!(self, Self::I64 | Self::F64)
    }
}

/// A file in its second pass.
pub(super) struct CsvBatches {
    file: CsvFile,
    record: StringRecord,
    kinds: Vec<Kind>,
    schema: SchemaRef,
    times: TimeReader,
    mark: DecimalMark,
    pub(super) counts: CsvCounts,
}

impl CsvBatches {
    /// Makes the first pass over the file. `tags` and `ts` name columns.
    pub(super) fn open(
        path: &Path,
        tags: &[String],
        ts: &str,
        times: &TimeReader,
        dialect: &Dialect,
    ) -> Result<Self, FileError> {
        let header = |source| FileError::Header { path: path.into(), source };
        let mut file = CsvFile::open(path, dialect, Trim::None)?;
        let names: Vec<String> = file.header().iter().map(str::to_owned).collect();
        check_names(&names, ts).map_err(header)?;
        let kinds = names.iter().map(|name| match name.as_str() {
            "" => Kind::Unnamed,
            name if name == ts => Kind::Time,
            name if tags.iter().any(|tag| tag == name) => Kind::Tag,
            _ => Kind::Unknown,
        });
        let mut columns: Vec<ColumnFacts> = kinds.map(ColumnFacts::new).collect();
        let mut record = StringRecord::new();
        while file.read(&mut record)? {
            for ((column, cell), name) in columns.iter_mut().zip(&record).zip(&names) {
                let line = line_of(&record);
                if dialect.decimal.is_none()
                    && !matches!(column.kind, Kind::Tag | Kind::Time | Kind::Unnamed)
                    && has_decimal_comma(cell)
                {
                    let (path, column, cell) = (path.into(), name.clone(), cell.to_owned());
                    return Err(FileError::DecimalComma { path, line, column, cell });
                }
                column.widen(cell, line, dialect.mark());
            }
        }
        let mut counts = CsvCounts::default();
        for (column, name) in columns.iter().zip(&names) {
            if let (Some((cell, line)), true) = (&column.first_text, column.numbers > column.texts) {
                counts.texts.push((name.clone(), cell.clone(), *line));
            }
        }
        let kinds: Vec<Kind> = columns.iter().map(ColumnFacts::kind).collect();
        let schema = schema(&names, &kinds);
        let (file, record) = (CsvFile::open(path, dialect, Trim::None)?, StringRecord::new());
        let (times, mark) = (times.clone(), dialect.mark());
        Ok(Self { file, record, kinds, schema, times, mark, counts })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The character between cells.
    pub(super) fn delimiter(&self) -> u8 {
        self.file.delimiter
    }

    /// Bytes of the file that were read.
    pub(super) fn position(&self) -> u64 {
        self.file.position()
    }

    /// The next rows; `None` after the last.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let mut columns: Vec<Column> = self.kinds.iter().map(|kind| Column::new(*kind)).collect();
        let (mut rows, mut bytes) = (0, 0);
        // Empty cells take memory too.
        let rows_max = EXPORT_BATCH_ROWS.min((IMPORT_CELLS_MAX / columns.len().max(1)).max(1));
        while rows < rows_max && bytes < IMPORT_PIECE_BYTES && self.file.read(&mut self.record)? {
            if self.record.iter().all(|cell| cell.is_empty()) {
                // A line of delimiters is empty.
                continue;
            }
            rows += 1;
            bytes += self.record.as_slice().len();
            for (index, column) in columns.iter_mut().enumerate() {
                let cell = self.record.get(index).unwrap_or_default();
                let place = || format!("line {}", line_of(&self.record));
                column.push(cell, &self.times, self.mark, &mut self.counts, place);
            }
            let beyond = self.record.iter().skip(self.kinds.len()).filter(|cell| !cell.is_empty());
            self.counts.beyond += beyond.count() as u64;
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = columns.into_iter().flat_map(Column::finish).collect();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

fn check_names(names: &[String], ts: &str) -> Result<(), HeaderError> {
    for (second, key) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        if let Some(first) = names[..second].iter().position(|earlier| earlier == key) {
            let (key, first, second) = (key.clone(), first + 1, second + 1);
            return Err(HeaderError::Duplicate { key, first, second });
        }
    }
    if names.iter().all(|name| name.is_empty()) {
        return Err(HeaderError::Empty);
    }
    if !names.iter().any(|name| name == ts) {
        let (what, wanted) = ("the time (name it with --ts-column)", ts.to_owned());
        return Err(HeaderError::NoColumn { what, wanted, known: names.to_vec() });
    }
    Ok(())
}

/// What the first pass has seen of a column.
struct ColumnFacts {
    /// The narrowest type for all cells.
    kind: Kind,
    /// Whether one of the whole numbers is not exact as a floating-point number.
    is_beyond_f64: bool,
    numbers: u64,
    texts: u64,
    /// The first cell that is not a number, with its line.
    first_text: Option<(String, u64)>,
}

impl ColumnFacts {
    fn new(kind: Kind) -> Self {
        Self { kind, is_beyond_f64: false, numbers: 0, texts: 0, first_text: None }
    }

    fn kind(&self) -> Kind {
        match self.kind {
            Kind::F64 if self.is_beyond_f64 => Kind::Both,
            kind => kind,
        }
    }

    fn widen(&mut self, cell: &str, line: u64, mark: DecimalMark) {
        // A column of numbers with a word such as NaN stays a column of numbers.
        if cell.is_empty()
            || matches!(self.kind, Kind::Tag | Kind::Time | Kind::Unnamed)
            || is_not_finite(cell)
        {
            return;
        }
        let number = number(cell, mark);
        let found = kind_of(cell, number.as_ref());
        if found.is_number() {
            self.numbers += 1;
            let whole = number.and_then(|number| number.as_i64());
            self.is_beyond_f64 |= whole.is_some_and(|whole| !is_exact(whole));
        } else {
            self.texts += 1;
            if self.first_text.is_none() {
                self.first_text = Some((cell.to_owned(), line));
            }
        }
        self.kind = match (self.kind, found) {
            (Kind::Unknown, found) => found,
            (kind, found) if kind == found => kind,
            (Kind::I64, Kind::F64) | (Kind::F64, Kind::I64) => Kind::F64,
            _ => Kind::Text,
        };
    }
}

fn kind_of(cell: &str, number: Option<&serde_json::Number>) -> Kind {
    match number {
        Some(number) if number.is_i64() => Kind::I64,
        Some(_) => Kind::F64,
        None if cell == "true" || cell == "false" => Kind::Bool,
        None => Kind::Text,
    }
}

/// The schema of the columns. A column with both types of numbers becomes two columns of one key, as in an export.
fn schema(names: &[String], kinds: &[Kind]) -> SchemaRef {
    let mut fields = Vec::new();
    for (name, kind) in names.iter().zip(kinds) {
        let field = |of: DataType| Field::new(name, of, true);
        match kind {
            Kind::Bool => fields.push(field(DataType::Boolean)),
            Kind::I64 => fields.push(field(DataType::Int64)),
            Kind::F64 => fields.push(field(DataType::Float64)),
            Kind::Both => {
                let key = HashMap::from([(COLUMN_NAME.to_owned(), name.clone())]);
                let exact = Field::new(exact_name(name, names), DataType::Int64, true);
                fields.push(field(DataType::Float64));
                fields.push(exact.with_metadata(key));
            }
            Kind::Unknown | Kind::Text | Kind::Tag => fields.push(field(DataType::Utf8)),
            Kind::Time => fields.push(field(ts_type())),
            Kind::Unnamed => {}
        }
    }
    Arc::new(Schema::new(fields))
}

/// A unique name for the column of the whole numbers.
fn exact_name(name: &str, names: &[String]) -> String {
    let mut exact = format!("{name}:i64");
    while names.contains(&exact) {
        exact.push_str(":i64");
    }
    exact
}

enum Column {
    Bool(BooleanBuilder),
    I64(Int64Builder),
    F64(Float64Builder),
    Both(Float64Builder, Int64Builder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder),
    Unnamed,
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::I64 => Self::I64(Int64Builder::new()),
            Kind::F64 => Self::F64(Float64Builder::new()),
            Kind::Both => Self::Both(Float64Builder::new(), Int64Builder::new()),
            Kind::Unknown | Kind::Text | Kind::Tag => Self::Text(StringBuilder::new()),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::new().with_data_type(ts_type())),
            Kind::Unnamed => Self::Unnamed,
        }
    }

    /// Adds a cell. `place` names its line.
    fn push(
        &mut self,
        cell: &str,
        times: &TimeReader,
        mark: DecimalMark,
        counts: &mut CsvCounts,
        place: impl FnOnce() -> String,
    ) {
        let text = Some(cell).filter(|cell| !cell.is_empty());
        match self {
            Self::Bool(cells) => cells.append_option(text.map(|cell| cell == "true")),
            Self::I64(cells) => {
                let value = text.and_then(|cell| number(cell, mark)).and_then(|number| number.as_i64());
                counts.not_finite += u64::from(text.is_some() && value.is_none());
                cells.append_option(value);
            }
            Self::F64(cells) => {
                let value = text.and_then(|cell| number(cell, mark)).and_then(|number| number.as_f64());
                counts.float(text, value);
                cells.append_option(value);
            }
            Self::Both(floats, wholes) => {
                let value = text.and_then(|cell| number(cell, mark));
                let whole = value.as_ref().and_then(serde_json::Number::as_i64);
                wholes.append_option(whole);
                let float = value.filter(|_| whole.is_none()).and_then(|number| number.as_f64());
                counts.float(text.filter(|_| whole.is_none()), float);
                floats.append_option(float);
            }
            Self::Text(cells) => cells.append_option(text),
            Self::Time(cells) => {
                let time = text.and_then(|cell| counts.times.count(times.parse(cell), place));
                cells.append_option(time.map(|time| time.micros));
            }
            Self::Unnamed => counts.unnamed += u64::from(text.is_some()),
        }
    }

    fn finish(self) -> Vec<ArrayRef> {
        let column: ArrayRef = match self {
            Self::Bool(mut cells) => Arc::new(cells.finish()),
            Self::I64(mut cells) => Arc::new(cells.finish()),
            Self::F64(mut cells) => Arc::new(cells.finish()),
            Self::Both(mut floats, mut wholes) => {
                return vec![Arc::new(floats.finish()), Arc::new(wholes.finish())];
            }
            Self::Text(mut cells) => Arc::new(cells.finish()),
            Self::Time(mut cells) => Arc::new(cells.finish()),
            Self::Unnamed => return Vec::new(),
        };
        vec![column]
    }
}

/// Whether a whole number is exact as a floating-point number.
fn is_exact(number: i64) -> bool {
    let magnitude = number.unsigned_abs();
    magnitude <= EXACT_IN_F64 || (number as f64) as i128 == i128::from(number)
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};

    use super::*;
    use crate::time::TimeFormat;

    fn times() -> TimeReader {
        TimeReader { format: TimeFormat::Rfc3339, zone: None }
    }

    fn open(text: &str, tags: &[&str], dialect: Dialect) -> Result<CsvBatches, FileError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        CsvBatches::open(&path, &tags, "ts", &times(), &dialect)
    }

    #[test]
    fn a_column_has_the_narrowest_type_that_holds_all_its_cells() {
        let kind = |cells: &[&str]| {
            let mut seen = ColumnFacts::new(Kind::Unknown);
            cells.iter().for_each(|cell| seen.widen(cell, 1, DecimalMark::Point));
            seen.kind()
        };
        assert_eq!(kind(&["9007199254740993", "2.5"]), Kind::Both);
        assert_eq!(kind(&["9007199254740993", "2"]), Kind::I64);
        assert_eq!(kind(&["1", "", "-2"]), Kind::I64);
        assert_eq!(kind(&["1", "2.5"]), Kind::F64);
        assert_eq!(kind(&["2.5", "1", "NaN"]), Kind::F64);
        assert_eq!(kind(&["NaN", "1"]), Kind::I64);
        assert_eq!(kind(&["true", "false"]), Kind::Bool);
        assert_eq!(kind(&["true", "1"]), Kind::Text);
        assert_eq!(kind(&["1", "x", "2"]), Kind::Text);
        assert_eq!(kind(&["1", "00123"]), Kind::Text);
        assert_eq!(kind(&["18446744073709551615"]), Kind::Text, "a float would lose digits");
        assert_eq!(kind(&["1e999"]), Kind::Text);
        assert_eq!(kind(&["", ""]), Kind::Unknown);
        let mut tag = ColumnFacts::new(Kind::Tag);
        tag.widen("7", 1, DecimalMark::Point);
        assert_eq!(tag.kind, Kind::Tag);
    }

    #[test]
    fn a_file_becomes_batches() {
        let text = "site,ts,n,x,t\n7,2024-05-01T08:00:00.000001Z,1,1,a\n8,yesterday,,2.5,\n";
        let mut file = open(text, &["site"], Dialect::default()).unwrap();
        let batch = file.next().unwrap().unwrap();
        let types: Vec<_> =
            batch.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
        assert_eq!(types[0], "Utf8");
        assert_eq!(types[2..], ["Int64", "Float64", "Utf8"]);
        assert_eq!((batch.num_rows(), batch.column(1).null_count(), batch.column(2).null_count()), (2, 1, 1));
        let first = batch.column(1).as_primitive::<TimestampMicrosecondType>().value(0);
        assert_eq!(first, 1_714_550_400_000_001);
        assert_eq!(file.counts.times.bad, 1);
        let reason = file.counts.times.first_bad.clone().unwrap();
        assert!(reason.starts_with("line 3: \"yesterday\" is not a time"), "{reason}");
        assert!(file.next().unwrap().is_none());
    }

    #[test]
    fn skipped_and_changed_values_are_counted() {
        let text = "ts,n,fine,\n2024-05-01T08:00:00Z,1,0.123456789012345678,x,y\n,,,\n2024-05-01T08:00:01Z,NaN,0.5\n";
        let mut file = open(text, &[], Dialect::default()).unwrap();
        let batch = file.next().unwrap().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 3));
        let counts = &file.counts;
        assert_eq!((counts.not_finite, counts.rounded, counts.unnamed, counts.beyond), (1, 1, 1, 1));
        assert_eq!(counts.skipped_cells(), 3);
        let mostly = open("ts,n\n,1\n,2\n,00123\n", &[], Dialect::default()).unwrap();
        assert_eq!(mostly.counts.texts, [("n".to_owned(), "00123".to_owned(), 4)]);
    }

    #[test]
    fn whole_numbers_that_a_float_does_not_hold_stay_whole_beside_floats() {
        let text = "ts,big,big:i64\n,9007199254740993,x\n,0.5,\n,NaN,\n,7,\n";
        let mut file = open(text, &[], Dialect::default()).unwrap();
        let rows = file.next().unwrap().unwrap();
        let schema = rows.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["ts", "big", "big:i64:i64", "big:i64"]);
        let floats: Vec<_> = rows.column(1).as_primitive::<Float64Type>().iter().collect();
        let wholes: Vec<_> = rows.column(2).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(floats, [None, Some(0.5), None, None]);
        assert_eq!(wholes, [Some(9_007_199_254_740_993), None, None, Some(7)]);
        assert_eq!((file.counts.rounded, file.counts.not_finite), (0, 1));
    }

    #[test]
    fn decimal_commas_need_the_option() {
        let text = "ts;x\n2024-05-01T08:00:00Z;1,5\n";
        let error = open(text, &[], Dialect::default()).err().unwrap().to_string();
        assert!(error.contains("a.csv:2: \"1,5\" in the column \"x\""), "{error}");
        let dialect = Dialect { decimal: Some(DecimalMark::Comma), ..Dialect::default() };
        let batch = open(text, &[], dialect).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.column(1).as_primitive::<Float64Type>().value(0), 1.5);
    }

    #[test]
    fn repeated_and_missing_names_are_refused() {
        let error = open("ts,a,a\n", &[], Dialect::default()).err().unwrap().to_string();
        assert!(error.contains("the columns 2 and 3 both become the key \"a\""), "{error}");
        let error = open("time,a\n", &[], Dialect::default()).err().unwrap().to_string();
        assert!(error.contains("--ts-column") && error.contains("the file has time, a"), "{error}");
    }
}

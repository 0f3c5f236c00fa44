//! Checks the rows of one part: decodes all columns and compares them with the manifest and the definitions.

use std::ops::Range;
use std::sync::Arc;

use model::FieldType;
use parking_lot::RwLockReadGuard;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;
use store::StoreError;

use super::checker::Checker;
use super::words;
use crate::catalog::{Catalog, SERIES_COLUMN, SeriesIndex, TS_COLUMN, Table, tags};
use crate::disk::DiskFile;
use crate::part::blocks::BlockFile;
use crate::part::{PartInfo, PartLayout};

/// The number of values that are decoded at once.
const DECODED_ROWS: usize = 8 * 1024;

/// Why a check of the rows of a part failed.
enum Wrong {
    Rows(String),
    Unreadable(ParquetError),
}

impl From<ParquetError> for Wrong {
    fn from(error: ParquetError) -> Self {
        Self::Unreadable(error)
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Rows(what.into()))
}

impl Checker<'_, '_> {
    /// Decodes all rows of a part whose blocks are intact. Ends at the first contradiction.
    pub(super) fn rows(&mut self, file: Arc<dyn DiskFile>, part: &Arc<PartInfo>) {
        let blocks = BlockFile::new(file, self.layout.part(part.id), part.clone());
        let mut decoded = 0;
        let mut group_done = |rows: u64| {
            decoded += rows;
            self.meter.add(part.bytes * rows / part.rows.max(1));
            !self.meter.ended
        };
        let found =
            PartCheck::open(&blocks, part, &self.catalog).and_then(|mut check| check.run(&mut group_done));
        self.report.part_rows += decoded;
        match found {
            Ok(()) => {}
            Err(Wrong::Rows(what)) => self.lost(part, None, &what),
            Err(Wrong::Unreadable(error)) => {
                let error: StoreError = blocks.error(&error);
                self.unreadable_part(part, &error);
            }
        }
    }

    /// The row groups of a part; `None` if its footer cannot be read.
    pub(super) fn row_groups(&self, file: Arc<dyn DiskFile>, part: &Arc<PartInfo>) -> Option<RowGroups> {
        let blocks = BlockFile::new(file, self.layout.part(part.id), part.clone());
        RowGroups::read(&SerializedFileReader::new(blocks).ok()?)
    }
}

/// A check of the rows of a part.
struct PartCheck<'a> {
    reader: SerializedFileReader<BlockFile>,
    part: &'a PartInfo,
    table: &'a Table,
    index: RwLockReadGuard<'a, SeriesIndex>,
    last: Option<(i64, i64)>,
    /// The table of the last row.
    of: u32,
    /// The number of rows of each table.
    shares: Vec<(u32, u64)>,
    rows: u64,
    series: (i64, i64),
    ts: (i64, i64),
}

impl<'a> PartCheck<'a> {
    fn open(blocks: &BlockFile, part: &'a PartInfo, catalog: &'a Catalog) -> Result<Self, Wrong> {
        let Some(table) = catalog.tables.get(part.tables.0 as usize) else {
            return wrong("its table is not defined");
        };
        let reader = SerializedFileReader::new(blocks.clone())?;
        Ok(Self {
            reader,
            part,
            table,
            index: catalog.series.read(),
            last: None,
            of: 0,
            shares: Vec::new(),
            rows: 0,
            series: (i64::MAX, i64::MIN),
            ts: (i64::MAX, i64::MIN),
        })
    }

    fn run(&mut self, group_done: &mut dyn FnMut(u64) -> bool) -> Result<(), Wrong> {
        let columns = self.columns()?;
        for group in 0..self.reader.metadata().num_row_groups() {
            let before = self.rows;
            self.group(group, &columns)?;
            if !group_done(self.rows - before) {
                return Ok(());
            }
        }
        self.compare()
    }

    /// The meaning of each column of the file.
    fn columns(&self) -> Result<Vec<Column>, Wrong> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter().map(|column| match column.name() {
            SERIES_COLUMN => Ok(Column::Series),
            TS_COLUMN => Ok(Column::Ts),
            // The other columns of a narrow part have names, tags and values of its tables. No definition names them.
            _ if self.part.layout == PartLayout::Narrow => Ok(Column::Other),
            name => self.named(name),
        });
        let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
        for needed in [Column::Series, Column::Ts] {
            if !columns.contains(&needed) {
                return wrong(format!("it has no column for {needed:?}"));
            }
        }
        Ok(columns)
    }

    fn named(&self, name: &str) -> Result<Column, Wrong> {
        if let Some(tag) = self.table.tags.iter().position(|tag| *tag.physical == *name) {
            return Ok(Column::Tag(tag as u32));
        }
        let types = FieldType::ALL.into_iter();
        let mut found = types.filter(|field_type| {
            self.table.keys.iter().any(|key| key.column(*field_type).is_some_and(|column| **column == *name))
        });
        match found.next() {
            Some(field_type) => Ok(Column::Field(field_type)),
            None if name.starts_with("__") => Ok(Column::Other),
            None => wrong(format!("its column {name:?} is not one of the table's")),
        }
    }

    fn group(&mut self, group: usize, columns: &[Column]) -> Result<(), Wrong> {
        let rows = self.reader.metadata().row_group(group).num_rows() as usize;
        let find = |wanted: &Column| columns.iter().position(|column| column == wanted);
        let number = |wanted: Column| self.numbers(group, find(&wanted), rows);
        let series = number(Column::Series)?;
        let ts = number(Column::Ts)?;
        for (index, column) in columns.iter().enumerate() {
            match column {
                Column::Series | Column::Ts => {}
                Column::Tag(tag) => self.tag(group, index, *tag, &series)?,
                Column::Field(field_type) => self.field(group, index, rows, Some(*field_type))?,
                Column::Other => self.field(group, index, rows, None)?,
            }
        }
        for row in 0..rows {
            self.row(series[row], ts[row])?;
        }
        Ok(())
    }

    fn row(&mut self, series: i64, ts: i64) -> Result<(), Wrong> {
        let of = u32::try_from(series).ok().and_then(|number| self.index.table(number)).unwrap_or_default();
        if self.last.is_some_and(|last| (self.of, last) >= (of, (series, ts))) {
            let at = format!("series {series} at {}", words::time(ts));
            let row = self.rows;
            return wrong(format!(
                "its row {row} ({at}) is not behind the row before it: rows are not sorted or not unique"
            ));
        }
        if self.last.is_none_or(|last| last.0 != series) {
            let number = u32::try_from(series).ok();
            let table = number.and_then(|number| self.index.table(number));
            if !table.is_some_and(|table| self.part.may_have(table)) {
                return wrong(format!("it has a row of series {series}, which is not one of the table's"));
            }
            self.of = table.unwrap_or_default();
        }
        self.last = Some((series, ts));
        self.rows += 1;
        match self.shares.last_mut() {
            Some(share) if share.0 == self.of => share.1 += 1,
            _ => self.shares.push((self.of, 1)),
        }
        self.series = (self.series.0.min(series), self.series.1.max(series));
        self.ts = (self.ts.0.min(ts), self.ts.1.max(ts));
        Ok(())
    }

    /// Compares the counts with the manifest.
    fn compare(&self) -> Result<(), Wrong> {
        let part = self.part;
        let series = (i64::from(part.series.0), i64::from(part.series.1));
        if self.rows != part.rows {
            return wrong(format!("it has {} rows instead of {}", self.rows, part.rows));
        }
        if !part.shares.is_empty() && self.shares != part.shares {
            return wrong("it has other rows of its tables than the manifest says");
        }
        if self.series != series {
            return wrong(format!("its series are {:?}, the manifest says {series:?}", self.series));
        }
        if self.ts != part.ts {
            return wrong(format!("its times are {:?}, the manifest says {:?}", self.ts, part.ts));
        }
        Ok(())
    }

    fn numbers(&self, group: usize, column: Option<usize>, rows: usize) -> Result<Vec<i64>, Wrong> {
        let column = column.ok_or_else(|| Wrong::Rows("an internal column is missing".to_owned()))?;
        let ColumnReader::Int64ColumnReader(mut reader) = self.column(group, column)? else {
            return wrong("an internal column does not hold numbers");
        };
        let mut numbers = Vec::with_capacity(rows);
        let mut levels = Vec::new();
        while reader.read_records(DECODED_ROWS, Some(&mut levels), None, &mut numbers)?.0 > 0 {}
        match numbers.len() == rows {
            true => Ok(numbers),
            false => wrong("an internal column has too few values"),
        }
    }

    fn column(&self, group: usize, column: usize) -> Result<ColumnReader, Wrong> {
        Ok(self.reader.get_row_group(group)?.get_column_reader(column)?)
    }

    /// Checks that every row has the value of the tag that its series has.
    fn tag(&self, group: usize, column: usize, tag: u32, series: &[i64]) -> Result<(), Wrong> {
        let ColumnReader::ByteArrayColumnReader(reader) = self.column(group, column)? else {
            return wrong("a tag's column does not hold text");
        };
        let (mut row, mut of, mut expected) = (0, None, None);
        let rows = decode(reader, |levels, values: &[ByteArray]| {
            let mut values = values.iter();
            for level in levels {
                let found = if *level > 0 { values.next() } else { None };
                let number = series.get(row).copied();
                if number != of {
                    of = number;
                    expected = number.and_then(|number| self.tag_of(number, tag));
                }
                if found.map(ByteArray::data) != expected.map(str::as_bytes) {
                    let name = &self.table.tags[tag as usize].name;
                    return wrong(format!(
                        "its row {} has a tag {name:?} that is not its series'",
                        self.rows + row as u64
                    ));
                }
                row += 1;
            }
            Ok(())
        })?;
        self.complete(rows, series.len())
    }

    fn tag_of(&self, series: i64, tag: u32) -> Option<&str> {
        let number = u32::try_from(series).ok()?;
        self.index.table(number)?;
        let mut found = tags(self.index.encoded_tags(number)).flatten();
        found.find(|(number, _)| *number == tag).map(|(_, value)| value)
    }

    fn field(
        &self,
        group: usize,
        column: usize,
        rows: usize,
        field_type: Option<FieldType>,
    ) -> Result<(), Wrong> {
        let reader = self.column(group, column)?;
        let text = matches!(field_type, Some(FieldType::String | FieldType::Json));
        let fits = match (&reader, field_type) {
            (_, None) => true,
            (ColumnReader::BoolColumnReader(_), Some(kind)) => kind == FieldType::Bool,
            // A number with few decimals may be a scaled integer (docs/format/part.md).
            (ColumnReader::Int64ColumnReader(_), Some(kind)) => {
                matches!(kind, FieldType::I64 | FieldType::F64)
            }
            (ColumnReader::DoubleColumnReader(_), Some(kind)) => kind == FieldType::F64,
            (ColumnReader::ByteArrayColumnReader(_), Some(_)) => text,
            _ => false,
        };
        if !fits {
            return wrong("a column does not have the type that its definition says");
        }
        let decoded = match reader {
            ColumnReader::BoolColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::Int32ColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::Int64ColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::Int96ColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::FloatColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::DoubleColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::FixedLenByteArrayColumnReader(reader) => decode(reader, |_, _| Ok(()))?,
            ColumnReader::ByteArrayColumnReader(reader) => decode(reader, |_, values: &[ByteArray]| {
                match !text || values.iter().all(|value| std::str::from_utf8(value.data()).is_ok()) {
                    true => Ok(()),
                    false => wrong("a text column holds bytes that are not UTF-8"),
                }
            })?,
        };
        self.complete(decoded, rows)
    }

    fn complete(&self, decoded: usize, rows: usize) -> Result<(), Wrong> {
        match decoded == rows {
            true => Ok(()),
            false => wrong(format!("a column has {decoded} of a row group's {rows} rows")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Series,
    Ts,
    Tag(u32),
    Field(FieldType),
    /// A column of a later version. The check only decodes it.
    Other,
}

/// Decodes a column to its end, and returns the number of its rows.
fn decode<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    mut visit: impl FnMut(&[i16], &[T::T]) -> Result<(), Wrong>,
) -> Result<usize, Wrong> {
    let (mut levels, mut values, mut rows) = (Vec::new(), Vec::new(), 0);
    loop {
        levels.clear();
        values.clear();
        let (records, _, _) = reader.read_records(DECODED_ROWS, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(rows);
        }
        rows += records;
        visit(&levels, &values)?;
    }
}

/// The row groups of a part: their bytes and their rows.
pub(super) struct RowGroups {
    groups: Vec<Group>,
}

struct Group {
    bytes: Vec<(Range<u64>, String)>,
    rows: u64,
    series: Option<(i64, i64)>,
    ts: Option<(i64, i64)>,
}

impl RowGroups {
    fn read(reader: &SerializedFileReader<BlockFile>) -> Option<Self> {
        let groups = reader.metadata().row_groups().iter().map(|group| {
            let range = |name: &str| {
                let column = group.columns().iter().find(|column| column.column_path().string() == name)?;
                match column.statistics()? {
                    Statistics::Int64(numbers) => Some((*numbers.min_opt()?, *numbers.max_opt()?)),
                    _ => None,
                }
            };
            let bytes = group.columns().iter().map(|column| {
                let (start, length) = column.byte_range();
                (start..start + length, column.column_path().string())
            });
            let rows = group.num_rows().cast_unsigned();
            Group { bytes: bytes.collect(), rows, series: range(SERIES_COLUMN), ts: range(TS_COLUMN) }
        });
        Some(Self { groups: groups.collect() })
    }

    /// A text about the rows that cannot be read without these bytes, and the largest number of these rows.
    pub(super) fn affected(&self, bytes: Range<u64>, part: &PartInfo, table: Option<&str>) -> (String, u64) {
        let (mut rows, mut columns) = (0, Vec::new());
        let (mut series, mut ts) = ((i64::MAX, i64::MIN), (i64::MAX, i64::MIN));
        for group in &self.groups {
            let hit =
                group.bytes.iter().filter(|(range, _)| range.start < bytes.end && bytes.start < range.end);
            let before = columns.len();
            columns.extend(hit.map(|(_, column)| column.clone()));
            if columns.len() > before {
                rows += group.rows;
                let (s, t) = (group.series.unwrap_or_default(), group.ts.unwrap_or(part.ts));
                series = (series.0.min(s.0), series.1.max(s.1));
                ts = (ts.0.min(t.0), ts.1.max(t.1));
            }
        }
        columns.sort();
        columns.dedup();
        let table = table.unwrap_or("?");
        if columns.is_empty() {
            let means = format!(
                "It holds the indexes of the file, so reads of {} fail until it is replaced. The rows were acknowledged and are themselves intact.",
                words::rows_of(part, table)
            );
            return (means, part.rows);
        }
        let (shown, more) = columns.split_at(columns.len().min(8));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let means = format!(
            "Up to {rows} of the part's {} rows cannot be read: {}, series {} to {}, from {} to {}, columns {}{more}. They were acknowledged; all other rows are served.",
            part.rows,
            words::tables_of(part, table),
            series.0,
            series.1,
            words::time(ts.0),
            words::time(ts.1),
            shown.join(", ")
        );
        (means, rows)
    }
}

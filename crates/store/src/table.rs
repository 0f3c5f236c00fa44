//! Whole tables, as a query engine or an export reads them.
//!
//! A [`TableSnapshot`] is one table at one moment. Its columns are Arrow columns with fixed names and types. Its rows
//! are merged: each (series, ts) comes exactly once, with the newest value of every field.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use model::{FieldType, SeriesId, TableName, TimeRange, Timestamp};
use roaring::RoaringBitmap;

use crate::{Order, StoreError};

/// Numbers of series of one table. A store numbers its series below 2^32 ([`model::limits::SERIES_MAX`]).
pub type SeriesSet = RoaringBitmap;

/// Name of the time column of every table.
pub const TS_COLUMN: &str = "ts";
/// Key of the Arrow field metadata with the kind of a column: `tag`, `ts` or the type of the field, such as `json`.
pub const COLUMN_KIND: &str = "tachograph.kind";
/// Key of the Arrow field metadata with the name of the tag, or the key under which the field was reported.
pub const COLUMN_NAME: &str = "tachograph.name";

/// Columns that only the files of the store have. No tag and no field gets one of these names.
pub const INTERNAL_COLUMNS: [&str; 2] = ["__series", "__sequence"];

/// The columns of a table: tags, then `ts`, then fields.
///
/// Tags and keys are in the order in which they first appeared. The columns of one key are neighbours, in the order of
/// their types. A column has the plain name if that is free, otherwise `name:tag` or `key:type`, with the suffix
/// repeated until the name is free ([`free_name`](Self::free_name)).
///
/// | column | Arrow type | nullable |
/// |---|---|---|
/// | tag | Utf8View | yes: a series need not have every tag |
/// | `ts` | Timestamp(Microsecond, "UTC") | no |
/// | bool, i64, f64 field | Boolean, Int64, Float64 | yes |
/// | string, json field | Utf8View | yes |
///
/// Integers and floats of one key are one column. It is a column of integers until the first float arrives, and a column
/// of floats from then on ([`joined`](Self::joined)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumns {
    /// The table.
    pub table: TableName,
    /// Tag columns.
    pub tags: Vec<TagColumn>,
    /// Field columns. A key that was reported with several types has a column for each type.
    pub fields: Vec<FieldColumn>,
}

/// A column that shows a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagColumn {
    /// The tag's name.
    pub tag: Arc<str>,
    /// The name of the column: the name of the tag, or `name:tag` where that was taken.
    pub column: Arc<str>,
}

/// A column that shows the values of one key and one type, or all numbers of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldColumn {
    /// The name under which the values were reported.
    pub key: Arc<str>,
    /// The type of the values; [`FieldType::F64`] if integers are among them.
    pub field_type: FieldType,
    /// The name of the column: the key, or `key:type` where that was taken.
    pub column: Arc<str>,
    /// Whether the column shows the integers of the key among its floats, each as the nearest f64.
    pub with_integers: bool,
}

/// A column that a series needs for a batch and its table does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingColumn<'a> {
    /// The series.
    pub series: SeriesId,
    /// The number of its first row in the batch that needs the column.
    pub row: usize,
    /// The table.
    pub table: TableName,
    /// The key under which the value was reported.
    pub key: &'a str,
    /// The type of the value.
    pub field_type: FieldType,
    /// The number of columns that the table has, tags included.
    pub table_columns: usize,
    /// The largest number of columns that the table may have.
    pub table_columns_max: usize,
}

impl TableColumns {
    /// The Arrow schema of a read of all columns.
    pub fn schema(&self) -> SchemaRef {
        let tags = self.tags.iter().map(Column::Tag);
        let columns = tags.chain([Column::Ts]).chain(self.fields.iter().map(Column::Field));
        Arc::new(Schema::new(columns.map(|column| column.field()).collect::<Vec<_>>()))
    }

    /// Index of the `ts` column in [`schema`](Self::schema).
    pub fn ts_index(&self) -> usize {
        self.tags.len()
    }

    /// The column with this index in [`schema`](Self::schema).
    pub fn column(&self, index: usize) -> Option<Column<'_>> {
        match index.checked_sub(self.tags.len()) {
            None => self.tags.get(index).map(Column::Tag),
            Some(0) => Some(Column::Ts),
            Some(field) => self.fields.get(field - 1).map(Column::Field),
        }
    }

    /// The schema of a read, and its columns.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] when an index is beyond the last column.
    pub fn project(&self, read: &TableRead) -> Result<(SchemaRef, Vec<Column<'_>>), StoreError> {
        let count = self.tags.len() + 1 + self.fields.len();
        let find = |index: &usize| {
            let error = StoreError::OverLimit {
                what: "index of a column",
                actual: *index as u64,
                limit: count as u64 - 1,
            };
            self.column(*index).ok_or(error)
        };
        let found: Vec<_> = read.columns.iter().map(find).collect::<Result<_, _>>()?;
        let field = |column: &Column<'_>| match column {
            Column::Tag(_) if read.tag_runs => column.field().with_data_type(TAG_RUNS_TYPE.clone()),
            _ => column.field(),
        };
        Ok((Arc::new(Schema::new(found.iter().map(field).collect::<Vec<_>>())), found))
    }

    /// A free name for a column: `wanted`, with `:suffix` appended until no other column has the name.
    pub fn free_name(wanted: &str, suffix: &str, taken: impl Fn(&str) -> bool) -> Arc<str> {
        let mut candidate = wanted.to_owned();
        while candidate == TS_COLUMN || INTERNAL_COLUMNS.contains(&candidate.as_str()) || taken(&candidate) {
            candidate = format!("{candidate}:{suffix}");
        }
        candidate.into()
    }
}

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// A tag of the series of the row.
    Tag(&'a TagColumn),
    /// The time of the row.
    Ts,
    /// The value that the row has for one key and type.
    Field(&'a FieldColumn),
}

impl Column<'_> {
    /// The Arrow field of the column.
    pub fn field(&self) -> Field {
        match self {
            Self::Tag(tag) => described(&tag.column, DataType::Utf8View, true, "tag", &tag.tag),
            Self::Ts => described(TS_COLUMN, TS_TYPE.clone(), false, "ts", TS_COLUMN),
            Self::Field(field) => {
                let data_type = arrow_type(field.field_type);
                described(&field.column, data_type, true, field.field_type.name(), &field.key)
            }
        }
    }
}

/// The Arrow type of the time column.
pub static TS_TYPE: LazyLock<DataType> =
    LazyLock::new(|| DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())));
/// The Arrow type of a tag column that comes in runs ([`TableRead::tag_runs`]).
pub static TAG_RUNS_TYPE: LazyLock<DataType> = LazyLock::new(|| {
    let ends = Field::new("run_ends", DataType::Int32, false);
    DataType::RunEndEncoded(ends.into(), Field::new("values", DataType::Utf8View, true).into())
});
/// The time zone in the type of the time column.
pub const UTC: &str = "UTC";

/// The Arrow type of a field column.
pub fn arrow_type(field_type: FieldType) -> DataType {
    match field_type {
        FieldType::Bool => DataType::Boolean,
        FieldType::I64 => DataType::Int64,
        FieldType::F64 => DataType::Float64,
        FieldType::String | FieldType::Json => DataType::Utf8View,
    }
}

fn described(column: &str, data_type: DataType, nullable: bool, kind: &str, name: &str) -> Field {
    let pairs = [(COLUMN_KIND, kind), (COLUMN_NAME, name)];
    Field::new(column, data_type, nullable)
        .with_metadata(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// One table at one moment: all rows that were appended before the snapshot was taken, and no later row. A row without
/// any field does not count. A snapshot keeps its files on disk, so it should not outlive its query.
pub trait TableSnapshot: Send + Sync + fmt::Debug {
    /// The columns. They do not change while the snapshot lives.
    fn columns(&self) -> &TableColumns;

    /// An upper bound of the number of rows. A row that was written more than once may count more than once, and a deleted
    /// row may count.
    fn rows_max(&self) -> u64;

    /// An estimate of the number of rows in a range, made without reading; deleted rows may count. It is 0 only if the range has no rows. It does
    /// not shrink when the range grows. For [`time_range`](Self::time_range) it is [`rows_max`](Self::rows_max).
    fn rows_within(&self, range: TimeRange) -> u64;

    /// About the bytes of the fields of a row; 0 if the store does not know.
    fn row_bytes(&self) -> u64 {
        0
    }

    /// A range that contains all rows; `None` when there are no rows. As in [`TimeRange::ALL`] the very last microsecond
    /// is never inside.
    fn time_range(&self) -> Option<TimeRange>;

    /// The series of the table that satisfy all matchers.
    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError>;

    /// Visits series of the table in the order of their numbers, until the visitor returns `Break`: those of a set, or all
    /// when `series` is `None`. It reads no rows, and a series without rows is visited too. Numbers in the set that are not
    /// series of the snapshot are skipped.
    ///
    /// # Errors
    /// When the backend is on another machine and does not answer.
    fn each_series(
        &self,
        series: Option<&SeriesSet>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// Visits the distinct values that the series have for a tag, in any order, until the visitor returns `Break`. It looks
    /// at the same series as [`each_series`](Self::each_series), and reads no rows either.
    ///
    /// # Errors
    /// The errors of [`each_series`](Self::each_series).
    fn tag_values(
        &self,
        tag: &str,
        series: Option<&SeriesSet>,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut values = BTreeSet::new();
        self.each_series(series, &mut |_, tags| {
            let value = tags.iter().find(|(name, _)| *name == tag).map(|(_, value)| *value);
            match value.filter(|value| !values.contains(*value)) {
                Some(value) => {
                    values.insert(value.to_owned());
                    visit(value)
                }
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// Readers that together give each requested row exactly once if the caller reads all of them to the end; with
    /// [`ReadOrder::LastRow`] at most once. The list may be empty.
    ///
    /// A reader reads nothing before the first call of `next`. The readers may run on different threads at the same time.
    /// The rows of a reader may depend on how fast the caller empties each reader.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] when a column does not exist. A file that cannot be read is an error of a reader.
    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError>;
}

/// Gets the number of a series, and its tags: pairs of name and value, sorted by name.
pub type SeriesVisitor<'a> = dyn FnMut(u32, &[(&str, &str)]) -> ControlFlow<()> + 'a;

/// Gives rows batch by batch. Memory use does not grow with the number of rows.
pub trait BatchReader: Send {
    /// The next rows, at least one and at most [`TableRead::batch_rows`]; `None` after the last row.
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError>;
}

/// A request to read a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRead {
    /// Indices into [`TableColumns::schema`], in the requested order; empty for a count of rows. A row counts even if all
    /// requested columns are null.
    pub columns: Vec<usize>,
    /// The series to read; all when `None`.
    pub series: Option<SeriesSet>,
    /// The time to read, half-open.
    pub range: TimeRange,
    /// The order in which each reader gives its rows.
    pub order: ReadOrder,
    /// A reader that has given this many rows may end. It may also continue, but must do no needless work.
    pub limit: Option<usize>,
    /// The largest number of rows of one batch, at least 1.
    pub batch_rows: usize,
    /// The largest number of readers. With [`ReadOrder::Time`] there is at most one.
    pub readers_max: usize,
    /// Whether a tag column has each text once for neighbouring rows of a series ([`TAG_RUNS_TYPE`]) instead of once for
    /// each row. In most orders rows come series by series, so there are few runs. Neighbouring runs may have the same
    /// text.
    pub tag_runs: bool,
}

/// The order of the rows of one reader, and whether the caller needs all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadOrder {
    /// The cheapest order.
    #[default]
    Any,
    /// By series number, then by time, ascending. All rows of a series come from the same reader.
    SeriesThenTime,
    /// By time over all requested series. Rows of one time are in the order of their series numbers. The read costs memory
    /// for each series, so it is meant for few series.
    Time(Order),
    /// The cheapest order, for a caller that needs only the last row of each series: the newest one if descending, the
    /// oldest one if ascending. The read gives the rows up to the nearest value of every requested field; it may leave
    /// out the rows beyond.
    LastRow(Order),
}

/// A condition on one tag.
#[derive(Debug, Clone)]
pub struct TagMatcher {
    /// The name of the tag.
    pub tag: String,
    /// The condition on its value.
    pub predicate: TagPredicate,
}

/// A condition on the value of a tag. A series without the tag satisfies only [`Absent`](Self::Absent), like NULL in
/// SQL.
#[derive(Debug, Clone)]
pub enum TagPredicate {
    /// The value is this text.
    Is(String),
    /// The value is another text.
    IsNot(String),
    /// The value is one of these texts.
    OneOf(Vec<String>),
    /// The value is none of these texts.
    NoneOf(Vec<String>),
    /// The value contains a match of the pattern. Anchor the pattern to match the whole value.
    Matches(regex::Regex),
    /// The value contains no match of the pattern.
    MatchesNot(regex::Regex),
    /// The series has the tag.
    Present,
    /// The series does not have the tag.
    Absent,
}

impl TagPredicate {
    /// Whether a value, or the lack of one, satisfies the condition.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return matches!(self, Self::Absent) };
        match self {
            Self::Is(wanted) => value == wanted,
            Self::IsNot(unwanted) => value != unwanted,
            Self::OneOf(wanted) => wanted.iter().any(|wanted| value == wanted),
            Self::NoneOf(unwanted) => !unwanted.iter().any(|unwanted| value == unwanted),
            Self::Matches(pattern) => pattern.is_match(value),
            Self::MatchesNot(pattern) => !pattern.is_match(value),
            Self::Present => true,
            Self::Absent => false,
        }
    }
}

/// The facts about a table that the store knows without reading it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableStatus {
    /// The table.
    pub table: TableName,
    /// Number of series.
    pub series: u64,
    /// Number of rows. A row that was written more than once may count more than once until it is compacted. A deleted row
    /// counts until the file that has it is rewritten.
    pub rows: u64,
    /// Number of points (fields of rows) in parts; `None` when the backend does not count them.
    pub points: Option<u64>,
    /// Bytes on disk, without the log.
    pub bytes: u64,
    /// Bytes of the times and fields in parts before encoding and compression: eight for a time or a number, one for a
    /// bool, the length of a text. `None` when they are not known.
    pub raw_bytes: Option<u64>,
    /// A range that contains the times of all rows.
    pub time_range: Option<TimeRange>,
    /// How long the store keeps the rows; forever when `None`.
    pub ttl: Option<Duration>,
}

/// Microseconds of a day. Retention drops rows by days, UTC.
pub const DAY_US: i64 = 86_400_000_000;

/// The oldest time that a table with this time to live keeps.
pub fn oldest_kept(now: Timestamp, ttl: Duration) -> Timestamp {
    let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    now.saturating_add_micros(micros.saturating_neg())
}

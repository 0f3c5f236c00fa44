//! Whole tables: what a query engine, an export or a retention report reads.
//!
//! A [`TableSnapshot`] is one table at one moment. Columns are Arrow columns with fixed names and types; rows are
//! merged, so each (series, ts) comes exactly once with the newest value of every field.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use model::{FieldType, SeriesId, TimeRange, Timestamp};
use roaring::RoaringBitmap;

use crate::{Order, StoreError};

/// Numbers of series of one table. A store numbers its series below 2^32 ([`model::limits::SERIES_MAX`]).
pub type SeriesSet = RoaringBitmap;

/// Name of the time column of every table.
pub const TS_COLUMN: &str = "ts";
/// Key of the Arrow field metadata that says what a column is: `tag`, `ts` or the field's type such as `json`.
pub const COLUMN_KIND: &str = "tachograph.kind";
/// Key of the Arrow field metadata with the name of the tag, or the key under which the field was reported.
pub const COLUMN_NAME: &str = "tachograph.name";

/// Columns that only the store's own files have; no tag and no field gets their names.
pub const INTERNAL_COLUMNS: [&str; 2] = ["__series", "__sequence"];

/// The columns of a table: tags, then `ts`, then fields.
///
/// Tags and keys stand in the order in which they first appeared; the columns of one key stand together, in the order
/// of their types. A column has the plain name if that is free, otherwise `name:tag` or `key:type`, with the suffix
/// repeated until it is free ([`free_name`](Self::free_name)).
///
/// | column | Arrow type | nullable |
/// |---|---|---|
/// | tag | Utf8View | yes: a series need not have every tag |
/// | `ts` | Timestamp(Microsecond, "UTC") | no |
/// | bool, i64, f64 field | Boolean, Int64, Float64 | yes |
/// | string, json field | Utf8View | yes |
///
/// Integers and floats of one key are one column: of integers as long as nothing else was seen, of floats from the first
/// float on ([`joined`](Self::joined)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumns {
    /// The table's name.
    pub table: Arc<str>,
    /// Tag columns.
    pub tags: Vec<TagColumn>,
    /// Field columns. A key that was reported with several types has a column for each.
    pub fields: Vec<FieldColumn>,
}

/// A column that shows a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagColumn {
    /// The tag's name.
    pub tag: Arc<str>,
    /// The column's name: the tag's, or `name:tag` where that was taken.
    pub column: Arc<str>,
}

/// A column that shows the values of one key that have one type, or all its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldColumn {
    /// The name under which the values were reported.
    pub key: Arc<str>,
    /// Their type; that of floats, if integers stand among them.
    pub field_type: FieldType,
    /// The column's name: the key's, or `key:type` where that was taken.
    pub column: Arc<str>,
    /// Whether the key's integers are shown among its floats, each as the nearest f64.
    pub with_integers: bool,
}

/// A column that a batch needs and its table does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingColumn<'a> {
    /// The series of the first row that needs it.
    pub series: SeriesId,
    /// The table.
    pub table: Arc<str>,
    /// The key under which the value was reported.
    pub key: &'a str,
    /// The type of the value.
    pub field_type: FieldType,
    /// How many columns the table has, tags included.
    pub table_columns: usize,
    /// How many it may have.
    pub table_columns_max: usize,
}

impl TableColumns {
    /// The Arrow schema: what a read of all columns gives.
    pub fn schema(&self) -> SchemaRef {
        let tags = self.tags.iter().map(Column::Tag);
        let columns = tags.chain([Column::Ts]).chain(self.fields.iter().map(Column::Field));
        Arc::new(Schema::new(columns.map(|column| column.field()).collect::<Vec<_>>()))
    }

    /// Index of the `ts` column in [`schema`](Self::schema).
    pub fn ts_index(&self) -> usize {
        self.tags.len()
    }

    /// What the column with this index in [`schema`](Self::schema) shows.
    pub fn column(&self, index: usize) -> Option<Column<'_>> {
        match index.checked_sub(self.tags.len()) {
            None => self.tags.get(index).map(Column::Tag),
            Some(0) => Some(Column::Ts),
            Some(field) => self.fields.get(field - 1).map(Column::Field),
        }
    }

    /// The schema of a read, with what each of its columns shows.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] when an index lies behind the last column.
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

    /// The name for a column: `wanted` if nothing else has it, otherwise with `:suffix` until nothing has.
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
    /// A tag of the row's series.
    Tag(&'a TagColumn),
    /// The row's time.
    Ts,
    /// The row's value of one key and type.
    Field(&'a FieldColumn),
}

impl Column<'_> {
    /// The column's Arrow field.
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

/// One table at one moment: all rows that were appended before it was taken, none that came later. A row without any
/// field is no row. Holding it keeps the files it reads, so it should not outlive its query.
pub trait TableSnapshot: Send + Sync + fmt::Debug {
    /// The columns; they do not change while the snapshot lives.
    fn columns(&self) -> &TableColumns;

    /// At least as many rows as there are; rows written more than once may count more than once.
    fn rows_max(&self) -> u64;

    /// About how many rows lie in a range, found without reading; 0 only if there are none. A longer range has as many or more, and
    /// that of [`time_range`](Self::time_range) has [`rows_max`](Self::rows_max).
    fn rows_within(&self, range: TimeRange) -> u64;

    /// The smallest range that holds all rows, or a larger one; `None` when there are no rows. As in
    /// [`TimeRange::ALL`] the very last microsecond is never inside.
    fn time_range(&self) -> Option<TimeRange>;

    /// The table's series that satisfy all matchers.
    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError>;

    /// Readers that together give each row asked for exactly once, if none of them is given up early; with
    /// [`ReadOrder::End`] at most once. There may be none.
    ///
    /// Nothing is read before a reader's first `next`; readers may be used on different threads at once. Which reader
    /// gives which rows may depend on how fast each of them is emptied.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] when a column does not exist; readers report files that cannot be read.
    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError>;
}

/// Gives rows batch by batch. Memory use does not grow with the number of rows.
pub trait BatchReader: Send {
    /// The next rows, at most [`TableRead::batch_rows`], never an empty batch; `None` after the last.
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError>;
}

/// What to read of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRead {
    /// Indices into [`TableColumns::schema`] in the order wanted; none for bare row counts. A row whose asked columns
    /// are all null is still a row.
    pub columns: Vec<usize>,
    /// Which series; all when `None`.
    pub series: Option<SeriesSet>,
    /// Which time, half-open.
    pub range: TimeRange,
    /// In which order each reader gives its rows.
    pub order: ReadOrder,
    /// A reader may end once it has given this many rows, and must not do needless work beyond them. It may also go on.
    pub limit: Option<usize>,
    /// Most rows of one batch, at least 1.
    pub batch_rows: usize,
    /// Most readers. With [`ReadOrder::Time`] there is one at most.
    pub readers_max: usize,
    /// Tag columns say each text once for neighbouring rows of a series ([`TAG_RUNS_TYPE`]) instead of once for each row:
    /// rows come series by series in most orders, so there are few runs. Neighbouring runs may have the same text.
    pub tag_runs: bool,
}

/// The order of one reader's rows, and whether all of them are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadOrder {
    /// As it costs least.
    #[default]
    Any,
    /// By series number, then by time, ascending. All rows of a series come from the same reader.
    SeriesThenTime,
    /// By time over all series asked for; rows of one time in the order of their series numbers. Costs memory for each
    /// series, so it is meant for a few.
    Time(Order),
    /// As it costs least, for those who look at one end of each series only: at its newest rows if descending, at its
    /// oldest if ascending. Rows farther from that end than the nearest value of every asked field may be left out.
    End(Order),
}

/// A condition on one tag.
#[derive(Debug, Clone)]
pub struct TagMatcher {
    /// The tag's name.
    pub tag: String,
    /// What its value has to be.
    pub predicate: TagPredicate,
}

/// What a tag's value has to be. A series without the tag satisfies [`Absent`](Self::Absent) and nothing else, as NULL
/// in SQL.
#[derive(Debug, Clone)]
pub enum TagPredicate {
    /// Exactly this.
    Is(String),
    /// Anything else.
    IsNot(String),
    /// One of these.
    OneOf(Vec<String>),
    /// None of these.
    NoneOf(Vec<String>),
    /// The pattern is found in it; anchor the pattern to match the whole.
    Matches(regex::Regex),
    /// The pattern is not found in it.
    MatchesNot(regex::Regex),
    /// There is one.
    Present,
    /// There is none.
    Absent,
}

impl TagPredicate {
    /// Whether a value, or its absence, satisfies this.
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

/// What is known of a table without reading it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableStatus {
    /// Its name.
    pub table: String,
    /// Its series.
    pub series: u64,
    /// Its rows; those written more than once may count more than once until they are compacted.
    pub rows: u64,
    /// Points (fields of rows) in parts, if the backend counts them.
    pub points: Option<u64>,
    /// Bytes on disk, without its share of the log.
    pub bytes: u64,
    /// Bytes that times and fields in parts take as plain columns, before encoding and compression, if known: eight of a
    /// time or a number, one of a bool, the text of a text.
    pub raw_bytes: Option<u64>,
    /// Oldest and newest time that may have a row.
    pub time_range: Option<TimeRange>,
    /// How long rows are kept; for good when `None`.
    pub ttl: Option<Duration>,
}

/// Microseconds of the days, UTC, by which rows are dropped.
pub const DAY_US: i64 = 86_400_000_000;

/// The oldest time that a table with this time to live keeps.
pub fn oldest_kept(now: Timestamp, ttl: Duration) -> Timestamp {
    let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
    now.saturating_add_micros(micros.saturating_neg())
}

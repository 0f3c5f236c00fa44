//! Reads one series from a part: the runs of series find its rows, the page index the pages of its times, the blocks check
//! them, and what was decoded is kept for the next read.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use model::limits::PART_WINDOW_ROWS;
use model::{FieldType, TimeRange, ValueRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::LogicalType;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use store::{Order, StoreError};

use super::Part;
use super::blocks::BlockFile;
use super::cache::{Decoded, DecodedCache, DecodedKey};
use super::cells::{self, Cell};
use super::encode::decimal::{ScaleFinder, value_of};
use super::schema::{Layout, NARROW_VALUES};
use super::values::{SeriesRuns, Typed, Values};
use crate::catalog::{SERIES_COLUMN, TS_COLUMN};
use crate::disk::{Disk, OpenMode};
use crate::read::Source;

/// The name by which readers ask for the value of a narrow part. No key is empty, so none has it in a wide part.
pub(crate) const NARROW_COLUMN: &str = "";

/// A part whose footer was read.
pub(crate) struct PartReader {
    pub(super) file: BlockFile,
    reader: SerializedFileReader<BlockFile>,
    cache: Arc<DecodedCache>,
    columns: HashMap<Box<str>, usize, RandomState>,
    pub(super) arrow: ArrowReaderMetadata,
    pub(crate) cells: Vec<Cell>,
    pub(super) series: usize,
    pub(crate) ts: usize,
    /// Columns of a narrow part one of which has the value of a row.
    pub(super) narrow: Vec<usize>,
    /// By column: the scale of decimals.
    scales: Vec<Option<u8>>,
    /// Rows that are decoded and kept together: those of a page.
    window_rows: usize,
}

impl PartReader {
    /// Opens a part's file and reads its footer.
    pub(crate) fn of(disk: &dyn Disk, part: &Part, cache: Arc<DecodedCache>) -> Result<Self, StoreError> {
        let file = disk.open(&part.path, OpenMode::Read);
        let file = file.map_err(|error| StoreError::io("open", &part.path, error))?;
        Self::open(BlockFile::new(file, part.path.clone(), part.info.clone()), cache)
    }

    pub(crate) fn open(file: BlockFile, cache: Arc<DecodedCache>) -> Result<Self, StoreError> {
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(file.clone(), options)
            .map_err(|error| file.error(&error))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns: HashMap<Box<str>, usize, RandomState> = schema
            .columns()
            .iter()
            .enumerate()
            .map(|(index, column)| (column.name().into(), index))
            .collect();
        let scales = schema.columns().iter().map(|column| scale_of(column)).collect();
        let narrow = match file.info().layout {
            Layout::Narrow => {
                NARROW_VALUES.iter().filter_map(|(name, _)| columns.get(*name).copied()).collect()
            }
            Layout::Wide => Vec::new(),
        };
        let find = |name: &str| {
            columns
                .get(name)
                .copied()
                .ok_or_else(|| file.corrupt(0, format!("the part has no column {name}")))
        };
        let (series, ts) = (find(SERIES_COLUMN)?, find(TS_COLUMN)?);
        let metadata = Arc::new(reader.metadata().clone());
        let cells = cells::cells(&metadata, series, ts, file.info().layout);
        let arrow = cells::arrow_metadata(metadata).map_err(|error| file.error(&error))?;
        let mut part = Self {
            file,
            reader,
            cache,
            columns,
            arrow,
            cells,
            narrow,
            scales,
            series,
            ts,
            window_rows: PART_WINDOW_ROWS,
        };
        if let Some(page) = part.pages(0, part.ts).first() {
            part.window_rows = page.1.len().clamp(1, PART_WINDOW_ROWS);
        }
        Ok(part)
    }

    /// The number of a column by its physical name.
    pub(crate) fn column(&self, physical: &str) -> Option<usize> {
        self.columns.get(physical).copied()
    }

    /// The numbers of the columns that hold a field: of a narrow part all that may.
    fn columns_of(&self, physical: &str) -> &[usize] {
        match self.file.info().layout {
            Layout::Narrow if physical == NARROW_COLUMN => &self.narrow,
            // A key may be called as a column that narrow parts have.
            Layout::Narrow => &[],
            Layout::Wide => self.columns.get(physical).map_or(&[], std::slice::from_ref),
        }
    }

    /// Whether the part has a field.
    pub(crate) fn has(&self, physical: &str) -> bool {
        !self.columns_of(physical).is_empty()
    }

    /// Whether no row of a row group has a value in a column.
    pub(super) fn is_empty(&self, group: usize, column: usize) -> bool {
        let chunk = self.reader.metadata().row_group(group).column(column);
        chunk.statistics().and_then(Statistics::null_count_opt) == Some(chunk.num_values() as u64)
    }

    /// The row groups that may hold rows of a series in a time range.
    fn groups(&self, series: u32, range: TimeRange) -> VecDeque<usize> {
        let (start, end) = (range.start.micros(), range.end.micros());
        let wanted = i64::from(series);
        let may = |group: &usize| {
            self.extremes(*group, self.series).is_none_or(|(min, max)| min <= wanted && wanted <= max)
                && self.extremes(*group, self.ts).is_none_or(|(min, max)| min < end && start <= max)
        };
        (0..self.reader.metadata().num_row_groups()).filter(may).collect()
    }

    /// Smallest and largest number of a column of a row group.
    fn extremes(&self, group: usize, column: usize) -> Option<(i64, i64)> {
        match self.reader.metadata().row_group(group).column(column).statistics()? {
            Statistics::Int64(statistics) => Some((*statistics.min_opt()?, *statistics.max_opt()?)),
            _ => None,
        }
    }

    /// The windows of a row group that may hold rows of a series in a time range, each with these rows.
    fn windows(&self, group: usize, series: u32, range: TimeRange) -> Result<VecDeque<Window>, StoreError> {
        let rows = self.runs(group)?.rows(series);
        let (start, end) = (range.start.micros(), range.end.micros());
        let pages = self.pages(group, self.ts);
        let passing = |&&(extremes, _): &&Page| extremes.is_none_or(|(min, max)| min < end && start <= max);
        let near = pages.iter().filter(|(_, page)| page.start < rows.end && rows.start < page.end);
        let near: Vec<&Page> = near.filter(passing).collect();
        let (Some(first), Some(last)) = (near.first(), near.last()) else {
            return Ok(VecDeque::new());
        };
        // The times of a series ascend, so between two pages that may have some there is none that may not.
        let rows = rows.start.max(first.1.start)..rows.end.min(last.1.end);
        let windows = rows.start / self.window_rows..rows.end.div_ceil(self.window_rows);
        let part = |window: usize| {
            let (start, end) = (window * self.window_rows, (window + 1) * self.window_rows);
            Window { group, window, rows: rows.start.max(start) - start..rows.end.min(end) - start }
        };
        Ok(windows.map(part).collect())
    }

    /// The pages of a column of numbers; one page if the file does not tell.
    fn pages(&self, group: usize, column: usize) -> Vec<Page> {
        let metadata = self.reader.metadata();
        if group >= metadata.num_row_groups() {
            return Vec::new();
        }
        let rows = metadata.row_group(group).num_rows() as usize;
        let statistics = metadata.column_index().and_then(|groups| groups.get(group)?.get(column));
        let locations = metadata.offset_index().and_then(|groups| groups.get(group)?.get(column));
        let (Some(ColumnIndexMetaData::INT64(statistics)), Some(locations)) = (statistics, locations) else {
            return vec![(None, 0..rows)];
        };
        let locations = locations.page_locations();
        let page = |(page, location): (usize, &parquet::file::page_index::offset_index::PageLocation)| {
            let end = locations.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
            let extremes = statistics.min_value(page).copied().zip(statistics.max_value(page).copied());
            (extremes, location.first_row_index as usize..end)
        };
        locations.iter().enumerate().map(page).collect()
    }

    /// Where the series of a row group stand.
    fn runs(&self, group: usize) -> Result<Arc<SeriesRuns>, StoreError> {
        let key = self.key(group, self.series, u32::MAX);
        if let Some(Decoded::Runs(runs)) = self.cache.get(key) {
            return Ok(runs);
        }
        let rows = self.reader.metadata().row_group(group).num_rows() as usize;
        let numbers = self.numbers(self.series, group, &(0..rows))?;
        let runs = Arc::new(SeriesRuns::new(&numbers));
        self.cache.put(key, Decoded::Runs(runs.clone()));
        Ok(runs)
    }

    /// The values of a column in a window.
    fn values(
        &self,
        column: usize,
        field_type: FieldType,
        group: usize,
        window: usize,
    ) -> Result<Arc<Values>, StoreError> {
        let key = self.key(group, column, window as u32);
        if let Some(Decoded::Values(values)) = self.cache.get(key) {
            return Ok(values);
        }
        let rows = self.reader.metadata().row_group(group).num_rows() as usize;
        let start = window * self.window_rows;
        let values =
            Arc::new(self.decode(column, field_type, group, &(start..rows.min(start + self.window_rows)))?);
        self.cache.put(key, Decoded::Values(values.clone()));
        Ok(values)
    }

    fn key(&self, group: usize, column: usize, window: u32) -> DecodedKey {
        (self.file.info().id, group as u32, column as u32, window)
    }

    fn too_few(&self) -> StoreError {
        self.file.corrupt(0, "an internal column has too few values".to_owned())
    }

    /// Rows of a row group; `None` behind the last one.
    pub(super) fn rows_of_group(&self, group: usize) -> Option<usize> {
        let metadata = self.reader.metadata();
        (group < metadata.num_row_groups()).then(|| metadata.row_group(group).num_rows() as usize)
    }

    /// Series and times of some rows.
    pub(super) fn keys(&self, group: usize, rows: &Range<usize>) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
        Ok((self.numbers(self.series, group, rows)?, self.numbers(self.ts, group, rows)?))
    }

    fn numbers(&self, column: usize, group: usize, rows: &Range<usize>) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::with_capacity(rows.len());
        self.read_typed::<Int64Type>(column, group, rows, None, &mut numbers)?;
        if numbers.len() == rows.len() { Ok(numbers) } else { Err(self.too_few()) }
    }

    /// Looks for a scale at which the f64 of a column, together with those of others, are decimals. Decimals are not
    /// read for it; doubles are, until one fits at no scale.
    pub(crate) fn find_scale(&self, column: usize, finder: &mut ScaleFinder) -> Result<(), StoreError> {
        for group in 0..self.reader.metadata().num_row_groups() {
            if let Some(scale) = self.scales[column] {
                let (min, max) = self.extremes(group, column).unwrap_or_default();
                finder.add_column(scale, value_of(min, scale).abs().max(value_of(max, scale).abs()));
                continue;
            }
            let rows = self.rows_of_group(group).unwrap_or(0);
            for start in (0..rows).step_by(PART_WINDOW_ROWS) {
                if finder.is_impossible() {
                    return Ok(());
                }
                let rows = start..rows.min(start + PART_WINDOW_ROWS);
                let values = self.decode(column, FieldType::F64, group, &rows)?;
                values.doubles().iter().for_each(|value| finder.add(*value));
            }
        }
        Ok(())
    }

    /// Values of a column in some rows.
    pub(super) fn decode(
        &self,
        column: usize,
        field_type: FieldType,
        group: usize,
        rows: &Range<usize>,
    ) -> Result<Values, StoreError> {
        let mut levels = Vec::with_capacity(rows.len());
        let typed = match field_type {
            FieldType::Bool => {
                let mut values = Vec::new();
                self.read_typed::<BoolType>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::Bool(values)
            }
            FieldType::I64 => {
                let mut values = Vec::with_capacity(rows.len());
                self.read_typed::<Int64Type>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::I64(values)
            }
            FieldType::F64 => match self.scales[column] {
                Some(scale) => {
                    let mut integers = Vec::with_capacity(rows.len());
                    self.read_typed::<Int64Type>(column, group, rows, Some(&mut levels), &mut integers)?;
                    Typed::F64(integers.iter().map(|integer| value_of(*integer, scale)).collect())
                }
                None => {
                    let mut values = Vec::with_capacity(rows.len());
                    self.read_typed::<DoubleType>(column, group, rows, Some(&mut levels), &mut values)?;
                    Typed::F64(values)
                }
            },
            FieldType::String | FieldType::Json => {
                let mut values = Vec::new();
                self.read_typed::<ByteArrayType>(column, group, rows, Some(&mut levels), &mut values)?;
                if values.iter().any(|value: &ByteArray| std::str::from_utf8(value.data()).is_err()) {
                    return Err(self
                        .file
                        .corrupt(0, "a text column holds bytes that are not UTF-8".to_owned()));
                }
                Typed::Text(values, field_type)
            }
        };
        Ok(Values::new(typed, &levels))
    }

    fn read_typed<T: DataType + 'static>(
        &self,
        column: usize,
        group: usize,
        rows: &Range<usize>,
        levels: Option<&mut Vec<i16>>,
        values: &mut Vec<T::T>,
    ) -> Result<(), StoreError> {
        let read = || -> Result<(), ParquetError> {
            let group = self.reader.get_row_group(group)?;
            let reader: ColumnReader = group.get_column_reader(column)?;
            let mut reader = get_typed_column_reader::<T>(reader);
            reader.skip_records(rows.start)?;
            // A page ends a call early.
            let mut left = rows.len();
            let mut levels = levels;
            while left > 0 {
                let (records, ..) = reader.read_records(left, levels.as_deref_mut(), None, values)?;
                if records == 0 {
                    return Err(ParquetError::General("a column ends early".to_owned()));
                }
                left -= records;
            }
            Ok(())
        };
        read().map_err(|error| self.file.error(&error))
    }
}

/// Rows of a window of a row group, counted from the window's first.
struct Window {
    group: usize,
    window: usize,
    rows: Range<usize>,
}

/// Smallest and largest number of a page if they are known, and its rows.
type Page = (Option<(i64, i64)>, Range<usize>);

/// The scale of a column of decimals.
fn scale_of(column: &ColumnDescriptor) -> Option<u8> {
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => u8::try_from(decimal.scale).ok().filter(|scale| *scale <= 18),
        _ => None,
    }
}

/// The physical columns of one asked key.
pub(crate) type KeyColumns = Vec<(FieldType, Arc<str>)>;

/// Walks the rows of one series in a part.
pub(crate) struct PartSource {
    reader: Arc<PartReader>,
    series: u32,
    range: TimeRange,
    order: Order,
    keys: Vec<Vec<(FieldType, usize)>>,
    groups: VecDeque<usize>,
    windows: VecDeque<Window>,
    times: Option<Arc<Values>>,
    /// By key, then by column.
    values: Vec<Vec<Arc<Values>>>,
    /// The rows that belong to the series and the range, and the row at hand.
    rows: Range<usize>,
    at: usize,
}

impl PartSource {
    pub(crate) fn new(
        reader: Arc<PartReader>,
        series: u32,
        keys: &[KeyColumns],
        range: TimeRange,
        order: Order,
    ) -> Result<Self, StoreError> {
        let columns = |columns: &KeyColumns| {
            let of = |(field_type, name): &(FieldType, Arc<str>)| {
                reader.columns_of(name).iter().map(|column| (*field_type, *column)).collect::<Vec<_>>()
            };
            columns.iter().flat_map(of).collect()
        };
        let keys: Vec<Vec<_>> = keys.iter().map(columns).collect();
        let groups = match keys.iter().all(Vec::is_empty) {
            true => VecDeque::new(),
            false => reader.groups(series, range),
        };
        let mut source = Self {
            reader,
            series,
            range,
            order,
            keys,
            groups,
            windows: VecDeque::new(),
            times: None,
            values: Vec::new(),
            rows: 0..0,
            at: 0,
        };
        source.load()?;
        Ok(source)
    }

    /// Reads windows until one has a row.
    fn load(&mut self) -> Result<(), StoreError> {
        self.times = None;
        while self.times.is_none() {
            let Some(window) = next(&mut self.windows, self.order) else {
                let Some(group) = next(&mut self.groups, self.order) else {
                    return Ok(());
                };
                self.windows = self.reader.windows(group, self.series, self.range)?;
                continue;
            };
            self.enter(&window)?;
        }
        Ok(())
    }

    /// Goes to the first row of a window, if it has one in the range.
    fn enter(&mut self, window: &Window) -> Result<(), StoreError> {
        let Window { group, window, rows } = window;
        let times = self.reader.values(self.reader.ts, FieldType::I64, *group, *window)?;
        let numbers = times.numbers().get(rows.clone()).ok_or_else(|| self.reader.too_few())?;
        let first = numbers.partition_point(|ts| *ts < self.range.start.micros());
        let end = numbers.partition_point(|ts| *ts < self.range.end.micros());
        if first >= end {
            return Ok(());
        }
        self.rows = rows.start + first..rows.start + end;
        let values = self.keys.iter().map(|columns| self.read_key(columns, *group, *window));
        self.values = values.collect::<Result<_, _>>()?;
        self.at = if self.order == Order::Ascending { self.rows.start } else { self.rows.end - 1 };
        self.times = Some(times);
        Ok(())
    }

    /// The columns of one key in a window.
    fn read_key(
        &self,
        columns: &[(FieldType, usize)],
        group: usize,
        window: usize,
    ) -> Result<Vec<Arc<Values>>, StoreError> {
        let mut found = Vec::with_capacity(1);
        for (field_type, column) in columns {
            if self.reader.is_empty(group, *column) {
                continue;
            }
            let values = self.reader.values(*column, *field_type, group, window)?;
            // In a narrow part all rows of a table in a row group have their values in the same column.
            if !self.reader.narrow.is_empty() && values.get(self.rows.start).is_some() {
                return Ok(vec![values]);
            }
            found.push(values);
        }
        Ok(found)
    }
}

fn next<T>(queue: &mut VecDeque<T>, order: Order) -> Option<T> {
    match order {
        Order::Ascending => queue.pop_front(),
        Order::Descending => queue.pop_back(),
    }
}

impl Source for PartSource {
    fn ts(&self) -> Option<i64> {
        self.times.as_ref()?.numbers().get(self.at).copied()
    }

    fn value(&self, key: usize) -> Option<ValueRef<'_>> {
        self.values[key].iter().find_map(|values| values.get(self.at))
    }

    fn advance(&mut self) -> Result<(), StoreError> {
        let next = match self.order {
            Order::Ascending => Some(self.at + 1),
            Order::Descending => self.at.checked_sub(1),
        };
        match next.filter(|at| self.rows.contains(at)) {
            Some(at) => self.at = at,
            None => self.load()?,
        }
        Ok(())
    }
}

//! Reads one series from a part: the page index finds the pages, the blocks check them.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use model::limits::PART_WINDOW_ROWS as WINDOW_ROWS;
use model::{FieldType, TimeRange, Timestamp, ValueRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use store::{Order, StoreError};

use super::Part;
use super::blocks::BlockFile;
use super::cells::{self, Cell};
use crate::catalog::{SERIES_COLUMN, TS_COLUMN};
use crate::disk::{Disk, OpenMode};
use crate::read::Source;

/// A part whose footer was read.
pub(crate) struct PartReader {
    pub(super) file: BlockFile,
    reader: SerializedFileReader<BlockFile>,
    columns: HashMap<Box<str>, usize, RandomState>,
    pub(super) arrow: ArrowReaderMetadata,
    pub(crate) cells: Vec<Cell>,
    pub(super) series: usize,
    pub(crate) ts: usize,
}

/// A row group and rows in it.
type Window = (usize, Range<usize>);

impl PartReader {
    /// Opens a part's file and reads its footer.
    pub(crate) fn of(disk: &dyn Disk, part: &Part) -> Result<Self, StoreError> {
        let file = disk.open(&part.path, OpenMode::Read);
        let file = file.map_err(|error| StoreError::io("open", &part.path, error))?;
        Self::open(BlockFile::new(file, part.path.clone(), part.info.clone()))
    }

    fn open(file: BlockFile) -> Result<Self, StoreError> {
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
        let find = |name: &str| {
            columns
                .get(name)
                .copied()
                .ok_or_else(|| file.corrupt(0, format!("the part has no column {name}")))
        };
        let (series, ts) = (find(SERIES_COLUMN)?, find(TS_COLUMN)?);
        let metadata = Arc::new(reader.metadata().clone());
        let cells = cells::cells(&metadata, series, ts);
        let arrow = cells::arrow_metadata(metadata).map_err(|error| file.error(&error))?;
        Ok(Self { file, reader, columns, arrow, cells, series, ts })
    }

    /// The number of a column by its physical name.
    pub(crate) fn column(&self, physical: &str) -> Option<usize> {
        self.columns.get(physical).copied()
    }

    /// The windows that may hold rows of a series in a time range, in file order.
    fn windows(&self, series: u32, range: TimeRange) -> Vec<Window> {
        let metadata = self.reader.metadata();
        let mut windows = Vec::new();
        for group in 0..metadata.num_row_groups() {
            let rows = metadata.row_group(group).num_rows() as usize;
            let wanted = i64::from(series);
            let pages = self.pages(group, self.series, rows, |min, max| min <= wanted && wanted <= max);
            let (start, end) = (range.start.micros(), range.end.micros());
            let times = self.pages(group, self.ts, rows, |min, max| min < end && start <= max);
            for rows in intersect(&pages, &times) {
                let starts = rows.clone().step_by(WINDOW_ROWS);
                windows.extend(starts.map(|start| (group, start..rows.end.min(start + WINDOW_ROWS))));
            }
        }
        windows
    }

    /// Row ranges of the pages whose statistics pass; everything where there are none.
    fn pages(
        &self,
        group: usize,
        column: usize,
        rows: usize,
        pass: impl Fn(i64, i64) -> bool,
    ) -> Vec<Range<usize>> {
        let metadata = self.reader.metadata();
        let statistics = metadata.column_index().and_then(|groups| groups.get(group)?.get(column));
        let locations = metadata.offset_index().and_then(|groups| groups.get(group)?.get(column));
        let (Some(ColumnIndexMetaData::INT64(statistics)), Some(locations)) = (statistics, locations) else {
            return std::iter::once(0..rows).collect();
        };
        let locations = locations.page_locations();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (page, location) in locations.iter().enumerate() {
            let start = location.first_row_index as usize;
            let end = locations.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
            let skip = matches!(
                (statistics.min_value(page), statistics.max_value(page)),
                (Some(min), Some(max)) if !pass(*min, *max)
            );
            match ranges.last_mut() {
                _ if skip => {}
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// The rows of a window that belong to the series and the time range, with their times.
    fn find(
        &self,
        window: &Window,
        series: u32,
        range: TimeRange,
    ) -> Result<(Range<usize>, Vec<i64>), StoreError> {
        let numbers = self.numbers(self.series, window.0, &window.1)?;
        let wanted = i64::from(series);
        let first = numbers.partition_point(|number| *number < wanted);
        let end = numbers.partition_point(|number| *number <= wanted);
        let rows = window.1.start + first..window.1.start + end;
        if rows.is_empty() {
            return Ok((rows, Vec::new()));
        }
        let mut times = self.numbers(self.ts, window.0, &rows)?;
        let first = times.partition_point(|ts| *ts < range.start.micros());
        let end = times.partition_point(|ts| Timestamp::from_micros(*ts) < range.end);
        times.truncate(end);
        times.drain(..first.min(end));
        Ok((rows.start + first.min(end)..rows.start + end, times))
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
        let mut values = Vec::with_capacity(rows.len());
        self.read_typed::<Int64Type>(column, group, rows, None, &mut values)?;
        match values.len() == rows.len() {
            true => Ok(values),
            false => Err(self.file.corrupt(0, "an internal column has too few values".to_owned())),
        }
    }

    pub(super) fn values(
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
                let mut values = Vec::new();
                self.read_typed::<Int64Type>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::I64(values)
            }
            FieldType::F64 => {
                let mut values = Vec::new();
                self.read_typed::<DoubleType>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::F64(values)
            }
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
        if levels.len() != rows.len() {
            return Err(self.file.corrupt(0, "a column has too few rows".to_owned()));
        }
        let mut next = 0;
        let mut places = Vec::with_capacity(rows.len());
        for level in levels {
            places.push(if level == 0 { NO_VALUE } else { next });
            next += u32::from(level != 0);
        }
        Ok(Values { typed, places })
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
            reader.read_records(rows.len(), levels, None, values)?;
            Ok(())
        };
        read().map_err(|error| self.file.error(&error))
    }
}

/// What two lists of ascending ranges have in common.
fn intersect(a: &[Range<usize>], b: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut common = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let range = x.start.max(y.start)..x.end.min(y.end);
        if !range.is_empty() {
            common.push(range);
        }
        if x.end < y.end { i += 1 } else { j += 1 }
    }
    common
}

const NO_VALUE: u32 = u32::MAX;

/// Values of one column in some rows.
pub(super) struct Values {
    typed: Typed,
    /// By row: the place of its value.
    places: Vec<u32>,
}

enum Typed {
    Bool(Vec<bool>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    Text(Vec<ByteArray>, FieldType),
}

impl Values {
    /// Whether a row has a value.
    pub(super) fn has(&self, row: usize) -> bool {
        self.places[row] != NO_VALUE
    }

    pub(super) fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        let place = *self.places.get(row)? as usize;
        Some(match &self.typed {
            Typed::Bool(values) => ValueRef::Bool(*values.get(place)?),
            Typed::I64(values) => ValueRef::I64(*values.get(place)?),
            Typed::F64(values) => ValueRef::F64(*values.get(place)?),
            Typed::Text(values, field_type) => {
                let text =
                    std::str::from_utf8(values.get(place)?.data()).expect("BUG: checked when it was read");
                match field_type {
                    FieldType::Json => ValueRef::Json(text),
                    _ => ValueRef::String(text),
                }
            }
        })
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
    windows: VecDeque<Window>,
    times: Vec<i64>,
    /// By key, then by column.
    values: Vec<Vec<Values>>,
    /// The row at hand, in `times`.
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
            columns
                .iter()
                .filter_map(|(field_type, name)| Some((*field_type, reader.column(name)?)))
                .collect()
        };
        let keys: Vec<Vec<_>> = keys.iter().map(columns).collect();
        let windows = match keys.iter().all(Vec::is_empty) {
            true => VecDeque::new(),
            false => reader.windows(series, range).into(),
        };
        let mut source = Self {
            reader,
            series,
            range,
            order,
            keys,
            windows,
            times: Vec::new(),
            values: Vec::new(),
            at: 0,
        };
        source.load()?;
        Ok(source)
    }

    /// Reads windows until one has a row.
    fn load(&mut self) -> Result<(), StoreError> {
        self.times.clear();
        while self.times.is_empty() {
            let window = match self.order {
                Order::Ascending => self.windows.pop_front(),
                Order::Descending => self.windows.pop_back(),
            };
            let Some(window) = window else {
                return Ok(());
            };
            let (rows, times) = self.reader.find(&window, self.series, self.range)?;
            if times.is_empty() {
                continue;
            }
            let read = |(field_type, column): &(FieldType, usize)| {
                self.reader.values(*column, *field_type, window.0, &rows)
            };
            let values = self.keys.iter().map(|columns| columns.iter().map(read).collect());
            self.values = values.collect::<Result<_, _>>()?;
            self.at = if self.order == Order::Ascending { 0 } else { times.len() - 1 };
            self.times = times;
        }
        Ok(())
    }
}

impl Source for PartSource {
    fn ts(&self) -> Option<i64> {
        self.times.get(self.at).copied()
    }

    fn value(&self, key: usize) -> Option<ValueRef<'_>> {
        self.values[key].iter().find_map(|values| values.get(self.at))
    }

    fn advance(&mut self) -> Result<(), StoreError> {
        let next = match self.order {
            Order::Ascending => Some(self.at + 1).filter(|at| *at < self.times.len()),
            Order::Descending => self.at.checked_sub(1),
        };
        match next {
            Some(at) => self.at = at,
            None => self.load()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_intersect() {
        let one = |start, end| std::iter::once(start..end).collect::<Vec<Range<usize>>>();
        assert_eq!(intersect(&[0..10, 20..30], &one(5, 25)), [5..10, 20..25]);
        assert!(intersect(&one(0, 10), &one(10, 20)).is_empty());
        assert_eq!(intersect(&[0..4, 4..8], &[0..2, 3..8]), [0..2, 3..4, 4..8]);
    }
}

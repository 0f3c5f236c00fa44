//! Columns of a part as Arrow arrays, cell by cell.
//!
//! A *cell* is the rows of one data page of the column `ts`: what is decoded at once and kept in the cache. This is
//! the one place where bytes of a part become arrays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use foldhash::fast::RandomState;
use model::TimeRange;
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelectionPolicy, RowSelector,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use store::StoreError;

use super::blocks::{BlockFile, BlockStream};
use super::read::{PartReader, is_narrow};
use super::schema::Layout;
use crate::array_cache::{ArrayCache, ArrayKey, Cached, Keep, Run};
use crate::table::plan::Slot;

/// Rows that are decoded at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) group: u32,
    /// Its first row in the row group.
    pub(crate) start: u32,
    pub(crate) rows: u32,
    /// Smallest and largest; as wide as can be where the file does not say.
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
}

impl Cell {
    /// Whether all of its rows lie in a range.
    pub(crate) fn is_within(&self, range: &TimeRange) -> bool {
        range.start.micros() <= self.ts.0 && self.ts.1 < range.end.micros()
    }

    /// Whether some of its rows may lie in a range.
    pub(crate) fn overlaps(&self, range: &TimeRange) -> bool {
        self.ts.0 < range.end.micros() && range.start.micros() <= self.ts.1
    }
}

/// Options under which our columns become the arrays of the contract.
pub(super) fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> ParquetResult<ArrowReaderMetadata> {
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(metadata.clone(), options())?;
    let hint = |field: &Arc<Field>| {
        let data_type = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            DataType::Decimal128(precision, scale) => DataType::Decimal64(*precision, *scale),
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(data_type)
    };
    let hinted = Schema::new(plain.schema().fields().iter().map(hint).collect::<Vec<_>>());
    ArrowReaderMetadata::try_new(metadata, options().with_schema(Arc::new(hinted)))
}

/// All cells, in file order.
pub(super) fn cells(metadata: &ParquetMetaData, series: usize, ts: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for group in 0..metadata.num_row_groups() {
        let rows = metadata.row_group(group).num_rows() as u32;
        let statistics = |column: usize| {
            let index = metadata.column_index().and_then(|groups| groups.get(group)?.get(column));
            index.and_then(
                |index| if let ColumnIndexMetaData::INT64(index) = index { Some(index) } else { None },
            )
        };
        let starts = |column: usize| {
            let index = metadata.offset_index().and_then(|groups| groups.get(group)?.get(column));
            let pages = index.map(|index| index.page_locations().iter());
            pages.map(|pages| pages.map(|page| page.first_row_index as u32).collect::<Vec<_>>())
        };
        let pages = starts(ts).unwrap_or_else(|| vec![0]);
        for (page, start) in pages.iter().enumerate() {
            let end = pages.get(page + 1).copied().unwrap_or(rows);
            let bounds = |column: usize| {
                let index = statistics(column)?;
                // Statistics of other pages would be those of other rows.
                let same = column == ts || starts(column).as_ref() == Some(&pages);
                same.then_some(())?;
                Some((*index.min_value(page)?, *index.max_value(page)?))
            };
            let number = |number: i64| u32::try_from(number).ok();
            let series = bounds(series).and_then(|(min, max)| Some((number(min)?, number(max)?)));
            cells.push(Cell {
                group: group as u32,
                start: *start,
                rows: end - start,
                series: series.unwrap_or((0, u32::MAX)),
                ts: bounds(ts).unwrap_or((i64::MIN, i64::MAX)),
            });
        }
    }
    // A search by series or table needs the bounds of all cells or none.
    if cells.iter().any(|cell| cell.series == (0, u32::MAX)) {
        cells.iter_mut().for_each(|cell| cell.series = (0, u32::MAX));
    }
    cells
}

impl PartReader {
    /// The cells among which all are that hold rows of a table's series between two numbers, both included. `table_of`
    /// says the table of a series.
    pub(crate) fn cells_of(
        &self,
        table: u32,
        series: (u32, u32),
        table_of: impl Fn(u32) -> Option<u32>,
    ) -> Range<u32> {
        let (first, end) = match self.file.info().layout {
            Layout::Wide => (
                self.cells.partition_point(|cell| cell.series.1 < series.0),
                self.cells.partition_point(|cell| cell.series.0 <= series.1),
            ),
            Layout::Narrow => {
                tables_between(self.tables.get_or_init(|| self.tables_of_cells(table_of)), table)
                    .unwrap_or((0, self.cells.len()))
            }
        };
        first as u32..end.max(first) as u32
    }

    /// For each cell of a narrow part two tables of which it has rows, the smaller one first; nothing if some are not
    /// known.
    fn tables_of_cells(&self, table_of: impl Fn(u32) -> Option<u32>) -> Vec<(u32, u32)> {
        let tables = |cell: &Cell| {
            // The table of its smallest series and that of its largest; these may be any of the cell's tables.
            let (a, b) = (table_of(cell.series.0)?, table_of(cell.series.1)?);
            Some((a.min(b), a.max(b)))
        };
        self.cells.iter().map(tables).collect::<Option<_>>().unwrap_or_default()
    }

    fn arrow_error(&self, error: ArrowError) -> StoreError {
        self.file.error(&parquet::errors::ParquetError::External(Box::new(error)))
    }

    /// Begins to decode one column at a cell; gives an array for each of `cells`, which are of one size and group.
    fn stream(&self, column: usize, cells: Range<u32>) -> Result<ParquetRecordBatchReader, StoreError> {
        let (first, last) = (&self.cells[cells.start as usize], &self.cells[cells.end as usize - 1]);
        let rows = (last.start + last.rows - first.start) as usize;
        let input = Ahead::new(self, column, first, rows, cells.len() > 1)?;
        let metadata = &self.arrow;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata.clone())
            .with_row_groups(vec![first.group as usize])
            .with_projection(ProjectionMask::leaves(metadata.parquet_schema(), [column]))
            .with_row_selection_policy(RowSelectionPolicy::Selectors)
            .with_batch_size(first.rows as usize);
        let selection = [RowSelector::skip(first.start as usize), RowSelector::select(rows)];
        let builder = builder.with_row_selection(RowSelection::from(selection.to_vec()));
        builder.build().map_err(|error| self.file.error(&error))
    }
}

/// The first and the end of the cells that may have rows of a table. Rows are sorted by table, so what a cell has lies
/// between what its neighbours have.
fn tables_between(cells: &[(u32, u32)], table: u32) -> Option<(usize, usize)> {
    let next = cells.get(1..)?;
    let first = next.partition_point(|cell| cell.0 < table);
    let end = 1 + cells[..next.len()].partition_point(|cell| cell.1 <= table);
    Some((first, end))
}

/// A column's type in the contract, where the file has it in another form.
fn plain(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Decimal64(_, scale) => {
            let scale = 10_f64.powi(i32::from(*scale));
            let numbers = array.as_primitive::<Decimal64Type>();
            let values = numbers.values().iter().map(|value| *value as f64 / scale).collect();
            Arc::new(Float64Array::new(values, numbers.nulls().cloned()))
        }
        _ => array.clone(),
    }
}

/// The series numbers of a cell as runs.
fn runs(array: &ArrayRef) -> Option<Arc<[Run]>> {
    let numbers = array.as_primitive_opt::<UInt64Type>()?.values();
    let mut runs = Vec::new();
    let mut end = 0;
    for of_series in numbers.chunk_by(|a, b| a == b) {
        end += of_series.len() as u32;
        runs.push(Run { series: u32::try_from(of_series[0]).ok()?, end });
    }
    Some(runs.into())
}

/// Reads columns of a part; each column is a stream of its own that goes on where it was.
pub(crate) struct PartColumns {
    pub(crate) part: u64,
    pub(crate) reader: Arc<PartReader>,
    cache: Arc<ArrayCache>,
    keep: Keep,
    /// Cells that will be asked for, one after the other; others are decoded alone.
    ahead: Range<u32>,
    streams: Mutex<HashMap<usize, Stream, RandomState>>,
}

struct Stream {
    next: u32,
    end: u32,
    arrays: ParquetRecordBatchReader,
}

impl PartColumns {
    pub(crate) fn new(
        part: u64,
        reader: Arc<PartReader>,
        cache: Arc<ArrayCache>,
        keep: Keep,
        ahead: Range<u32>,
    ) -> Self {
        Self { part, reader, cache, keep, ahead, streams: Mutex::default() }
    }

    /// Whether rows of other tables may stand between those of one, so that the series of a cell need not ascend.
    pub(crate) fn may_mix_tables(&self) -> bool {
        !self.reader.narrow.is_empty()
    }

    /// The runs of series in a cell.
    pub(crate) fn runs(&self, cell: u32) -> Result<Arc<[Run]>, StoreError> {
        let bounds = self.reader.cells[cell as usize];
        if bounds.series.0 == bounds.series.1 {
            return Ok(Arc::new([Run { series: bounds.series.0, end: bounds.rows }]));
        }
        let column = self.reader.series;
        let key = ArrayKey::Part { part: self.part, column: column as u32, cell };
        if let Some(Cached::Runs(runs)) = self.cache.get(&key) {
            return Ok(runs);
        }
        let array = self.decode(cell, column)?;
        let runs = runs(&array).ok_or_else(|| self.corrupt("series numbers"))?;
        self.cache.put(key, Cached::Runs(runs.clone()), self.keep);
        Ok(runs)
    }

    /// The values of a field in a cell, for the rows of the table of one of its rows; `None` if there are none.
    pub(crate) fn field(&self, cell: u32, slot: &Slot, row: u32) -> Result<Option<ArrayRef>, StoreError> {
        let narrow = &self.reader.narrow;
        if narrow.is_empty() {
            let column = self.reader.column(&slot.physical);
            return column.map(|column| self.array(cell, column)).transpose();
        }
        if !is_narrow(slot) {
            return Ok(None);
        }
        // All rows of a table in a row group have their values in the same column.
        let group = self.reader.cells[cell as usize].group as usize;
        for column in narrow.iter().filter(|column| !self.reader.is_empty(group, **column)) {
            let array = self.array(cell, *column)?;
            if array.is_valid(row as usize) {
                return Ok(Some(array));
            }
        }
        Ok(None)
    }

    /// The values of a column in a cell.
    pub(crate) fn array(&self, cell: u32, column: usize) -> Result<ArrayRef, StoreError> {
        let key = ArrayKey::Part { part: self.part, column: column as u32, cell };
        if let Some(Cached::Array(array)) = self.cache.get(&key) {
            return Ok(array);
        }
        let array = plain(&self.decode(cell, column)?);
        self.cache.put(key, Cached::Array(array.clone()), self.keep);
        Ok(array)
    }

    fn decode(&self, cell: u32, column: usize) -> Result<ArrayRef, StoreError> {
        let mut streams = self.streams.lock();
        let stream = match streams.get_mut(&column) {
            Some(stream) if stream.next == cell && cell < stream.end => stream,
            _ => {
                let cells = self.alike(cell);
                let arrays = self.reader.stream(column, cells.clone())?;
                let stream = Stream { next: cell, end: cells.end, arrays };
                streams.entry(column).insert_entry(stream).into_mut()
            }
        };
        stream.next += 1;
        let batch = stream.arrays.next().transpose().map_err(|error| self.reader.arrow_error(error))?;
        let rows = self.reader.cells[cell as usize].rows as usize;
        match batch {
            Some(batch) if batch.num_rows() == rows && batch.num_columns() == 1 => {
                Ok(batch.column(0).clone())
            }
            _ => Err(self.corrupt("values")),
        }
    }

    fn corrupt(&self, what: &str) -> StoreError {
        self.reader.file.corrupt(0, format!("a column holds other {what} than its row group says"))
    }

    /// The cells from this one that can be decoded as one stream: of its group and size, but for the last.
    fn alike(&self, cell: u32) -> Range<u32> {
        let first = &self.reader.cells[cell as usize];
        let mut end = cell + 1;
        if self.ahead.contains(&cell) {
            let mut rows = first.rows;
            while end < self.ahead.end {
                let next = &self.reader.cells[end as usize];
                if next.group != first.group || rows != first.rows || next.rows > first.rows {
                    break;
                }
                rows = next.rows;
                end += 1;
            }
        }
        cell..end
    }
}

/// A part's file with the bytes of a column fetched at once.
struct Ahead {
    file: BlockFile,
    start: u64,
    bytes: Bytes,
}

impl Ahead {
    /// Fetches the pages of `rows` rows if `fetch` says that they will all be read.
    fn new(
        reader: &PartReader,
        column: usize,
        first: &Cell,
        rows: usize,
        fetch: bool,
    ) -> Result<Self, StoreError> {
        let file = reader.file.clone();
        let metadata = reader.arrow.metadata();
        let group = first.group as usize;
        let index = metadata.offset_index().and_then(|groups| groups.get(group)?.get(column));
        let Some(index) = index.filter(|_| fetch) else {
            return Ok(Self { file, start: 0, bytes: Bytes::new() });
        };
        let pages = index.page_locations();
        let from = pages.partition_point(|page| page.first_row_index <= i64::from(first.start)).max(1) - 1;
        let end = i64::from(first.start) + rows as i64;
        let to = pages.partition_point(|page| page.first_row_index < end).max(1) - 1;
        let (Some(from), Some(to)) = (pages.get(from), pages.get(to)) else {
            return Ok(Self { file, start: 0, bytes: Bytes::new() });
        };
        let start = from.offset as u64;
        let length = to.offset as u64 + to.compressed_page_size as u64 - start;
        let bytes = file.get_bytes(start, length as usize).map_err(|error| file.error(&error))?;
        Ok(Self { file, start, bytes })
    }
}

impl Length for Ahead {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Ahead {
    type T = BlockStream;

    fn get_read(&self, start: u64) -> ParquetResult<BlockStream> {
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let inside = start.checked_sub(self.start).map(|from| from as usize);
        match inside.filter(|from| from + length <= self.bytes.len()) {
            Some(from) => Ok(self.bytes.slice(from..from + length)),
            None => self.file.get_bytes(start, length),
        }
    }
}

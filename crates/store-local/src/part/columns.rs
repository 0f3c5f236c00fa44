//! Columns of a part as Arrow arrays, page by page.
//!
//! No other code turns the bytes of a part into arrays for readers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use foldhash::fast::RandomState;
use model::FieldType;
use model::limits::READ_AHEAD_BYTES_MAX;
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy, RowSelector,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};
use store::StoreError;

use super::blocks::{BlockFile, BlockStream};
use super::info::PartLayout;
use super::page::Page;
use super::read::{PartReader, is_narrow};
use crate::array_cache::{ArrayCache, ArrayKey, Cached, Keep, SeriesRun};
use crate::catalog::Slot;

impl PartReader {
    /// A range of pages that includes all pages with rows of a table and of series between two numbers, both included.
    /// `table_of` gives the table of a series.
    pub(crate) fn pages_of(
        &self,
        table: u32,
        series: (u32, u32),
        table_of: impl Fn(u32) -> Option<u32>,
    ) -> Range<u32> {
        let (first, end) = match self.file.info().layout {
            PartLayout::Wide => (
                self.pages.partition_point(|page| page.series.1 < series.0),
                self.pages.partition_point(|page| page.series.0 <= series.1),
            ),
            PartLayout::Narrow => {
                tables_between(self.tables.get_or_init(|| self.tables_of_pages(table_of)), table)
                    .unwrap_or((0, self.pages.len()))
            }
        };
        first as u32..end.max(first) as u32
    }

    /// For each page of a narrow part two tables that have rows in it, the smaller one first. Empty if a table is not
    /// known.
    fn tables_of_pages(&self, table_of: impl Fn(u32) -> Option<u32>) -> Vec<(u32, u32)> {
        let tables = |page: &Page| {
            // The tables of its smallest and its largest series. They may be any of the tables of the page.
            let (a, b) = (table_of(page.series.0)?, table_of(page.series.1)?);
            Some((a.min(b), a.max(b)))
        };
        self.pages.iter().map(tables).collect::<Option<_>>().unwrap_or_default()
    }

    fn arrow_error(&self, error: ArrowError) -> StoreError {
        self.file.error(&parquet::errors::ParquetError::External(Box::new(error)))
    }

    /// Starts to decode one column. Gives an array for each of `pages`, which have the same size and are in one row group.
    fn stream(&self, column: usize, pages: Range<u32>) -> Result<ParquetRecordBatchReader, StoreError> {
        let (first, last) = (&self.pages[pages.start as usize], &self.pages[pages.end as usize - 1]);
        let rows = (last.start + last.rows - first.start) as usize;
        let input = Ahead::new(self, column, first, rows, pages.len() > 1)?;
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

/// The range of the pages that may have rows of a table. Rows are sorted by table, so the tables of a page are between
/// those of its neighbours.
fn tables_between(pages: &[(u32, u32)], table: u32) -> Option<(usize, usize)> {
    let next = pages.get(1..)?;
    let first = next.partition_point(|page| page.0 < table);
    let end = 1 + pages[..next.len()].partition_point(|page| page.1 <= table);
    Some((first, end))
}

/// The array of a column in the type of the contract, where the file has another form.
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

/// The runs of equal series numbers in a page.
fn runs(array: &ArrayRef) -> Option<Arc<[SeriesRun]>> {
    let numbers = array.as_primitive_opt::<UInt64Type>()?.values();
    let mut runs = Vec::new();
    let mut end = 0;
    for of_series in numbers.chunk_by(|a, b| a == b) {
        end += of_series.len() as u32;
        runs.push(SeriesRun { series: u32::try_from(of_series[0]).ok()?, end });
    }
    Some(runs.into())
}

/// Reads the columns of a part. Each column is a stream that continues where it was.
pub(crate) struct PartColumns {
    pub(crate) part: u64,
    pub(crate) reader: Arc<PartReader>,
    cache: Arc<ArrayCache>,
    keep: Keep,
    /// The pages that the caller will read one after the other. Other pages are decoded alone.
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

    /// Whether rows of other tables may be between those of one table, so that the series of a page need not ascend.
    pub(crate) fn may_mix_tables(&self) -> bool {
        !self.reader.narrow.is_empty()
    }

    /// The runs of series in a page.
    pub(crate) fn runs(&self, page: u32) -> Result<Arc<[SeriesRun]>, StoreError> {
        let bounds = self.reader.pages[page as usize];
        if bounds.series.0 == bounds.series.1 {
            return Ok(Arc::new([SeriesRun { series: bounds.series.0, end: bounds.rows }]));
        }
        let column = self.reader.series;
        let key = ArrayKey::Part { part: self.part, column: column as u32, page };
        if let Some(Cached::Runs(runs)) = self.cache.get(&key) {
            return Ok(runs);
        }
        let array = self.decode(page, column)?;
        let runs = runs(&array).ok_or_else(|| self.corrupt("series numbers"))?;
        self.cache.put(key, Cached::Runs(runs.clone()), self.keep);
        Ok(runs)
    }

    /// The values of a field in a page, for some rows of one table; `None` if there are none.
    pub(crate) fn field(
        &self,
        page: u32,
        slot: &Slot,
        rows: Range<u32>,
    ) -> Result<Option<ArrayRef>, StoreError> {
        let narrow = &self.reader.narrow;
        if narrow.is_empty() {
            let column = self.reader.column(&slot.physical);
            return column.map(|column| self.array(page, column)).transpose();
        }
        if !is_narrow(slot) {
            return Ok(None);
        }
        // In a row group all rows of a table have their values in the same column.
        let group = self.reader.pages[page as usize].group as usize;
        for column in narrow.iter().filter(|column| !self.reader.is_empty(group, **column)) {
            let array = self.array(page, *column)?;
            let (start, length) = (rows.start as usize, rows.len());
            // A row whose value was deleted has none.
            if array.nulls().is_none_or(|nulls| nulls.slice(start, length).null_count() < length) {
                return Ok(Some(array));
            }
        }
        Ok(None)
    }

    /// The values of a column in a page.
    pub(crate) fn array(&self, page: u32, column: usize) -> Result<ArrayRef, StoreError> {
        let key = ArrayKey::Part { part: self.part, column: column as u32, page };
        if let Some(Cached::Array(array)) = self.cache.get(&key) {
            return Ok(array);
        }
        let array = plain(&self.decode(page, column)?);
        self.cache.put(key, Cached::Array(array.clone()), self.keep);
        Ok(array)
    }

    /// About the bytes of the texts in some slots of a page.
    pub(crate) fn text_bytes(&self, page: u32, slots: &[Slot]) -> usize {
        let texts =
            slots.iter().filter(|slot| matches!(slot.field_type, FieldType::String | FieldType::Json));
        let page = &self.reader.pages[page as usize];
        let group = self.reader.metadata().row_group(page.group as usize);
        let bytes = |slot: &Slot| {
            let column = self.reader.column(&slot.physical)?;
            u64::try_from(group.column(column).uncompressed_size()).ok()
        };
        let of_group: u64 = texts.filter_map(bytes).sum();
        let of_page = of_group * u64::from(page.rows) / (group.num_rows().max(1) as u64);
        usize::try_from(of_page).unwrap_or(usize::MAX)
    }

    /// Ends the streams. What is decoded next begins another one.
    pub(crate) fn release(&self) {
        self.streams.lock().clear();
    }

    fn decode(&self, page: u32, column: usize) -> Result<ArrayRef, StoreError> {
        let mut streams = self.streams.lock();
        let stream = match streams.get_mut(&column) {
            Some(stream) if stream.next == page && page < stream.end => stream,
            _ => {
                let pages = self.alike(page);
                let arrays = self.reader.stream(column, pages.clone())?;
                let stream = Stream { next: page, end: pages.end, arrays };
                streams.entry(column).insert_entry(stream).into_mut()
            }
        };
        stream.next += 1;
        let batch = stream.arrays.next().transpose().map_err(|error| self.reader.arrow_error(error))?;
        if stream.next == stream.end {
            // It would keep its last page, unpacked, as long as the read lasts.
            streams.remove(&column);
        }
        let rows = self.reader.pages[page as usize].rows as usize;
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

    /// The pages from this one on that one stream can decode: those of the same row group and size. The last one may be
    /// smaller.
    fn alike(&self, page: u32) -> Range<u32> {
        let first = &self.reader.pages[page as usize];
        let mut end = page + 1;
        if self.ahead.contains(&page) {
            let mut rows = first.rows;
            while end < self.ahead.end {
                let next = &self.reader.pages[end as usize];
                if next.group != first.group || rows != first.rows || next.rows > first.rows {
                    break;
                }
                rows = next.rows;
                end += 1;
            }
        }
        page..end
    }
}

/// A part file with the bytes of a column that were read at once.
struct Ahead {
    file: BlockFile,
    start: u64,
    bytes: Bytes,
}

impl Ahead {
    /// Reads the pages of `rows` rows at once if `fetch` is set, because the caller will use all of them; but not if they are long.
    fn new(
        reader: &PartReader,
        column: usize,
        first: &Page,
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
        if length > READ_AHEAD_BYTES_MAX as u64 {
            return Ok(Self { file, start: 0, bytes: Bytes::new() });
        }
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

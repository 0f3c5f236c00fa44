//! Streams all rows of a part in their order, one window of rows at a time, for merges.

use std::ops::Range;
use std::sync::Arc;

use model::limits::PART_WINDOW_ROWS as WINDOW_ROWS;
use model::{FieldType, ValueRef};
use store::StoreError;

use super::read::PartReader;
use super::schema::PartSchema;
use super::values::Values;
use crate::row::KeyId;

/// A walk over a part from its first row to its last one.
pub(crate) struct PartStream {
    /// The table of each series. Empty for wide parts.
    tables: Arc<[u32]>,
    reader: Arc<PartReader>,
    columns: Vec<Column>,
    window_bytes: usize,
    /// The next window: a row group and the first row in it.
    next: (usize, usize),
    window: Window,
    /// The current row in the window.
    at: usize,
}

struct Column {
    key: KeyId,
    field_type: FieldType,
    index: usize,
}

/// Some rows with their values row by row, so that the cost of a row depends on its own fields and not on the columns of
/// the table.
#[derive(Default)]
struct Window {
    series: Vec<i64>,
    ts: Vec<i64>,
    /// The first field of each row, and the end of the last row.
    starts: Vec<u32>,
    /// The fields of the rows, as indices into `columns`.
    fields: Vec<u32>,
    columns: Vec<(KeyId, Values)>,
}

impl PartStream {
    /// Starts at the first row of the part. Leaves out columns that the schema does not have. `tables` gives the table of
    /// each series of narrow parts. Decodes about `window_bytes` at once.
    pub(crate) fn new(
        reader: Arc<PartReader>,
        schema: &PartSchema,
        tables: Arc<[u32]>,
        window_bytes: usize,
    ) -> Result<Self, StoreError> {
        let columns = schema.fields.iter().filter_map(|field| {
            let index = reader.column(&field.physical)?;
            Some(Column { key: field.key, field_type: field.field_type, index })
        });
        let columns = columns.collect();
        let (window, next) = (Window::default(), (0, 0));
        let mut stream = Self { tables, reader, columns, window_bytes, next, window, at: 0 };
        stream.load()?;
        Ok(stream)
    }

    /// The table, the series and the ts of the current row; `None` after the last one. The table of a wide part is 0.
    #[inline]
    pub(crate) fn row(&self) -> Option<(u32, u32, i64)> {
        let series = *self.window.series.get(self.at)? as u32;
        let table = self.tables.get(series as usize).copied().unwrap_or(0);
        Some((table, series, self.window.ts[self.at]))
    }

    /// Visits the fields of the current row.
    #[inline]
    pub(crate) fn fields(&self, mut visit: impl FnMut(KeyId, ValueRef<'_>)) {
        let fields = self.window.starts[self.at] as usize..self.window.starts[self.at + 1] as usize;
        for column in &self.window.fields[fields] {
            let (key, values) = &self.window.columns[*column as usize];
            let value = values.get(self.at).expect("BUG: a field in the window has a value");
            visit(*key, value);
        }
    }

    /// Moves to the next row. Returns whether it read a window.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, StoreError> {
        self.at += 1;
        match self.at < self.window.ts.len() {
            true => Ok(false),
            false => self.load().map(|()| true),
        }
    }

    /// Reads the next window; an empty one after the last row.
    fn load(&mut self) -> Result<(), StoreError> {
        self.at = 0;
        self.window = Window::default();
        let (group, start) = self.next;
        let Some(rows_of_group) = self.reader.rows_of_group(group) else { return Ok(()) };
        let window_rows = self.window_rows(group, rows_of_group);
        let rows = start..rows_of_group.min(start + window_rows);
        self.next = if rows.end == rows_of_group { (group + 1, 0) } else { (group, rows.end) };
        self.window = self.read(group, &rows)?;
        Ok(())
    }

    /// The number of rows of a window in a row group: at least one, and fewer where rows are long.
    fn window_rows(&self, group: usize, rows_of_group: usize) -> usize {
        let bytes = self.reader.unpacked_bytes(group).max(1);
        let fitting = (self.window_bytes as u64).saturating_mul(rows_of_group as u64) / bytes;
        usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, WINDOW_ROWS)
    }

    fn read(&self, group: usize, rows: &Range<usize>) -> Result<Window, StoreError> {
        let (series, ts) = self.reader.keys(group, rows)?;
        let mut columns = Vec::new();
        let mut starts = vec![0; rows.len() + 1];
        for column in &self.columns {
            let values = self.reader.decode(column.index, column.field_type, group, rows)?;
            let mut any = false;
            for row in 0..rows.len() {
                let present = values.has(row);
                any |= present;
                starts[row + 1] += u32::from(present);
            }
            if any {
                columns.push((column.key, values));
            }
        }
        (0..rows.len()).for_each(|row| starts[row + 1] += starts[row]);
        let mut fields = vec![0; starts[rows.len()] as usize];
        let mut next = starts.clone();
        for (number, (_, values)) in columns.iter().enumerate() {
            for row in (0..rows.len()).filter(|row| values.has(*row)) {
                fields[next[row] as usize] = number as u32;
                next[row] += 1;
            }
        }
        Ok(Window { series, ts, starts, fields, columns })
    }
}

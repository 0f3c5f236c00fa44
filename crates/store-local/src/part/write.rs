//! The writer of parts: takes sorted rows and writes a Parquet file, row group by row group.
//!
//! Invariants:
//! 1. Rows arrive in the order of (series, ts), in a narrow part of (table, series, ts). A row that arrives again is a later
//!    write of the same row.
//! 2. Memory depends on one row group and the footer, not on the part.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{FieldType, ValueRef};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use store::StoreError;

use super::blocks::BlockWriter;
use super::column::ColumnBuilder;
use super::context::WriteContext;
use super::encode::numbers::{Column, Present, write_integers};
use super::encode::pages::Compressor;
use super::encode::runs::write_number_runs;
use super::group::GroupWriter;
use super::info::PartLayout;
use super::names::{write_narrow_names, write_tags};
use super::narrow::write_narrow_values;
use super::schema::{PartSchema, PartSettings};
use crate::abort::Abort;
use crate::disk::DiskFile;
use crate::row::KeyId;

/// Takes rows and writes them as one part.
pub(crate) struct PartWriter<'a> {
    path: PathBuf,
    schema: &'a PartSchema,
    context: &'a dyn WriteContext,
    settings: PartSettings,
    writer: SerializedFileWriter<BlockWriter>,
    descriptors: Vec<ColumnDescPtr>,
    compressor: Compressor,
    columns: Columns,
    /// The table of the next rows, and the last row.
    table: u32,
    last: Option<(u32, u32, i64)>,
    summary: PartSummary,
}

/// The content of a finished part, for the manifest.
#[derive(Debug, Clone)]
pub(crate) struct PartSummary {
    pub(crate) rows: u64,
    /// Number of fields of all rows.
    pub(crate) points: u64,
    /// Bytes of the times and fields as plain columns.
    pub(crate) raw_bytes: u64,
    /// The tables, ascending, each with the number of its rows.
    pub(crate) tables: Vec<(u32, u64)>,
    /// Smallest and largest series.
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
    pub(crate) bytes: u64,
    pub(crate) block_crcs: Vec<u32>,
}

impl PartSummary {
    /// The smallest and the largest table.
    pub(crate) fn tables(&self) -> (u32, u32) {
        let ends = self.tables.first().zip(self.tables.last());
        ends.map_or((u32::MAX, 0), |(first, last)| (first.0, last.0))
    }
}

impl<'a> PartWriter<'a> {
    /// Starts a part in an empty file. Errors name `path`.
    pub(crate) fn new(
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        schema: &'a PartSchema,
        settings: PartSettings,
        context: &'a dyn WriteContext,
    ) -> Result<Self, Abort> {
        let open = || {
            let properties = Arc::new(schema.properties(settings)?);
            let writer = SerializedFileWriter::new(BlockWriter::new(file), schema.parquet()?, properties)?;
            Ok((writer, Compressor::new(settings.zstd_level)?))
        };
        let (writer, compressor) = open().map_err(|error| failed(&path, error))?;
        let descriptors = writer.schema_descr().columns().to_vec();
        let summary = PartSummary {
            rows: 0,
            points: 0,
            raw_bytes: 0,
            tables: Vec::new(),
            series: (u32::MAX, 0),
            ts: (i64::MAX, i64::MIN),
            bytes: 0,
            block_crcs: Vec::new(),
        };
        let columns = Columns::new(schema);
        let (table, last) = (schema.table, None);
        Ok(Self {
            path,
            schema,
            context,
            settings,
            writer,
            descriptors,
            compressor,
            columns,
            table,
            last,
            summary,
        })
    }

    /// The schema of the part.
    pub(crate) fn schema(&self) -> &'a PartSchema {
        self.schema
    }

    /// Sets the table of the next rows. For narrow parts, because a wide part has one table.
    pub(crate) fn table(&mut self, table: u32) {
        debug_assert!(
            self.schema.layout == PartLayout::Narrow || table == self.schema.table,
            "BUG: one table"
        );
        self.table = table;
    }

    /// Starts a row, or continues the last one if it has the same series and ts. The fields of the row follow.
    ///
    /// # Panics
    /// When a row is out of order, because reads of such a file would miss rows.
    #[inline]
    pub(crate) fn row(&mut self, series: u32, ts: i64) -> Result<(), Abort> {
        let row = Some((self.table, series, ts));
        if self.last >= row {
            assert!(self.last == row, "BUG: row {row:?} after {:?}", self.last);
            return Ok(());
        }
        let PartSettings { row_group_rows, row_group_bytes, .. } = self.settings;
        if self.columns.ts.len() >= row_group_rows || self.columns.bytes >= row_group_bytes {
            self.write_row_group()?;
        }
        self.columns.push(self.table, series, ts);
        self.last = row;
        Ok(())
    }

    /// Sets a field of the row that [`row`](Self::row) has started. Of several fields with one key the last one counts.
    /// Leaves out a value whose key was dropped after it came.
    ///
    /// # Panics
    /// When the schema has no column for the value of a key that is not dropped: the part would lose it.
    #[inline]
    pub(crate) fn field(&mut self, key: KeyId, value: ValueRef<'_>) {
        if !self.columns.field(key, value) {
            let is_dropped = self.schema.dropped_keys.binary_search(&key).is_ok();
            assert!(is_dropped, "BUG: the part has no column for key {key} of table {}", self.table);
        }
    }

    /// Writes the rest, the page indexes and the footer, and syncs the file.
    pub(crate) fn finish(mut self) -> Result<PartSummary, Abort> {
        self.write_row_group()?;
        let Self { writer, path, summary, .. } = self;
        let finish = || Ok(writer.into_inner()?.finish()?);
        let (bytes, block_crcs) = finish().map_err(|error| failed(&path, error))?;
        Ok(PartSummary { bytes, block_crcs, ..summary })
    }

    fn write_row_group(&mut self) -> Result<(), Abort> {
        if self.columns.ts.is_empty() {
            return Ok(());
        }
        if !self.context.should_continue() {
            return Err(Abort::Stopped);
        }
        self.columns.add_to(&mut self.summary);
        self.write_columns().map_err(|error| failed(&self.path, error))
    }

    fn write_columns(&mut self) -> ParquetResult<()> {
        let page_rows = self.settings.rows_of_page(self.columns.ts.len(), self.columns.text_bytes);
        let mut group = self.writer.next_row_group()?;
        let mut writer = GroupWriter::new(&mut group, &self.descriptors, &mut self.compressor, page_rows);
        self.columns.write(self.schema, self.context, &mut writer)?;
        group.close().map(drop)
    }
}

/// The I/O error inside a Parquet error, so that callers recognise a full disk.
#[cold]
fn failed(path: &Path, error: ParquetError) -> Abort {
    let error = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(inner) => std::io::Error::other(inner),
        },
        other => std::io::Error::other(other),
    };
    Abort::Failed(StoreError::io("write", path, error))
}

/// The columns of one row group.
struct Columns {
    /// The runs of tables and series, each with the row at which it ends.
    tables: Vec<(u32, usize)>,
    series: Vec<(u32, usize)>,
    ts: Vec<i64>,
    /// About the bytes of the values, with those that later values have replaced.
    bytes: usize,
    /// Those of texts.
    text_bytes: usize,
    fields: Vec<ColumnBuilder>,
    /// Indices into `fields`, by key number and type code.
    index: Vec<[u32; FieldType::ALL.len() + 1]>,
    /// By key number: the row (plus one) that has a value, and the column that holds it.
    holder: Vec<(u32, u32)>,
}

impl Columns {
    fn new(schema: &PartSchema) -> Self {
        let keys = schema.fields.iter().map(|field| field.key as usize + 1).max().unwrap_or(0);
        let mut index = vec![[u32::MAX; FieldType::ALL.len() + 1]; keys];
        for (column, field) in schema.fields.iter().enumerate() {
            // In a narrow part the first column gathers the values of all tables.
            let column_of_key = &mut index[field.key as usize][field.field_type.code() as usize];
            *column_of_key = (*column_of_key).min(column as u32);
        }
        Self {
            tables: Vec::new(),
            series: Vec::new(),
            ts: Vec::new(),
            bytes: 0,
            text_bytes: 0,
            fields: schema.fields.iter().map(|field| ColumnBuilder::new(field.field_type)).collect(),
            index,
            holder: vec![(0, 0); keys],
        }
    }

    #[inline]
    fn push(&mut self, table: u32, series: u32, ts: i64) {
        self.ts.push(ts);
        let end = self.ts.len();
        match self.series.last_mut() {
            Some(last) if last.0 == series => last.1 = end,
            _ => self.series.push((series, end)),
        }
        match self.tables.last_mut() {
            Some(last) if last.0 == table => last.1 = end,
            _ => self.tables.push((table, end)),
        }
    }

    /// Returns `false` if there is no column for the value.
    #[inline]
    fn field(&mut self, key: KeyId, value: ValueRef<'_>) -> bool {
        let rows = self.ts.len() as u32;
        let of_key = self.index.get(key as usize).map(|columns| columns[value.field_type().code() as usize]);
        let Some(column) = of_key.filter(|column| *column != u32::MAX) else { return false };
        let holder = &mut self.holder[key as usize];
        if holder.0 == rows && holder.1 != column {
            // A later write of another type hides the earlier one's value.
            self.fields[holder.1 as usize].unset(rows - 1);
        }
        *holder = (rows, column);
        self.bytes += match value {
            ValueRef::String(text) | ValueRef::Json(text) => {
                self.text_bytes += text.len();
                text.len()
            }
            ValueRef::Bool(_) | ValueRef::I64(_) | ValueRef::F64(_) => size_of::<i64>(),
        };
        self.fields[column as usize].set(rows - 1, value);
        true
    }

    /// Adds these rows to the summary.
    fn add_to(&self, summary: &mut PartSummary) {
        summary.rows += self.ts.len() as u64;
        summary.raw_bytes += size_of_val(self.ts.as_slice()) as u64;
        for column in &self.fields {
            summary.points += column.len() as u64;
            summary.raw_bytes += column.raw_bytes() as u64;
        }
        let mut start = 0;
        for (table, end) in &self.tables {
            let rows = (end - start) as u64;
            start = *end;
            match summary.tables.last_mut() {
                Some(last) if last.0 == *table => last.1 += rows,
                _ => summary.tables.push((*table, rows)),
            }
        }
        for (series, _) in &self.series {
            summary.series = (summary.series.0.min(*series), summary.series.1.max(*series));
        }
        summary.ts = self.ts.iter().fold(summary.ts, |(min, max), ts| (min.min(*ts), max.max(*ts)));
    }

    /// Writes the row group in the order of the schema, and empties the columns.
    fn write(
        &mut self,
        schema: &PartSchema,
        context: &dyn WriteContext,
        group: &mut GroupWriter<'_, '_>,
    ) -> ParquetResult<()> {
        let rows = self.ts.len();
        match schema.layout {
            PartLayout::Wide => write_tags(schema.tags.len(), &self.series, context, group)?,
            PartLayout::Narrow => write_narrow_names(&self.tables, &self.series, context, group)?,
        }
        group.append(|shape| {
            let column = Column { values: &self.ts, rows, present: Present::Required };
            write_integers(&column, shape.descriptor, shape.compressor, shape.page_rows, true)
        })?;
        match schema.layout {
            PartLayout::Wide => {
                for (builder, field) in self.fields.iter_mut().zip(&schema.fields) {
                    builder.write(rows, field.scale, group)?;
                }
            }
            PartLayout::Narrow => {
                write_narrow_values(&self.tables, &self.fields[0], group)?;
                self.fields[0].clear();
            }
        }
        let series: Vec<(i64, usize)> =
            self.series.iter().map(|(series, end)| ((*series).into(), *end)).collect();
        group.append(|shape| {
            write_number_runs(&series, shape.descriptor, shape.compressor, shape.page_rows)
        })?;
        self.tables.clear();
        self.series.clear();
        self.ts.clear();
        (self.bytes, self.text_bytes) = (0, 0);
        self.holder.fill((0, 0));
        Ok(())
    }
}

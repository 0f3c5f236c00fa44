//! Writes rows that come in order as a Parquet file, row group by row group.
//!
//! Invariants:
//! 1. Rows come in the order of (series, ts); a row that comes again is a later write of the same row.
//! 2. Memory follows one row group and the footer, not the part.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use model::{FieldType, ValueRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use store::StoreError;

use super::blocks::BlockWriter;
use super::column::{ColumnBuilder, field_column, number_column, ts_column};
use crate::catalog::{SERIES_COLUMN, TS_COLUMN};
use crate::core::Abort;
use crate::disk::DiskFile;
use crate::row::KeyId;

/// The number in a part's footer.
const FORMAT_VERSION: &str = "2";

/// What of a table's definitions a part needs.
pub(crate) struct PartSchema {
    pub(crate) table: u32,
    pub(crate) table_name: Arc<str>,
    /// Physical names, by tag number.
    pub(crate) tags: Vec<Arc<str>>,
    /// The tags' own names.
    pub(crate) tag_names: Vec<Arc<str>>,
    pub(crate) fields: Vec<PartField>,
}

/// A field column of a part.
pub(crate) struct PartField {
    pub(crate) key: KeyId,
    pub(crate) key_name: Arc<str>,
    pub(crate) field_type: FieldType,
    pub(crate) physical: Arc<str>,
}

/// How a part is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartLayout {
    pub(crate) row_group_rows: usize,
    pub(crate) page_rows: usize,
}

/// What a part-to-be asks of the store around it.
pub(crate) trait Surroundings {
    /// For each series, in order, visits number and value of each of its tags, then `None`.
    fn tags(&self, series: &[u32], visit: &mut TagVisitor<'_>);
    /// Whether it is still worth it; asked between row groups.
    fn go_on(&self) -> bool;
}

/// Takes a tag's number and value, or the end of a series.
pub(crate) type TagVisitor<'a> = dyn FnMut(Option<(u32, &str)>) + 'a;

/// Takes rows and writes them as one part.
pub(crate) struct PartWriter<'a> {
    path: PathBuf,
    schema: &'a PartSchema,
    surroundings: &'a dyn Surroundings,
    row_group_rows: usize,
    writer: SerializedFileWriter<BlockWriter>,
    columns: Columns,
    extent: Extent,
}

/// What a finished part holds.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    pub(crate) rows: u64,
    /// Smallest and largest.
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
    pub(crate) bytes: u64,
    pub(crate) block_crcs: Vec<u32>,
}

impl<'a> PartWriter<'a> {
    /// Begins a part in an empty file; errors will name `path`.
    pub(crate) fn new(
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        schema: &'a PartSchema,
        layout: PartLayout,
        surroundings: &'a dyn Surroundings,
    ) -> Result<Self, Abort> {
        let writer = parquet_schema(schema).and_then(|parquet| {
            SerializedFileWriter::new(BlockWriter::new(file), parquet, Arc::new(properties(schema, layout)))
        });
        let writer = writer.map_err(|error| failed(&path, error))?;
        let extent = Extent {
            rows: 0,
            series: (u32::MAX, 0),
            ts: (i64::MAX, i64::MIN),
            bytes: 0,
            block_crcs: Vec::new(),
        };
        let columns = Columns::new(schema);
        let row_group_rows = layout.row_group_rows;
        Ok(Self { path, schema, surroundings, row_group_rows, writer, columns, extent })
    }

    /// Begins a row, or goes on with the last one if it has the same series and ts; its fields follow.
    ///
    /// # Panics
    /// When a row comes out of order: the file would be sorted wrong, and reads would miss rows.
    #[inline]
    pub(crate) fn row(&mut self, series: u32, ts: i64) -> Result<(), Abort> {
        let columns = &mut self.columns;
        if let Some(last) = columns.last() {
            if last == (series, ts) {
                return Ok(());
            }
            assert!(last < (series, ts), "BUG: row {series} {ts} after {last:?}");
            if columns.ts.len() >= self.row_group_rows {
                self.write_row_group()?;
            }
        }
        self.columns.push(series, ts);
        Ok(())
    }

    /// Sets a field of the row that [`row`](Self::row) began; of several with one key the last one counts.
    #[inline]
    pub(crate) fn field(&mut self, key: KeyId, value: ValueRef<'_>) {
        self.columns.field(key, value);
    }

    /// Writes what is left, page indexes and footer, and syncs the file.
    pub(crate) fn finish(mut self) -> Result<Extent, Abort> {
        self.write_row_group()?;
        let Self { writer, path, extent, .. } = self;
        let finish = || Ok(writer.into_inner()?.finish()?);
        let (bytes, block_crcs) = finish().map_err(|error| failed(&path, error))?;
        Ok(Extent { bytes, block_crcs, ..extent })
    }

    fn write_row_group(&mut self) -> Result<(), Abort> {
        let columns = &mut self.columns;
        let (Some(first), Some(last)) = (columns.series.first(), columns.series.last()) else {
            return Ok(());
        };
        if !self.surroundings.go_on() {
            return Err(Abort::Stopped);
        }
        let extent = &mut self.extent;
        extent.rows += columns.ts.len() as u64;
        extent.series = (extent.series.0.min(*first as u32), extent.series.1.max(*last as u32));
        extent.ts = columns.ts.iter().fold(extent.ts, |(min, max), ts| (min.min(*ts), max.max(*ts)));
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            columns.write(self.schema, self.surroundings, &mut group)?;
            group.close().map(drop)
        };
        write().map_err(|error| failed(&self.path, error))
    }
}

/// The I/O error inside a Parquet error, so that a full disk is recognised.
#[cold]
fn failed(path: &std::path::Path, error: ParquetError) -> Abort {
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
    series: Vec<i64>,
    ts: Vec<i64>,
    fields: Vec<ColumnBuilder>,
    /// Index into `fields` by key number and type code.
    index: Vec<[u32; FieldType::ALL.len() + 1]>,
    /// By key number: the row (plus one) that has a value, and the column that holds it.
    holder: Vec<(u32, u32)>,
}

impl Columns {
    fn new(schema: &PartSchema) -> Self {
        let keys = schema.fields.iter().map(|field| field.key as usize + 1).max().unwrap_or(0);
        let mut index = vec![[u32::MAX; FieldType::ALL.len() + 1]; keys];
        for (column, field) in schema.fields.iter().enumerate() {
            index[field.key as usize][field.field_type.code() as usize] = column as u32;
        }
        Self {
            series: Vec::new(),
            ts: Vec::new(),
            fields: schema.fields.iter().map(|field| ColumnBuilder::new(field.field_type)).collect(),
            index,
            holder: vec![(0, 0); keys],
        }
    }

    fn last(&self) -> Option<(u32, i64)> {
        Some((*self.series.last()? as u32, *self.ts.last()?))
    }

    fn push(&mut self, series: u32, ts: i64) {
        self.series.push(series.into());
        self.ts.push(ts);
    }

    #[inline]
    fn field(&mut self, key: KeyId, value: ValueRef<'_>) {
        let rows = self.ts.len() as u32;
        let column = self.index[key as usize][value.field_type().code() as usize];
        let holder = &mut self.holder[key as usize];
        if holder.0 == rows && holder.1 != column {
            // A later write of another type hides the earlier one's value.
            self.fields[holder.1 as usize].unset(rows - 1);
        }
        *holder = (rows, column);
        self.fields[column as usize].set(rows - 1, value);
    }

    /// Writes the row group in the order of the schema and empties the columns.
    fn write(
        &mut self,
        schema: &PartSchema,
        tags: &dyn Surroundings,
        group: &mut SerializedRowGroupWriter<'_, BlockWriter>,
    ) -> Result<(), ParquetError> {
        let rows = self.ts.len();
        for (values, levels) in tag_columns(schema, tags, &self.series) {
            let mut column = next_column(group)?;
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            column.close()?;
        }
        write_numbers(group, &mut self.ts)?;
        for field in &mut self.fields {
            let mut column = next_column(group)?;
            field.write(rows, &mut column)?;
            column.close()?;
        }
        self.holder.fill((0, 0));
        write_numbers(group, &mut self.series)
    }
}

fn next_column<'g>(
    group: &'g mut SerializedRowGroupWriter<'_, BlockWriter>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'g>, ParquetError> {
    group
        .next_column()?
        .ok_or_else(|| ParquetError::General("BUG: more columns than the schema has".to_owned()))
}

fn write_numbers(
    group: &mut SerializedRowGroupWriter<'_, BlockWriter>,
    values: &mut Vec<i64>,
) -> Result<(), ParquetError> {
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(values, None, None)?;
    values.clear();
    column.close()
}

/// Values and levels of each tag column: the tags of a series, repeated for each of its rows.
fn tag_columns(
    schema: &PartSchema,
    source: &dyn Surroundings,
    series: &[i64],
) -> Vec<(Vec<ByteArray>, Vec<i16>)> {
    let mut columns = vec![(Vec::new(), Vec::new()); schema.tags.len()];
    let runs: Vec<&[i64]> = series.chunk_by(|a, b| a == b).collect();
    let distinct: Vec<u32> = runs.iter().map(|run| run[0] as u32).collect();
    let mut runs = runs.iter();
    let mut found: Vec<Option<Bytes>> = vec![None; schema.tags.len()];
    source.tags(&distinct, &mut |tag| match tag {
        // A tag that came after the schema was taken belongs to a series that has no row here.
        Some((tag, value)) => {
            if let Some(place) = found.get_mut(tag as usize) {
                *place = Some(Bytes::copy_from_slice(value.as_bytes()));
            }
        }
        None => {
            let rows = runs.next().map_or(0, |run| run.len());
            for (place, (values, levels)) in found.iter_mut().zip(&mut columns) {
                match place.take() {
                    Some(value) => {
                        values.extend(std::iter::repeat_n(ByteArray::from(value), rows));
                        levels.extend(std::iter::repeat_n(1, rows));
                    }
                    None => levels.extend(std::iter::repeat_n(0, rows)),
                }
            }
        }
    });
    columns
}

fn parquet_schema(schema: &PartSchema) -> Result<TypePtr, ParquetError> {
    let mut columns = Vec::new();
    for tag in &schema.tags {
        columns.push(field_column(tag, FieldType::String)?);
    }
    columns.push(ts_column(TS_COLUMN)?);
    for field in &schema.fields {
        columns.push(field_column(&field.physical, field.field_type)?);
    }
    columns.push(number_column(SERIES_COLUMN)?);
    Ok(Type::group_type_builder("row").with_fields(columns).build()?.into())
}

fn properties(schema: &PartSchema, layout: PartLayout) -> WriterProperties {
    let path = |name: &str| ColumnPath::new(vec![name.to_owned()]);
    let mut builder = WriterProperties::builder()
        .set_created_by("tachograph".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(layout.page_rows)
        .set_write_batch_size(layout.page_rows.min(1024))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(footer_pairs(schema)));
    // What finds a series' pages: sorted numbers, with statistics for each page.
    for name in [SERIES_COLUMN, TS_COLUMN] {
        builder = builder
            .set_column_encoding(path(name), Encoding::DELTA_BINARY_PACKED)
            .set_column_statistics_enabled(path(name), EnabledStatistics::Page);
    }
    for tag in &schema.tags {
        builder = builder.set_column_dictionary_enabled(path(tag), true);
    }
    for field in &schema.fields {
        builder = match field.field_type {
            FieldType::I64 => {
                builder.set_column_encoding(path(&field.physical), Encoding::DELTA_BINARY_PACKED)
            }
            FieldType::String | FieldType::Json => {
                builder.set_column_dictionary_enabled(path(&field.physical), true)
            }
            FieldType::Bool | FieldType::F64 => builder,
        };
    }
    builder.build()
}

/// What a reader without our catalog needs to know: see docs/format/part.md.
fn footer_pairs(schema: &PartSchema) -> Vec<KeyValue> {
    let mut pairs = vec![
        KeyValue::new("tachograph.format".to_owned(), FORMAT_VERSION.to_owned()),
        KeyValue::new("tachograph.table".to_owned(), schema.table_name.to_string()),
    ];
    for (physical, name) in schema.tags.iter().zip(&schema.tag_names) {
        pairs.push(KeyValue::new(format!("tachograph.tag.{physical}"), name.to_string()));
    }
    for field in &schema.fields {
        let name = format!("tachograph.field.{}", field.physical);
        pairs.push(KeyValue::new(name, format!("{}:{}", field.field_type, field.key_name)));
    }
    pairs
}

//! Writes sorted rows as a Parquet file.

use std::sync::Arc;

use bytes::Bytes;
use model::FieldType;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::blocks::BlockWriter;
use super::column::{ColumnBuilder, field_column, number_column, ts_column};
use super::rows::{Partition, SortKey};
use crate::catalog::{SEQUENCE_COLUMN, SERIES_COLUMN, TS_COLUMN};
use crate::chunk::Chunk;
use crate::disk::DiskFile;
use crate::manifest::PartInfo;
use crate::row::KeyId;

/// The number in a part's footer.
const FORMAT_VERSION: &str = "1";

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

/// Writes one part.
pub(crate) fn write_part(
    file: Arc<dyn DiskFile>,
    id: u64,
    schema: &PartSchema,
    layout: PartLayout,
    chunks: &[Arc<Chunk>],
    partition: &Partition,
    surroundings: &dyn Surroundings,
) -> Result<PartInfo, ParquetError> {
    let mut columns = Columns::new(schema);
    let properties = Arc::new(properties(schema, layout));
    let mut writer = SerializedFileWriter::new(BlockWriter::new(file), parquet_schema(schema)?, properties)?;
    let mut info = PartInfo {
        id,
        table: schema.table,
        partition: partition.range,
        rows: 0,
        bytes: 0,
        series: (u32::MAX, 0),
        ts: (i64::MAX, i64::MIN),
        sequence: (u64::MAX, 0),
        block_crcs: Vec::new(),
    };
    let mut rest = partition.keys.as_slice();
    while !rest.is_empty() {
        if !surroundings.go_on() {
            return Err(ParquetError::General("the store is closing".to_owned()));
        }
        rest = columns.fill(chunks, rest, layout.row_group_rows, &mut info);
        let mut group = writer.next_row_group()?;
        columns.write(schema, surroundings, &mut group)?;
        group.close()?;
    }
    // Writes page indexes and footer first.
    let (bytes, crcs) = writer.into_inner()?.finish()?;
    Ok(PartInfo { bytes, block_crcs: crcs, ..info })
}

/// The columns of one row group.
struct Columns {
    series: Vec<i64>,
    ts: Vec<i64>,
    sequence: Vec<i64>,
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
            sequence: Vec::new(),
            fields: schema.fields.iter().map(|field| ColumnBuilder::new(field.field_type)).collect(),
            index,
            holder: vec![(0, 0); keys],
        }
    }

    /// Takes rows until the row group is full; returns the rest.
    fn fill<'k>(
        &mut self,
        chunks: &[Arc<Chunk>],
        mut keys: &'k [SortKey],
        rows_max: usize,
        info: &mut PartInfo,
    ) -> &'k [SortKey] {
        self.holder.fill((0, 0));
        while self.ts.len() < rows_max
            && let Some(first) = keys.first()
        {
            let writes = keys.iter().take_while(|key| key.same_row(*first)).count();
            let row = self.ts.len() as u32;
            let mut sequence = 0;
            for key in &keys[..writes] {
                let chunk = &chunks[key.chunk()];
                sequence = chunk.sequence(key.row());
                info.sequence = (info.sequence.0.min(sequence), info.sequence.1.max(sequence));
                for (key, value) in chunk.fields(key.row()) {
                    let column = self.index[key as usize][value.field_type().code() as usize];
                    let holder = &mut self.holder[key as usize];
                    if holder.0 == row + 1 && holder.1 != column {
                        // A later write of another type hides the earlier one's value.
                        self.fields[holder.1 as usize].unset(row);
                    }
                    *holder = (row + 1, column);
                    self.fields[column as usize].set(row, value);
                }
            }
            let (series, ts) = (first.series(), first.ts());
            info.rows += 1;
            info.series = (info.series.0.min(series), info.series.1.max(series));
            info.ts = (info.ts.0.min(ts), info.ts.1.max(ts));
            self.series.push(series.into());
            self.ts.push(ts);
            self.sequence.push(sequence.cast_signed());
            keys = &keys[writes..];
        }
        keys
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
        write_numbers(group, &mut self.series)?;
        write_numbers(group, &mut self.sequence)
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
    columns.push(number_column(SEQUENCE_COLUMN)?);
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
    builder = builder.set_column_encoding(path(SEQUENCE_COLUMN), Encoding::DELTA_BINARY_PACKED);
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

//! Reads Parquet files as Arrow batches, within a bound on the unpacked size: some kilobytes can unpack to gigabytes.
//!
//! The reader reads row groups one by one, and of each as many rows at once as its pages allow (`pages`). Texts are views into the
//! pages, so a long text of a dictionary is in memory once, however many rows have it. The reader does not read columns that no
//! table accepts (lists, structs, bytes): each is a column of nulls.

mod delta_lengths;
mod header;
mod pages;

use std::sync::Arc;

use arrow_array::{ArrayRef, NullArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use model::limits::EXPORT_BATCH_ROWS;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::{ChunkReader, Length};

use super::BulkError;
use super::cells::{is_value, value_type};

/// Bounds on the memory and the rows that reading one file takes.
#[derive(Debug, Clone, Copy)]
pub struct ParquetBounds {
    /// Unpacked bytes in memory.
    pub held_bytes_max: u64,
    /// Rows of the file.
    pub rows_max: u64,
}

/// A reader of a file.
pub struct ParquetRows<R: ChunkReader + 'static> {
    file: Shared<R>,
    metadata: ArrowReaderMetadata,
    bounds: ParquetBounds,
    /// The columns of the file, including those that are not read.
    schema: SchemaRef,
    /// The batches' columns.
    given: SchemaRef,
    read: Vec<usize>,
    next_group: usize,
    group: Option<ParquetRecordBatchReader>,
}

impl<R: ChunkReader + 'static> ParquetRows<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`BulkError::Data`] if it is not a Parquet file, or has too many rows.
    pub fn open(file: R, bounds: ParquetBounds) -> Result<Self, BulkError> {
        let file = Shared(Arc::new(file));
        let first = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(not_parquet)?;
        let schema = Arc::new(with_views(first.schema()));
        let options = ArrowReaderOptions::new().with_schema(Arc::clone(&schema));
        let metadata =
            ArrowReaderMetadata::try_new(Arc::clone(first.metadata()), options).map_err(not_parquet)?;
        let read = (0..schema.fields().len()).filter(|index| is_value(schema.field(*index).data_type()));
        let given = Arc::new(without_others(&schema));
        let opened =
            Self { file, metadata, bounds, read: read.collect(), schema, given, next_group: 0, group: None };
        if opened.rows() > bounds.rows_max {
            return Err(BulkError::Data(format!(
                "the file has {} rows, {} are taken at once; send it in pieces, or with `tacho import`",
                opened.rows(),
                bounds.rows_max
            )));
        }
        Ok(opened)
    }

    /// The file's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows of the file, according to its row groups.
    pub fn rows(&self) -> u64 {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.fold(0, |rows: u64, group| rows.saturating_add(group.num_rows().max(0).cast_unsigned()))
    }

    /// The next rows; `None` after the last. Columns that are not read are of the type [`DataType::Null`].
    ///
    /// # Errors
    /// [`BulkError::Data`] if the file is damaged or unpacks to more than the bound.
    pub fn next_rows(&mut self) -> Result<Option<RecordBatch>, BulkError> {
        loop {
            if let Some(rows) = self.group.as_mut().and_then(Iterator::next) {
                return self.whole(&rows.map_err(unreadable)?).map(Some);
            }
            if self.next_group >= self.metadata.metadata().num_row_groups() {
                return Ok(None);
            }
            self.group = Some(self.open_group(self.next_group)?);
            self.next_group += 1;
        }
    }

    fn open_group(&self, index: usize) -> Result<ParquetRecordBatchReader, BulkError> {
        let broken = |problem: String| BulkError::Data(format!("row group {index} of the file: {problem}"));
        let parquet_schema = self.metadata.parquet_schema();
        let mask = ProjectionMask::roots(parquet_schema, self.read.iter().copied());
        let group = self.metadata.metadata().row_group(index);
        let is_read = |leaf: &usize| mask.leaf_included(*leaf);
        let pages = pages::pages_of(&self.file, group, |leaf| is_read(&leaf)).map_err(broken)?;
        let held_max = self.bounds.held_bytes_max;
        let rows = pages::rows_at_once(&pages, EXPORT_BATCH_ROWS, held_max);
        let rows = rows.ok_or_else(|| {
            broken(format!(
                "one row unfolds to more than {held_max} bytes, which is more than is held at once"
            ))
        })?;
        for (leaf, _) in (0..group.num_columns()).filter(is_read).zip(&pages).filter(|(_, it)| it.has_lengths)
        {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            delta_lengths::check(Arc::new(self.file.clone()), group.column(leaf), rows).map_err(broken)?;
        }
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let builder = builder.with_projection(mask).with_row_groups(vec![index]).with_batch_size(rows);
        builder.build().map_err(unreadable)
    }

    /// A batch with all columns of the file.
    fn whole(&self, rows: &RecordBatch) -> Result<RecordBatch, BulkError> {
        let nothing: ArrayRef = Arc::new(NullArray::new(rows.num_rows()));
        let mut columns = vec![nothing; self.given.fields().len()];
        for (column, index) in rows.columns().iter().zip(&self.read) {
            columns[*index] = Arc::clone(column);
        }
        RecordBatch::try_new(Arc::clone(&self.given), columns)
            .map_err(|error| BulkError::Data(error.to_string()))
    }
}

fn not_parquet(error: parquet::errors::ParquetError) -> BulkError {
    BulkError::Data(format!("this is not a Parquet file: {error}"))
}

fn unreadable(error: impl std::fmt::Display) -> BulkError {
    BulkError::Data(format!("the file is damaged: {error}"))
}

/// The schema with plain types instead of dictionaries, and views for texts.
fn with_views(schema: &Schema) -> Schema {
    let plain = |field: &Arc<Field>| match value_type(field.data_type()) {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => of_type(field, DataType::Utf8View),
        other if is_value(other) => of_type(field, other.clone()),
        _ => Arc::clone(field),
    };
    Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>())
}

/// The schema with the null type for columns that are not read.
fn without_others(schema: &Schema) -> Schema {
    let given = |field: &Arc<Field>| match is_value(field.data_type()) {
        true => Arc::clone(field),
        false => Arc::new(Field::new(field.name(), DataType::Null, true)),
    };
    Schema::new(schema.fields().iter().map(given).collect::<Vec<_>>())
}

fn of_type(field: &Arc<Field>, data_type: DataType) -> Arc<Field> {
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// A file that several readers share.
struct Shared<R>(Arc<R>);

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: ChunkReader> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

#[cfg(test)]
mod tests;

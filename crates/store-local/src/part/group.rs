//! The writer of a row group. The store encodes some columns itself; the `parquet` crate encodes the others.

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnDescPtr;

use super::blocks::BlockWriter;
use super::encode::pages::Compressor;

/// Writes the columns of a row group in the order of the schema.
pub(crate) struct GroupWriter<'g, 'w> {
    group: &'g mut SerializedRowGroupWriter<'w, BlockWriter>,
    descriptors: std::slice::Iter<'g, ColumnDescPtr>,
    compressor: &'g mut Compressor,
    page_rows: usize,
}

/// The facts that an encoder of the store needs about its column.
pub(crate) struct ColumnShape<'z> {
    pub(crate) descriptor: ColumnDescPtr,
    pub(crate) compressor: &'z mut Compressor,
    pub(crate) page_rows: usize,
}

impl<'g, 'w> GroupWriter<'g, 'w> {
    pub(crate) fn new(
        group: &'g mut SerializedRowGroupWriter<'w, BlockWriter>,
        descriptors: &'g [ColumnDescPtr],
        compressor: &'g mut Compressor,
        page_rows: usize,
    ) -> Self {
        Self { group, descriptors: descriptors.iter(), compressor, page_rows }
    }

    /// Writes the next column as `encode` encodes it.
    pub(crate) fn append(
        &mut self,
        encode: impl FnOnce(ColumnShape<'_>) -> Result<(Bytes, ColumnCloseResult)>,
    ) -> Result<()> {
        let descriptor = self.descriptors.next().ok_or_else(too_many)?.clone();
        let shape = ColumnShape { descriptor, compressor: self.compressor, page_rows: self.page_rows };
        let (bytes, close) = encode(shape)?;
        self.group.append_column(&bytes, close)
    }

    /// Writes the next column with the writer of the crate.
    pub(crate) fn write(
        &mut self,
        fill: impl FnOnce(&mut SerializedColumnWriter<'_>) -> Result<usize>,
    ) -> Result<()> {
        self.descriptors.next();
        let mut column = self.group.next_column()?.ok_or_else(too_many)?;
        fill(&mut column)?;
        column.close()
    }
}

fn too_many() -> ParquetError {
    ParquetError::General("BUG: more columns than the schema has".to_owned())
}

//! A Parquet file, row group by row group.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::encoder::{EncodeError, Encoder, Failure};
use super::format::Format;
use super::limits::{ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX};
use super::plain::Plain;

pub(super) struct ParquetEncoder {
    plain: Plain,
    writer: ArrowWriter<Vec<u8>>,
}

impl ParquetEncoder {
    pub(super) fn new(schema: &Schema) -> Result<Self, EncodeError> {
        let plain = Plain::new(schema);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS_MAX))
            .set_created_by(concat!("tachograph ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(plain.schema()), Some(properties));
        Ok(Self { plain, writer: writer.map_err(refused)? })
    }
}

impl Encoder for ParquetEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        let batch = self.plain.batch(batch).map_err(|error| EncodeError::new(Format::Parquet, error))?;
        self.writer.write(&batch).map_err(refused)?;
        if self.writer.memory_size() >= ROW_GROUP_BYTES_MAX {
            self.writer.flush().map_err(refused)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EncodeError> {
        self.writer.finish().map(|_| ()).map_err(refused)
    }

    fn fail(&mut self, _failure: &Failure<'_>) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        // The writer counts offsets itself, so the written bytes can be taken.
        std::mem::take(self.writer.inner_mut())
    }
}

fn refused(source: parquet::errors::ParquetError) -> EncodeError {
    EncodeError::new(Format::Parquet, source)
}

//! Arrow's streaming format.

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;

use super::encoder::{EncodeError, Encoder, Failure};
use super::format::Format;
use super::plain::Plain;

pub(super) struct ArrowEncoder {
    plain: Plain,
    writer: StreamWriter<Vec<u8>>,
}

impl ArrowEncoder {
    pub(super) fn new(schema: &Schema) -> Result<Self, EncodeError> {
        let plain = Plain::new(schema);
        let writer = StreamWriter::try_new(Vec::new(), plain.schema()).map_err(refused)?;
        Ok(Self { plain, writer })
    }
}

impl Encoder for ArrowEncoder {
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.plain.batch(batch).and_then(|batch| self.writer.write(&batch)).map_err(refused)
    }

    fn finish(&mut self) -> Result<(), EncodeError> {
        self.writer.finish().map_err(refused)
    }

    fn fail(&mut self, _failure: &Failure<'_>) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.get_mut())
    }
}

fn refused(source: arrow_schema::ArrowError) -> EncodeError {
    EncodeError::new(Format::Arrow, source)
}

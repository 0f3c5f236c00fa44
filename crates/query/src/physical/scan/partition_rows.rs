//! Reads the rows of one partition of a scan, batch by batch.

use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use store::BatchReader;

use super::shared_readers::{Next, SharedReaders};

/// Reads the rows of one partition, on a thread that may wait for the disk.
pub(crate) struct PartitionRows {
    readers: Arc<SharedReaders>,
    /// The reader that was used last, if it has not ended.
    reader: Option<Box<dyn BatchReader>>,
    /// The rows that the limit still allows.
    left: usize,
    /// Whether this partition has rows of the current slice. The others wait for it.
    is_busy: bool,
}

impl PartitionRows {
    pub(crate) fn new(readers: Arc<SharedReaders>) -> Self {
        let left = readers.limit().unwrap_or(usize::MAX);
        Self { readers, reader: None, left, is_busy: false }
    }

    /// Returns the next rows, at least one; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.step(true)? {
            Next::Item(batch) => Ok(Some(batch)),
            Next::End => Ok(None),
            Next::SliceEnd => {
                Err(DataFusionError::Internal("rows in slices, for an operator that reads by itself".into()))
            }
        }
    }

    /// Returns the next rows. Opens the next slice only if it `may_open` that.
    pub(super) fn step(&mut self, may_open: bool) -> Result<Next<RecordBatch>> {
        while self.left > 0 {
            let next = match self.reader.take() {
                Some(reader) => Next::Item(reader),
                None => self.readers.take(&mut self.is_busy, may_open).map_err(crate::error::external)?,
            };
            let mut reader = match next {
                Next::Item(reader) => reader,
                Next::SliceEnd => return Ok(Next::SliceEnd),
                Next::End => return Ok(Next::End),
            };
            // What the store keeps of it for other statements is bounded by its cache, and the limit of a statement has room for that.
            if let Some(batch) = reader.next().map_err(crate::error::external)? {
                self.reader = Some(reader);
                let batch = self.readers.conform(batch)?;
                let batch = if batch.num_rows() > self.left { batch.slice(0, self.left) } else { batch };
                self.left -= batch.num_rows();
                return Ok(Next::Item(batch));
            }
        }
        Ok(Next::End)
    }

    /// Reports that the operator above has taken all rows of this slice.
    pub(super) fn end_slice(&mut self) {
        self.readers.release(&mut self.is_busy);
    }

    /// Ready when there are rows to read, or when the next slice can be opened.
    pub(super) fn poll_slice(&self, context: &mut Context<'_>) -> Poll<()> {
        self.readers.poll_slice(context)
    }
}

impl Drop for PartitionRows {
    fn drop(&mut self) {
        self.end_slice();
    }
}

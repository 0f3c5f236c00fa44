//! The buffer of a worker for what it reads.

use std::ops::Range;

use hub::ByClass;

use super::super::ingest_batch::IngestBatch;

/// The bytes that a worker has read in this pass. The payloads of the messages in its batches stay until these are appended, because
/// a message that the store refuses becomes a dead letter.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    pub(super) bytes: Vec<u8>,
}

impl ReadBuffer {
    /// The next place for `bytes_max` bytes, behind the payloads of all batches.
    pub(super) fn free(&mut self, batches: &ByClass<IngestBatch>, bytes_max: usize) -> Range<usize> {
        let begin = batches.iter().map(IngestBatch::input_end).max().unwrap_or(0);
        let end = begin + bytes_max;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        begin..end
    }
}

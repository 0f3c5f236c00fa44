//! The buffer of a worker for what it reads.

use std::ops::Range;

use hub::ByClass;

use super::super::ingest_batch::IngestBatch;

/// The bytes that a worker has read in this pass. The payloads of the messages in its batches stay until these are appended, because
/// a message that the store refuses becomes a dead letter.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    /// The end of the payloads that stay, also of those that are not in a batch of the worker at this moment.
    kept: usize,
}

impl ReadBuffer {
    /// Keeps the payloads of these batches until the next call, and no others.
    pub(super) fn keep(&mut self, batches: &ByClass<IngestBatch>) {
        self.kept = end(batches);
    }

    /// The next place for `bytes_max` bytes, behind the payloads that stay and those of the batches. Returns where it begins.
    pub(super) fn free(&mut self, batches: &ByClass<IngestBatch>, bytes_max: usize) -> (usize, &mut [u8]) {
        let begin = self.kept.max(end(batches));
        if self.bytes.len() < begin + bytes_max {
            self.bytes.resize(begin + bytes_max, 0);
        }
        (begin, &mut self.bytes[begin..begin + bytes_max])
    }

    /// Bytes that were read.
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// All bytes.
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }
}

fn end(batches: &ByClass<IngestBatch>) -> usize {
    batches.iter().map(IngestBatch::input_end).max().unwrap_or(0)
}

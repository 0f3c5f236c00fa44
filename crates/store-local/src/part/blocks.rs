//! Part files as blocks with checksums. The writer computes them, and every read checks them.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use store::StoreError;

use super::info::PartInfo;
use crate::disk::DiskFile;

/// Bytes of a block. The last block of a file is shorter.
pub(crate) const BLOCK_BYTES: usize = 32 * 1024;
/// Bytes that are gathered for one write to the disk.
const BUFFER_BYTES: usize = 32 * BLOCK_BYTES;

/// Writes a file from its beginning to its end.
pub(crate) struct BlockWriter {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    written: u64,
    crcs: Vec<u32>,
}

impl BlockWriter {
    pub(crate) fn new(file: Arc<dyn DiskFile>) -> Self {
        Self { file, buffer: Vec::with_capacity(BUFFER_BYTES), written: 0, crcs: Vec::new() }
    }

    /// Writes the rest and syncs. Returns the length of the file and its checksums.
    pub(crate) fn finish(mut self) -> io::Result<(u64, Vec<u32>)> {
        self.flush_buffer()?;
        self.file.sync_data()?;
        Ok((self.written, self.crcs))
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        self.crcs.extend(self.buffer.chunks(BLOCK_BYTES).map(crc32c::crc32c));
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Write for BlockWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(BUFFER_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == BUFFER_BYTES {
            self.flush_buffer()?;
        }
        Ok(count)
    }

    /// Does nothing, because only whole blocks may be written before [`finish`](Self::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A part file that gives only checked bytes.
#[derive(Clone)]
pub(crate) struct BlockFile(Arc<Inner>);

struct Inner {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    info: Arc<PartInfo>,
    /// The first failure. The Parquet reader may wrap or shorten the errors that it gets.
    failure: Mutex<Option<StoreError>>,
}

impl BlockFile {
    pub(crate) fn new(file: Arc<dyn DiskFile>, path: PathBuf, info: Arc<PartInfo>) -> Self {
        Self(Arc::new(Inner { file, path, info, failure: Mutex::new(None) }))
    }

    /// Converts an error of the Parquet reader: to the failure of this file if there was one, otherwise to an error about a
    /// corrupt file.
    pub(crate) fn error(&self, error: &ParquetError) -> StoreError {
        let failure = self.0.failure.lock().take();
        failure.unwrap_or_else(|| self.corrupt(0, format!("not a part this program can read: {error}")))
    }

    /// The entry of the part in the manifest.
    pub(crate) fn info(&self) -> &PartInfo {
        &self.0.info
    }

    pub(crate) fn corrupt(&self, offset: u64, reason: String) -> StoreError {
        StoreError::Corrupt { path: self.0.path.clone(), offset, reason }
    }

    /// Reads and checks whole blocks, and returns the requested range.
    fn read(&self, start: u64, length: usize) -> std::result::Result<Bytes, StoreError> {
        let inner = &self.0;
        let end = start.checked_add(length as u64).filter(|end| *end <= inner.info.bytes);
        let end = end.ok_or_else(|| self.corrupt(start, "the footer points outside the file".to_owned()))?;
        let block = BLOCK_BYTES as u64;
        let first = start / block;
        let from = first * block;
        let to = end.next_multiple_of(block).min(inner.info.bytes);
        let mut bytes = vec![0; (to - from) as usize];
        let count = inner.file.read_at(&mut bytes, from);
        let count = count.map_err(|error| StoreError::io("read", &inner.path, error))?;
        bytes.truncate(count);
        for (index, found) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let expected = inner.info.block_crcs.get(first as usize + index);
            if expected != Some(&crc32c::crc32c(found)) {
                let offset = from + index as u64 * block;
                return Err(self.corrupt(
                    offset,
                    format!("the checksum of this block of {} bytes does not match", found.len()),
                ));
            }
        }
        if (count as u64) < to - from {
            return Err(self.corrupt(
                from + count as u64,
                format!("the file ends here, not after {} bytes", inner.info.bytes),
            ));
        }
        Ok(Bytes::from(bytes).slice((start - from) as usize..(end - from) as usize))
    }
}

impl Length for BlockFile {
    fn len(&self) -> u64 {
        self.0.info.bytes
    }
}

impl ChunkReader for BlockFile {
    type T = BlockStream;

    fn get_read(&self, start: u64) -> Result<BlockStream> {
        Ok(BlockStream { file: self.clone(), offset: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.read(start, length).map_err(|error| {
            let text = error.to_string();
            self.0.failure.lock().get_or_insert(error);
            ParquetError::General(text)
        })
    }
}

/// Reads from an offset on, one block at a time.
pub(crate) struct BlockStream {
    file: BlockFile,
    offset: u64,
    bytes: Bytes,
}

impl Read for BlockStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            let block = BLOCK_BYTES as u64;
            let end = ((self.offset / block + 1) * block).min(self.file.len());
            let length = end.saturating_sub(self.offset) as usize;
            self.bytes = self.file.get_bytes(self.offset, length).map_err(io::Error::other)?;
            self.offset += length as u64;
        }
        let count = out.len().min(self.bytes.len());
        out[..count].copy_from_slice(&self.bytes.split_to(count));
        Ok(count)
    }
}

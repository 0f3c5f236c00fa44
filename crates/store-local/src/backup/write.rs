//! Writes files into a directory, with their checksums.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use store::backup::{Digest, Sums};
use store::{ByteProgress, StoreError};

use super::BackupError;
use crate::disk::{Disk, OpenMode};
use crate::part::blocks::BLOCK_BYTES;

/// Bytes of one copy step.
const COPY_BYTES: usize = 32 * BLOCK_BYTES;

/// A directory that a backup or a restore writes to.
pub(super) struct Writer<'a, 'p> {
    pub(super) disk: &'a dyn Disk,
    pub(super) dir: &'a Path,
    pub(super) progress: &'a mut ByteProgress<'p>,
    pub(super) done: u64,
    pub(super) total: u64,
    /// Directories with new names that are not synced yet.
    touched: Vec<PathBuf>,
}

/// The result of a copy.
pub(super) struct Copied {
    pub(super) crc: u32,
    pub(super) sha256: Digest,
    /// The offset of the first block that does not have its checksum.
    pub(super) bad_block: Option<u64>,
}

impl<'a, 'p> Writer<'a, 'p> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        total: u64,
        progress: &'a mut ByteProgress<'p>,
    ) -> Self {
        Self { disk, dir, progress, done: 0, total, touched: Vec::new() }
    }

    /// Creates the directory of a file, and remembers to sync it.
    pub(super) fn prepare(&mut self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.dir.join(name);
        let parent = path.parent().unwrap_or(self.dir).to_owned();
        if !self.touched.contains(&parent) {
            self.disk.create_dir(&parent).map_err(|error| StoreError::io("create", &parent, error))?;
            // Each directory above has the name of the one below.
            for above in parent.ancestors().skip(1).take_while(|above| above.starts_with(self.dir)) {
                if !self.touched.iter().any(|touched| touched == above) {
                    self.touched.push(above.to_owned());
                }
            }
            self.touched.push(parent);
        }
        Ok(path)
    }

    /// Writes and syncs a file of `bytes` bytes. Compares the blocks with their checksums, if there are any.
    pub(super) fn copy(
        &mut self,
        name: &str,
        bytes: u64,
        blocks: Option<&[u32]>,
        content: &mut dyn Read,
    ) -> Result<Copied, BackupError> {
        let path = self.prepare(name)?;
        let failed = |verb| {
            let path = path.clone();
            move |error| StoreError::io(verb, path, error)
        };
        let file = self.disk.open(&path, OpenMode::Create).map_err(failed("create"))?;
        let (mut sums, mut first_bad) = (Sums::default(), None);
        let mut buffer = vec![0; COPY_BYTES.min(bytes as usize)];
        let mut offset = 0;
        while offset < bytes {
            let wanted = buffer.len().min((bytes - offset) as usize);
            let chunk = &mut buffer[..wanted];
            content.read_exact(chunk).map_err(BackupError::Stream)?;
            sums.add(chunk);
            if first_bad.is_none() {
                first_bad = blocks.and_then(|blocks| bad_block(chunk, offset, blocks));
            }
            file.write_at(chunk, offset).map_err(failed("write"))?;
            offset += wanted as u64;
            self.advance(wanted as u64)?;
        }
        file.sync_data().map_err(failed("sync"))?;
        Ok(Copied { crc: sums.crc(), sha256: sums.digest(), bad_block: first_bad })
    }

    /// Writes and syncs a small file under a temporary name, and renames it.
    pub(super) fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let unfinished = unfinished(name);
        self.copy(&unfinished, bytes.len() as u64, None, &mut &*bytes)?;
        Ok(self.finish(name)?)
    }

    /// Renames a file from its temporary name to its own.
    pub(super) fn finish(&mut self, name: &str) -> Result<(), StoreError> {
        let (from, to) = (self.dir.join(unfinished(name)), self.dir.join(name));
        self.disk.rename(&from, &to).map_err(|error| StoreError::io("rename", &to, error))
    }

    pub(super) fn advance(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.done += bytes;
        self.total = self.total.max(self.done);
        match (self.progress)(self.done, self.total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(BackupError::Interrupted),
        }
    }

    /// Makes all new names durable.
    pub(super) fn sync_names(&mut self) -> Result<(), StoreError> {
        let root = self.dir.to_owned();
        for dir in self.touched.drain(..).chain([root]) {
            self.disk.sync_dir(&dir).map_err(|error| StoreError::io("sync", &dir, error))?;
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        let path = self.dir.join(name);
        match self.disk.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| StoreError::io("remove", path, error)),
        }
    }
}

/// The temporary name of a file.
pub(super) fn unfinished(name: &str) -> String {
    format!("{name}.tmp")
}

/// The offset of the first block that does not have its checksum. `offset` is a multiple of the block size.
fn bad_block(bytes: &[u8], offset: u64, blocks: &[u32]) -> Option<u64> {
    let first = (offset / BLOCK_BYTES as u64) as usize;
    let bad = bytes
        .chunks(BLOCK_BYTES)
        .enumerate()
        .find(|(index, block)| blocks.get(first + index) != Some(&crc32c::crc32c(block)));
    bad.map(|(index, _)| offset + (index * BLOCK_BYTES) as u64)
}

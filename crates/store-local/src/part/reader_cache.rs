//! The parts that are open for reading.

use std::sync::Arc;

use parking_lot::Mutex;
use store::StoreError;

use super::handle::Part;
use super::read::PartReader;
use crate::disk::Disk;

/// Readers of parts, the most recently used last.
#[derive(Default)]
pub(crate) struct PartCache {
    readers: Mutex<Vec<(u64, Arc<PartReader>)>>,
}

impl PartCache {
    /// The reader of a part.
    pub(crate) fn reader(&self, disk: &dyn Disk, part: &Part) -> Result<Arc<PartReader>, StoreError> {
        if let Some(reader) = self.touch(part.info.id) {
            return Ok(reader);
        }
        let reader = Arc::new(PartReader::of(disk, part)?);
        let mut readers = self.readers.lock();
        if readers.len() >= model::limits::PART_READERS_MAX {
            readers.remove(0);
        }
        readers.push((part.info.id, reader.clone()));
        Ok(reader)
    }

    /// Closes the reader of a part that is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.readers.lock().retain(|(open, _)| *open != id);
    }

    fn touch(&self, id: u64) -> Option<Arc<PartReader>> {
        let mut readers = self.readers.lock();
        let index = readers.iter().rposition(|(open, _)| *open == id)?;
        let entry = readers.remove(index);
        let reader = entry.1.clone();
        readers.push(entry);
        Some(reader)
    }
}

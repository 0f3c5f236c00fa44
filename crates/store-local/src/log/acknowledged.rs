//! The note about acknowledged rows, a file beside the log. Without it a log whose end was cut off would look complete.
//!
//! The committer writes the note after a sync and does not sync the note itself, so it costs no commit a sync. The note may
//! be older than the log, because a power cut can lose it. It never names a row that was not durable. So a log that ends
//! before the note has lost rows. docs/format/log.md.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use store::{Sequence, StoreError};

use crate::disk::{Disk, DiskFile, Layout, OpenMode};

/// Bytes of the file.
pub(crate) const NOTE_BYTES: usize = 24;

const MAGIC: [u8; 8] = *b"TACHOACK";
const FORMAT_VERSION: u32 = 1;

/// The content of the file.
pub(crate) fn note_of(sequence: Sequence) -> [u8; NOTE_BYTES] {
    let mut note = [0; NOTE_BYTES];
    note[..8].copy_from_slice(&MAGIC);
    note[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    note[12..20].copy_from_slice(&sequence.to_le_bytes());
    let crc = crc32c::crc32c(&note[..20]);
    note[20..].copy_from_slice(&crc.to_le_bytes());
    note
}

/// The sequence up to which rows were acknowledged; `None` without a valid note.
pub(crate) fn read(disk: &dyn Disk, layout: &Layout) -> Option<Sequence> {
    let mut note = [0; NOTE_BYTES];
    let file = disk.open(&layout.acknowledged(), OpenMode::Read).ok()?;
    let count = file.read_at(&mut note, 0).ok()?;
    let sequence = Sequence::from_le_bytes(note[12..20].try_into().ok()?);
    (count == NOTE_BYTES && note == note_of(sequence)).then_some(sequence)
}

/// A text about a log that ends before the note; `None` for a complete log. `next` is the sequence after its last row.
pub(crate) fn missing(next: Sequence, acknowledged: Sequence) -> Option<String> {
    (next <= acknowledged)
        .then(|| format!("the log ends with row {}, acknowledged are rows up to {acknowledged}", next - 1))
}

/// Lowers a note that is ahead of the log, because new rows will get these sequences again. Syncs the note.
pub(crate) fn lower(disk: &dyn Disk, layout: &Layout, sequence: Sequence) -> Result<(), StoreError> {
    let path = layout.acknowledged();
    let lowered = disk.open(&path, OpenMode::Write).and_then(|file| {
        file.write_at(&note_of(sequence), 0)?;
        file.sync_data()
    });
    lowered.map_err(|error| StoreError::io("write", path, error))
}

/// Writes notes.
#[derive(Default)]
pub(crate) struct Acknowledged {
    file: Option<Arc<dyn DiskFile>>,
    failed: bool,
}

impl Acknowledged {
    /// Notes that the rows up to this sequence are durable. The store is as safe without notes; they only make a cut
    /// visible. So the store writes none after the first failure.
    pub(crate) fn note(&mut self, disk: &dyn Disk, layout: &Layout, sequence: Sequence) {
        if !self.failed {
            self.failed = self.write(disk, layout, sequence).is_err();
        }
    }

    fn write(&mut self, disk: &dyn Disk, layout: &Layout, sequence: Sequence) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => open(disk, layout)?,
        };
        self.file.insert(file).write_at(&note_of(sequence), 0)
    }
}

fn open(disk: &dyn Disk, layout: &Layout) -> io::Result<Arc<dyn DiskFile>> {
    let path = layout.acknowledged();
    match disk.open(&path, OpenMode::Write) {
        Err(error) if error.kind() == ErrorKind::NotFound => disk.open(&path, OpenMode::Create),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::real::RealDisk;

    #[test]
    fn a_note_comes_back_and_what_is_none_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        RealDisk.create_dir(&layout.log).unwrap();
        assert_eq!(read(&RealDisk, &layout), None);
        let mut notes = Acknowledged::default();
        for sequence in [7, u64::MAX, 8] {
            notes.note(&RealDisk, &layout, sequence);
            assert_eq!(read(&RealDisk, &layout), Some(sequence));
        }
        lower(&RealDisk, &layout, 3).unwrap();
        assert_eq!(read(&RealDisk, &layout), Some(3));
        let whole = std::fs::read(layout.acknowledged()).unwrap();
        for position in 0..NOTE_BYTES {
            let mut flipped = whole.clone();
            flipped[position] ^= 1;
            for wrong in [&flipped[..], &whole[..position]] {
                std::fs::write(layout.acknowledged(), wrong).unwrap();
                assert_eq!(read(&RealDisk, &layout), None, "{position}");
            }
        }
        Acknowledged::default().note(&RealDisk, &Layout::new(Path::new("/dev/null")), 1);
    }

    #[test]
    fn only_a_log_that_ends_before_the_note_misses_rows() {
        assert_eq!((missing(8, 7), missing(9, 7)), (None, None));
        assert!(missing(7, 7).unwrap().contains("ends with row 6"));
    }
}

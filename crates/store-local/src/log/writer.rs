//! Writes frames into segments. Tracks the live and the spare segments.

use std::path::PathBuf;
use std::sync::Arc;

use model::limits::LOG_SPARES_MAX;
use parking_lot::{Condvar, Mutex};
use store::StoreError;

use super::frame::{SEGMENT_HEADER_BYTES, segment_header};
use crate::disk::{Disk, DiskFile, Layout, OpenMode};

/// Bytes of one write of zeros into a spare segment.
const ZERO_BYTES: usize = 1024 * 1024;

/// The segments that a recovery would read. The committer, the flusher and the maker of spares share them.
#[derive(Default)]
pub(crate) struct Segments {
    inner: Mutex<Inner>,
    /// The maker of spares waits here.
    wanted: Condvar,
}

#[derive(Default)]
struct Inner {
    /// Oldest first. The last one may be the active one.
    live: Vec<Segment>,
    /// Files of full size that may become segments.
    spares: Vec<PathBuf>,
    maker: Maker,
    stop: bool,
}

/// The state of the maker of spares.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Maker {
    #[default]
    Idle,
    /// It shall make a spare.
    Wanted,
    Making,
}

/// A segment file with frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    /// The number of its last frame.
    pub(crate) last_frame: u64,
    /// Bytes of header and frames.
    pub(crate) bytes: u64,
    /// Whether the file has its full size on disk.
    pub(crate) allocated: bool,
}

impl Segments {
    pub(crate) fn new(live: Vec<Segment>, spares: Vec<PathBuf>) -> Self {
        let inner = Inner { live, spares, ..Inner::default() };
        Self { inner: Mutex::new(inner), wanted: Condvar::new() }
    }

    /// Number of bytes that a recovery would read.
    pub(crate) fn bytes(&self) -> u64 {
        self.inner.lock().live.iter().map(|segment| segment.bytes).sum()
    }

    /// The number and the written bytes of each live segment, oldest first.
    pub(crate) fn written(&self) -> Vec<(u64, u64)> {
        self.inner.lock().live.iter().map(|segment| (segment.number, segment.bytes)).collect()
    }

    /// The number of the newest segment.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.inner.lock().live.last().map(|segment| segment.number)
    }

    /// Ends [`make_spares`](Self::make_spares).
    pub(crate) fn stop(&self) {
        self.inner.lock().stop = true;
        self.wanted.notify_all();
    }

    /// Fills spare segments with zeros, so that the committer finds the next segment ready. Runs in a thread of its own.
    pub(crate) fn make_spares(&self, disk: &dyn Disk, layout: &Layout, segment_bytes: u64) {
        let mut inner = self.inner.lock();
        loop {
            if inner.stop {
                return;
            }
            if inner.maker != Maker::Wanted {
                self.wanted.wait(&mut inner);
                continue;
            }
            inner.maker = Maker::Making;
            drop(inner);
            let made = self.make_spare(disk, layout, segment_bytes);
            inner = self.inner.lock();
            inner.maker = Maker::Idle;
            // Without a spare the committer creates a growing segment. If the error persists, the committer gets it too.
            if made.is_ok() {
                inner.spares.push(layout.spare());
            }
        }
    }

    fn make_spare(&self, disk: &dyn Disk, layout: &Layout, segment_bytes: u64) -> std::io::Result<()> {
        let file = disk.open(&layout.spare_new(), OpenMode::Create)?;
        let zeros = vec![0; ZERO_BYTES.min(segment_bytes as usize)];
        let mut offset = 0;
        while offset < segment_bytes {
            if self.inner.lock().stop {
                return Err(std::io::Error::other("the store is closing"));
            }
            let count = zeros.len().min((segment_bytes - offset) as usize);
            file.write_at(&zeros[..count], offset)?;
            offset += count as u64;
        }
        file.sync_data()?;
        disk.rename(&layout.spare_new(), &layout.spare())
    }

    /// Recycles the segments whose frames all have numbers below `frame`. The caller guarantees invariant 5.
    pub(crate) fn recycle(&self, disk: &dyn Disk, layout: &Layout, frame: u64) -> Result<(), StoreError> {
        loop {
            let (segment, reuse) = {
                let mut inner = self.inner.lock();
                // The last one stays, because the committer writes to it.
                match inner.live.first() {
                    Some(first) if inner.live.len() > 1 && first.last_frame < frame => {}
                    _ => return Ok(()),
                }
                let segment = inner.live.remove(0);
                (segment, segment.allocated && inner.spares.len() < LOG_SPARES_MAX)
            };
            let path = layout.segment(segment.number);
            let spare = layout.old_spare(segment.number);
            let result = match reuse {
                true => disk.rename(&path, &spare),
                false => disk.remove(&path),
            };
            if reuse && result.is_ok() {
                self.inner.lock().spares.push(spare);
            }
            result.map_err(|error| StoreError::io("recycle", path, error))?;
        }
    }
}

/// The writer of the log. Only the committer has one.
pub(crate) struct LogWriter<'a> {
    disk: &'a dyn Disk,
    layout: &'a Layout,
    segments: &'a Segments,
    segment_bytes: u64,
    preallocate: bool,
    next_number: u64,
    active: Option<Active>,
}

struct Active {
    number: u64,
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    offset: u64,
    allocated: bool,
    unsynced: bool,
}

impl<'a> LogWriter<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        layout: &'a Layout,
        segments: &'a Segments,
        segment_bytes: u64,
        preallocate: bool,
        next_number: u64,
    ) -> Self {
        Self { disk, layout, segments, segment_bytes, preallocate, next_number, active: None }
    }

    /// Whether anything was written since the store was opened.
    pub(crate) fn is_used(&self) -> bool {
        self.active.is_some()
    }

    /// Makes room for a frame, and returns the number of the segment for it. The caller may retry after an error.
    pub(crate) fn prepare(&mut self, frame_bytes: usize) -> Result<u64, StoreError> {
        let fits = self.active.as_ref().is_some_and(|active| {
            let better = !active.allocated && !self.segments.inner.lock().spares.is_empty();
            // A frame larger than a segment gets a segment of its own. A retry must not begin another one.
            let empty = active.offset == SEGMENT_HEADER_BYTES as u64;
            empty || active.offset + frame_bytes as u64 <= self.segment_bytes && !better
        });
        if !fits {
            self.sync()?; // invariant 4
            self.active = Some(self.begin_segment()?);
            self.next_number += 1;
        }
        Ok(self.active.as_ref().expect("BUG: a segment was just begun").number)
    }

    /// Writes a frame at the end of the segment that [`prepare`](Self::prepare) chose. The caller may retry after an error.
    pub(crate) fn write(&mut self, frame: &[u8], frame_number: u64) -> Result<(), StoreError> {
        let active = self.active.as_mut().expect("BUG: written without prepare");
        active.unsynced = true;
        active
            .file
            .write_at(frame, active.offset)
            .map_err(|error| StoreError::io("write", &active.path, error))?;
        active.offset += frame.len() as u64;
        let mut inner = self.segments.inner.lock();
        if let Some(segment) = inner.live.last_mut() {
            segment.last_frame = frame_number;
            segment.bytes = active.offset;
        }
        if self.preallocate && inner.spares.is_empty() && inner.maker == Maker::Idle {
            inner.maker = Maker::Wanted;
            self.segments.wanted.notify_all();
        }
        Ok(())
    }

    /// Makes all written frames durable.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        if let Some(active) = self.active.as_mut().filter(|active| active.unsynced) {
            active.file.sync_data().map_err(|error| StoreError::io("sync", &active.path, error))?;
            active.unsynced = false;
        }
        Ok(())
    }

    fn begin_segment(&self) -> Result<Active, StoreError> {
        let number = self.next_number;
        let path = self.layout.segment(number);
        let failed = |verb| {
            let path = path.clone();
            move |error| StoreError::io(verb, path, error)
        };
        let allocated = self.take_spare(&path);
        let mode = if allocated { OpenMode::Write } else { OpenMode::Create };
        let file = self.disk.open(&path, mode).map_err(failed("create"))?;
        file.write_at(&segment_header(number), 0).map_err(failed("write"))?;
        // Invariant 4: the name is durable before a frame in the file is.
        self.disk
            .sync_dir(&self.layout.log)
            .map_err(|error| StoreError::io("sync", &self.layout.log, error))?;
        let bytes = SEGMENT_HEADER_BYTES as u64;
        self.segments.inner.lock().live.push(Segment { number, last_frame: 0, bytes, allocated });
        Ok(Active { number, file, path, offset: bytes, allocated, unsynced: true })
    }

    /// Renames a spare file to the new segment. `false` if there is no spare.
    fn take_spare(&self, path: &std::path::Path) -> bool {
        let spare = self.segments.inner.lock().spares.pop();
        spare.is_some_and(|spare| self.disk.rename(&spare, path).is_ok())
    }
}

//! Reads the log back after the end of a process, for whatever reason it ended. Invariants: log/mod.rs.
//!
//! The walk visits the frames of all segments in order. Where a valid frame is missing, it continues at the next valid one.
//! The sequence numbers show whether rows are lost. The `durable_before` of the later frame shows whether the store had
//! acknowledged them: then the gap is damage. Otherwise it is an unfinished write, which the walk drops and reports.

use std::path::{Path, PathBuf};

use model::limits::LOG_SPARES_MAX;
use store::{Sequence, StoreError};

use super::frame::{
    FORMAT_VERSION, FRAME_ALIGN, Frame, FrameKind, SEGMENT_HEADER_BYTES, SegmentState, check_segment,
    frame_at, is_leftover, is_torn,
};
use super::writer::Segment;
use crate::codec::Reader;
use crate::disk::{Disk, Layout, OpenMode, numbered, read_all};
use crate::entry::Entry;
use crate::record::refused_version;
use crate::report::{RecoveryReport, TornTail};

/// The part of the log that the parts cover, as the manifest records it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Covered {
    /// The parts have all rows of the frames below this number.
    pub(crate) frame: u64,
    /// The parts have all rows up to this sequence.
    pub(crate) sequence: Sequence,
    /// The largest number of a segment when the manifest was written.
    pub(crate) segment: u64,
}

/// The end of the log, from which the committer continues.
#[derive(Debug)]
pub(crate) struct LogEnd {
    pub(crate) next_segment: u64,
    pub(crate) next_frame: u64,
    pub(crate) next_sequence: Sequence,
    pub(crate) live: Vec<Segment>,
    /// Files that may become segments.
    pub(crate) spares: Vec<PathBuf>,
}

/// Takes the recovered entries.
pub(crate) trait Replay {
    /// Takes an entry. `sequence` is the sequence of its first row or of the deletion, if it is one of these. Rows up to
    /// `covered` are in parts. An error names the missing definition.
    fn replay(&mut self, entry: Entry<'_>, sequence: Sequence, covered: Sequence)
    -> Result<(), &'static str>;
}

/// Reads all segments and hands their entries to `replay`.
pub(crate) fn recover(
    disk: &dyn Disk,
    layout: &Layout,
    segment_bytes: u64,
    covered: Covered,
    replay: &mut dyn Replay,
    report: &mut RecoveryReport,
) -> Result<LogEnd, StoreError> {
    let failed = |verb, path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::io(verb, path, error)
    };
    let names = disk.list(&layout.log).map_err(failed("list", &layout.log))?;
    let mut walk = Walk::new(covered, segment_bytes, replay, report);
    let mut end =
        LogEnd { next_segment: 0, next_frame: 0, next_sequence: 0, live: Vec::new(), spares: Vec::new() };
    let mut newest = covered.segment;
    for name in &names {
        let Some(number) = numbered(name, ".log") else {
            if name == "spare" || numbered(name, ".spare").is_some() {
                find_spare(disk, layout.log.join(name), segment_bytes, &mut end.spares)?;
            }
            if name == "spare.tmp" {
                disk.remove(&layout.spare_new()).map_err(failed("remove", &layout.spare_new()))?;
            }
            continue;
        };
        newest = newest.max(number);
        let path = layout.segment(number);
        let file = disk.open(&path, OpenMode::Write).map_err(failed("open", &path))?;
        let bytes = read_all(file.as_ref()).map_err(failed("read", &path))?;
        let segment = walk.segment(number, &path, &bytes)?;
        match segment {
            Some(segment) if segment.last_frame >= covered.frame => {
                // After kill -9 the file may have readable frames without a sync. From now on they count as durable.
                file.sync_data().map_err(failed("sync", &path))?;
                end.live.push(segment);
            }
            _ => {
                drop(file);
                disk.remove(&path).map_err(failed("remove", &path))?;
            }
        }
    }
    walk.finish();
    disk.sync_dir(&layout.log).map_err(failed("sync", &layout.log))?;
    end.next_segment = newest + 1;
    end.next_frame = walk.expected_frame;
    end.next_sequence = walk.expected_sequence;
    Ok(end)
}

/// Keeps a spare file of the right size. Removes other ones, and those above the limit.
fn find_spare(
    disk: &dyn Disk,
    path: PathBuf,
    bytes: u64,
    spares: &mut Vec<PathBuf>,
) -> Result<(), StoreError> {
    let len = disk.open(&path, OpenMode::Read).and_then(|file| file.len());
    if len.is_ok_and(|len| len == bytes) && spares.len() < LOG_SPARES_MAX {
        spares.push(path);
        return Ok(());
    }
    disk.remove(&path).map_err(|error| StoreError::io("remove", path, error))
}

/// Bytes that are not a valid frame where a frame is expected.
struct Bad {
    path: PathBuf,
    offset: u64,
    bytes: u64,
    torn: bool,
}

/// Entries up to a row whose definitions are missing.
struct Suspect {
    path: PathBuf,
    offset: u64,
    reason: &'static str,
    sequence: Sequence,
}

/// A walk over the segments in the order of their numbers. It changes no file.
pub(crate) struct Walk<'a> {
    covered: Covered,
    segment_bytes: u64,
    expected_frame: u64,
    expected_sequence: Sequence,
    bad: Option<Bad>,
    /// Rows that were not acknowledged are missing. An entry that needs a definition among them is dropped, not damaged.
    hole: bool,
    /// A frame without rows is missing. Sequences do not show whether it was durable.
    definitions_missing: bool,
    /// Entries that need definitions of such a frame. They are damage if a later frame shows that they were durable.
    suspects: Vec<Suspect>,
    replay: &'a mut dyn Replay,
    report: &'a mut RecoveryReport,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        covered: Covered,
        segment_bytes: u64,
        replay: &'a mut dyn Replay,
        report: &'a mut RecoveryReport,
    ) -> Self {
        Self {
            expected_frame: covered.frame,
            expected_sequence: covered.sequence + 1,
            covered,
            segment_bytes,
            bad: None,
            hole: false,
            definitions_missing: false,
            suspects: Vec::new(),
            replay,
            report,
        }
    }

    /// The sequence after the last row of the segments so far.
    pub(crate) fn next_sequence(&self) -> Sequence {
        self.expected_sequence
    }

    /// Visits the next segment. `None` if it has no frame.
    pub(crate) fn segment(
        &mut self,
        number: u64,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Option<Segment>, StoreError> {
        let state = check_segment(bytes, number);
        if let SegmentState::Version(version) = state {
            let reason = refused_version(version, FORMAT_VERSION);
            return Err(StoreError::Corrupt { path: path.to_owned(), offset: 8, reason });
        }
        let mut last_frame = None;
        let mut offset = SEGMENT_HEADER_BYTES;
        let mut end = offset;
        while offset < bytes.len() {
            let Some(frame) = frame_at(bytes, offset, number) else {
                self.note_bad(path, bytes, offset);
                match next_frame(bytes, offset, number) {
                    Some(next) => offset = next,
                    None => break,
                }
                continue;
            };
            self.frame(&frame, path, offset);
            last_frame = Some(frame.header.number);
            offset = frame.end;
            end = frame.end;
        }
        if state == SegmentState::Damaged && last_frame.is_some() {
            self.report.damage(
                path,
                0,
                "the segment header's checksum does not match; its frames are intact",
            );
        }
        if last_frame.is_none() && !is_leftover(bytes, number) {
            self.report.damage(path, 0, "this is not a beginning of a segment, and no frame was found in it");
        }
        self.report.segments += 1;
        let allocated = self.full_size(bytes);
        let bytes = end as u64;
        Ok(last_frame.map(|last_frame| Segment { number, last_frame, bytes, allocated }))
    }

    fn full_size(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 >= self.segment_bytes
    }

    fn note_bad(&mut self, path: &Path, bytes: &[u8], offset: usize) {
        let torn = is_torn(bytes, offset, self.expected_frame, self.expected_sequence, self.full_size(bytes));
        // Of several invalid positions in a row the first one is where the damage began. Zeros at the end of a segment do
        // not count.
        if self.bad.as_ref().is_none_or(|bad| !bad.torn && torn) {
            let (offset, bytes) = (offset as u64, (bytes.len() - offset) as u64);
            self.bad = Some(Bad { path: path.to_owned(), offset, bytes, torn });
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, path: &Path, offset: usize) {
        let header = &frame.header;
        if header.number < self.expected_frame {
            return; // covered by parts
        }
        let bad = self.bad.take();
        let durable = header.durable_before;
        for suspect in self.suspects.extract_if(.., |suspect| suspect.sequence <= durable) {
            self.report.damage(&suspect.path, suspect.offset, suspect.reason);
        }
        self.definitions_missing |=
            header.number > self.expected_frame && header.first_sequence == self.expected_sequence;
        if header.first_sequence > self.expected_sequence {
            let (path, offset) = match &bad {
                Some(bad) => (bad.path.as_path(), bad.offset),
                None => (path, offset as u64),
            };
            let (from, to) = (self.expected_sequence, header.first_sequence - 1);
            if header.durable_before >= self.expected_sequence {
                self.report.damage(
                    path,
                    offset,
                    &format!("a frame with the durable rows {from} to {to} is missing"),
                );
            } else {
                self.report.torn_tail = Some(TornTail { path: path.to_owned(), offset, bytes: 0 });
                self.hole = true;
            }
        }
        self.report.clean_shutdown = header.kind == FrameKind::Close;
        if header.kind == FrameKind::Commit {
            self.report.frames += 1;
            self.entries(frame, path, offset);
        }
        self.expected_frame = header.number + 1;
        self.expected_sequence =
            self.expected_sequence.max(header.first_sequence.saturating_add(u64::from(header.rows)));
    }

    fn entries(&mut self, frame: &Frame<'_>, path: &Path, offset: usize) {
        let mut reader = Reader::new(frame.payload);
        let mut sequence = frame.header.first_sequence;
        let mut dropped = None;
        while !reader.is_empty() {
            let entry = match Entry::read(&mut reader) {
                Ok(entry) => entry,
                Err(malformed) => {
                    dropped = Some(malformed.0);
                    break;
                }
            };
            let sequences = entry.sequences();
            let wanted = match sequences {
                0 => 0,
                sequences => (sequence + sequences - 1).saturating_sub(self.covered.sequence).min(sequences),
            };
            if sequences == 0 || wanted > 0 {
                match self.replay.replay(entry, sequence, self.covered.sequence) {
                    Ok(()) if matches!(entry, Entry::Deletion { .. } | Entry::DroppedSeries { .. }) => {}
                    Ok(()) => self.report.rows += wanted,
                    Err(reason) => dropped = Some(reason),
                }
            }
            sequence += sequences;
        }
        let (Some(reason), false) = (dropped, self.hole) else { return };
        match self.definitions_missing {
            true => {
                let (path, offset) = (path.to_owned(), offset as u64);
                self.suspects.push(Suspect { path, offset, reason, sequence: sequence.saturating_sub(1) });
            }
            false => self.report.damage(path, offset as u64, reason),
        }
    }

    /// Reports what the end of the last segment means.
    pub(crate) fn finish(&mut self) {
        if let Some(Suspect { path, offset, .. }) = self.suspects.drain(..).next() {
            self.report.clean_shutdown = false;
            self.report.torn_tail = Some(TornTail { path, offset, bytes: 0 });
        }
        if let Some(bad) = self.bad.take().filter(|bad| bad.torn) {
            self.report.clean_shutdown = false;
            self.report.torn_tail = Some(TornTail { path: bad.path, offset: bad.offset, bytes: bad.bytes });
        }
    }
}

/// The position of the next valid frame.
fn next_frame(bytes: &[u8], offset: usize, segment: u64) -> Option<usize> {
    let mut positions = (offset + FRAME_ALIGN..bytes.len()).step_by(FRAME_ALIGN);
    positions.find(|position| frame_at(bytes, *position, segment).is_some())
}

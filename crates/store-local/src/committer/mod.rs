//! The committer: the one thread that writes the log and makes batches durable.
//!
//! It takes all entries that arrived during the last sync, writes them as one frame, syncs if a durability class requires
//! it, and publishes the progress. Invariants: log/mod.rs.

mod pace;

use std::time::Duration;

use parking_lot::MutexGuard;
use store::{Durability, StoreError};

use crate::core::{Core, STALLED_LOG, State, Stop};
use crate::log::acknowledged::Acknowledged;
use crate::log::frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, seal_frame};
use crate::log::writer::LogWriter;
use crate::workers::CommitterState;

use pace::Pace;

/// A frame taken from the pending buffer.
struct Commit {
    header: FrameHeader,
    /// The sequence of the last row in or before the frame.
    last_sequence: u64,
    sync: bool,
    /// Whether a caller waits for the write without the sync.
    notify_written: bool,
    entries: bool,
}

/// Runs until the store is closed, sealed or dropped.
pub(crate) fn run(core: &Core, next_segment: u64) {
    let mut writer = LogWriter::new(
        core.disk.as_ref(),
        &core.layout,
        &core.segments,
        core.options.segment_bytes,
        core.options.preallocate,
        next_segment,
    );
    if let Err(error) = commit_all(core, &mut writer) {
        core.seal(error);
    }
    let mut state = core.state.lock();
    state.committer.ended = true;
    core.flush_work.notify_all();
}

fn commit_all(core: &Core, writer: &mut LogWriter<'_>) -> Result<(), StoreError> {
    let mut buffer = vec![0; FRAME_HEADER_BYTES];
    let mut pace = Pace::default();
    let mut acknowledged = Acknowledged::default();
    while let Some(commit) = next_commit(core, &mut buffer, &pace) {
        let start_us = core.options.clock.now_us();
        pace.begin(start_us, commit.header.rows);
        if commit.entries {
            if !write(core, writer, &mut buffer, &commit.header)? {
                return Ok(());
            }
            core.set_written(commit.last_sequence);
        }
        if commit.sync {
            if commit.notify_written {
                core.notify_watchers();
            }
            writer.sync()?; // invariant 6: an error seals
            acknowledged.note(core.disk.as_ref(), &core.layout, commit.last_sequence); // invariant 7
            core.set_durable(commit.last_sequence);
            if let Some(observer) = &core.options.observer {
                let spent = core.options.clock.now_us().saturating_sub(start_us);
                let rows = u64::from(commit.header.rows);
                observer.synced(Duration::from_micros(spent), buffer.len() as u64, rows);
            }
        }
        finish(core, &mut buffer);
    }
    if core.state.lock().stop == Stop::Closing && writer.is_used() {
        write_close_mark(core, writer, &mut buffer)?;
    }
    Ok(())
}

/// Waits for pending entries and takes them; `None` when the store closes.
fn next_commit(core: &Core, buffer: &mut Vec<u8>, pace: &Pace) -> Option<Commit> {
    let mut state = core.state.lock();
    loop {
        if state.stop == Stop::Now || state.sealed.is_some() {
            return None;
        }
        let now_us = core.options.clock.now_us();
        let pause = match plan(core, &state, now_us, pace) {
            Plan::Commit => return Some(take(core, &mut state, buffer)),
            Plan::End => return None,
            Plan::Sleep(waiting, pause) => {
                state.committer.state = waiting;
                pause
            }
        };
        sleep(core, &mut state, pause);
        state.committer.state = CommitterState::Working;
    }
}

/// The next step of the committer.
enum Plan {
    Commit,
    Sleep(CommitterState, Option<Duration>),
    End,
}

fn plan(core: &Core, state: &State, now_us: u64, pace: &Pace) -> Plan {
    let options = &core.options;
    let closing = state.stop == Stop::Closing;
    let progress = core.progress();
    if state.pending.is_empty() {
        let unsynced = progress.durable < progress.appended;
        return match (state.committer.sync_wanted || closing) && unsynced {
            true => Plan::Commit,
            false if closing => Plan::End,
            false => Plan::Sleep(CommitterState::Idle, None),
        };
    }
    if closing || state.committer.sync_wanted || state.pending.bytes() >= options.commit_eager_bytes {
        return Plan::Commit;
    }
    let is_paced = matches!(state.pending.wanted, Some(Durability::Os | Durability::Fsync));
    let begun_us = if is_paced { pace.began_us() } else { Some(state.pending.since_us) };
    // If the clock went back, the pause is over: an early commit costs one sync, but a commit that waits for the clock to
    // reach the same time again might never happen.
    let passed_us = begun_us.and_then(|begun_us| now_us.checked_sub(begun_us)).unwrap_or(u64::MAX);
    let (waiting, pause_us) = match is_paced {
        true => {
            let wait = pace.wait(options.commit_interval_us, passed_us, state.pending.rows);
            (wait.enough_rows.map_or(CommitterState::Paced, CommitterState::Gathering), wait.interval_us)
        }
        false => (CommitterState::Lazy, options.lazy_write_us),
    };
    match pause_us.checked_sub(passed_us) {
        None | Some(0) => Plan::Commit,
        Some(rest_us) => Plan::Sleep(waiting, Some(Duration::from_micros(rest_us))),
    }
}

fn sleep(core: &Core, state: &mut MutexGuard<'_, State>, pause: Option<Duration>) {
    match pause {
        Some(pause) => {
            core.commit_work.wait_for(state, pause);
        }
        None => core.commit_work.wait(state),
    }
}

/// Swaps the pending buffer for an empty one.
fn take(core: &Core, state: &mut State, buffer: &mut Vec<u8>) -> Commit {
    let progress = core.progress();
    let sync_wanted = std::mem::take(&mut state.committer.sync_wanted) || state.stop == Stop::Closing;
    let pending = &mut state.pending;
    let entries = !pending.is_empty();
    let header = FrameHeader {
        kind: FrameKind::Commit,
        number: pending.frame,
        rows: pending.rows,
        first_sequence: pending.first_sequence,
        durable_before: progress.durable,
    };
    let commit = Commit {
        header,
        last_sequence: pending.first_sequence + u64::from(pending.rows) - 1,
        sync: sync_wanted || pending.wanted == Some(Durability::Fsync),
        notify_written: pending.wants_os,
        entries,
    };
    if entries {
        std::mem::swap(&mut pending.buffer, buffer);
        pending.in_flight = buffer.len() - FRAME_HEADER_BYTES;
        pending.frame += 1;
        pending.first_sequence += u64::from(pending.rows);
        pending.rows = 0;
        pending.wanted = None;
        pending.wants_os = false;
    }
    commit
}

/// Writes the frame, and waits for disk space as long as necessary. `false` when the store closes meanwhile.
fn write(
    core: &Core,
    writer: &mut LogWriter<'_>,
    buffer: &mut Vec<u8>,
    header: &FrameHeader,
) -> Result<bool, StoreError> {
    let payload_end = buffer.len();
    loop {
        buffer.truncate(payload_end);
        let frame_bytes = payload_end.next_multiple_of(crate::log::frame::FRAME_ALIGN);
        let written = writer.prepare(frame_bytes).and_then(|segment| {
            seal_frame(buffer, segment, header);
            writer.write(buffer, header.number)
        });
        match written {
            Ok(()) => {
                core.set_stalled(STALLED_LOG, None);
                return Ok(true);
            }
            Err(error) if error.is_transient() => {
                core.set_stalled(STALLED_LOG, Some(&error));
                let mut state = core.state.lock();
                if state.stop != Stop::Running {
                    // No caller waits for space any more. Acknowledged rows are durable; this refuses the other ones.
                    state.sealed.get_or_insert(error);
                    return Ok(false);
                }
                core.commit_work.wait_for(&mut state, Duration::from_micros(core.options.stalled_retry_us));
            }
            Err(error) => return Err(error),
        }
    }
}

fn finish(core: &Core, buffer: &mut Vec<u8>) {
    buffer.truncate(FRAME_HEADER_BYTES);
    // Frees the memory of one huge batch.
    buffer.shrink_to(4 * core.options.commit_eager_bytes);
    let mut state = core.state.lock();
    state.pending.in_flight = 0;
    if state.flusher.waiting {
        core.flush_work.notify_all();
    }
    if state.flusher.requested == state.flusher.completed
        && core.segments.bytes() >= core.options.log_flush_bytes
    {
        core.request_flush(&mut state);
    }
    drop(state);
    core.notify_watchers();
}

/// Writes a mark that all earlier frames were durable, so that a recovery can tell damage to the last frame from a torn
/// write.
fn write_close_mark(core: &Core, writer: &mut LogWriter<'_>, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
    let header = {
        let pending = &core.state.lock().pending;
        FrameHeader {
            kind: FrameKind::Close,
            number: pending.frame,
            rows: 0,
            first_sequence: pending.first_sequence,
            durable_before: pending.first_sequence - 1,
        }
    };
    buffer.truncate(FRAME_HEADER_BYTES);
    let marked = writer.prepare(FRAME_HEADER_BYTES).and_then(|segment| {
        seal_frame(buffer, segment, &header);
        writer.write(buffer, header.number)?;
        writer.sync()
    });
    match marked {
        Err(error) if error.is_transient() => Ok(()), // the mark is optional
        marked => marked,
    }
}

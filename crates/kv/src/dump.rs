//! The dump: all records of a store at one point in time, as a stream for a backup. Format: `docs/format/kv.md`.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::limits::{KEY_BYTES_MAX, SPACE_NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{
    Direction, Key, KeyRange, KeyValueStore, KvError, Progress, ProgressWatcher, Sequence, Snapshot, Space,
    Value, WriteBatch,
};

/// The first bytes of a dump.
const MAGIC: &[u8; 8] = b"TACHOKV1";

/// Length and checksum before the body of a record.
const FRAME_BYTES: usize = 8;

/// The kinds of records.
const KIND_RECORD: u8 = 1;
const KIND_END: u8 = 2;

/// Kind, length of the name of the space, length of the key.
const BODY_FIXED_BYTES: usize = 1 + 1 + 2;

/// The largest body that an import reads into memory.
const BODY_BYTES_MAX: usize = BODY_FIXED_BYTES + SPACE_NAME_BYTES_MAX + KEY_BYTES_MAX + VALUE_BYTES_MAX;

/// The longest time that an import waits for a busy store, and the pause between its attempts if nobody wakes it.
const BUSY_MAX: Duration = Duration::from_secs(60);
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// An import commits a batch at this size.
const IMPORT_BATCH_BYTES: usize = 4 << 20;

/// Writes the dump of a snapshot, and returns its number of records. Two dumps of one snapshot are the same bytes.
///
/// # Errors
/// [`KvError::DumpIo`] when the stream fails, and those of the scans.
pub fn export(snapshot: &dyn Snapshot, out: &mut dyn Write) -> Result<u64, KvError> {
    let write = |source| KvError::DumpIo { verb: "write", source: Arc::new(source) };
    out.write_all(MAGIC).map_err(write)?;
    let mut records = 0_u64;
    let mut frame = Vec::new();
    for space in snapshot.spaces() {
        for record in snapshot.scan(space, &KeyRange::all(), Direction::Ascending)? {
            let (key, value) = record?;
            let name = space.name().as_bytes();
            frame.clear();
            frame.resize(FRAME_BYTES, 0);
            // Both lengths are within their limits since the batch was checked.
            frame.extend([KIND_RECORD, name.len() as u8]);
            frame.extend((key.len() as u16).to_le_bytes());
            frame.extend_from_slice(name);
            frame.extend_from_slice(&key);
            frame.extend_from_slice(&value);
            seal(&mut frame);
            out.write_all(&frame).map_err(write)?;
            records += 1;
        }
    }
    frame.clear();
    frame.resize(FRAME_BYTES, 0);
    frame.push(KIND_END);
    frame.extend(records.to_le_bytes());
    seal(&mut frame);
    out.write_all(&frame).map_err(write)?;
    Ok(records)
}

/// Writes length and checksum into the room before the body.
fn seal(frame: &mut [u8]) {
    let (head, body) = frame.split_at_mut(FRAME_BYTES);
    head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
}

/// The size of the dump of a snapshot, in bytes: what [`export`] writes.
///
/// # Errors
/// Those of the scans.
pub fn size(snapshot: &dyn Snapshot) -> Result<u64, KvError> {
    let mut counter = Counter(0);
    export(snapshot, &mut counter)?;
    Ok(counter.0)
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a dump into an empty store, and returns its number of records. The caller closes the store to make them durable;
/// after an error it must throw the store away.
///
/// # Errors
/// [`KvError::NotEmpty`], [`KvError::Dump`], [`KvError::DumpIo`], and those of [`KeyValueStore::commit`].
pub fn import(store: &dyn KeyValueStore, input: &mut dyn Read) -> Result<u64, KvError> {
    let snapshot = store.snapshot()?;
    for space in snapshot.spaces() {
        if snapshot.scan(space, &KeyRange::all(), Direction::Ascending)?.next().is_some() {
            return Err(KvError::NotEmpty);
        }
    }
    drop(snapshot);
    let mut reader = DumpReader::open(input)?;
    let waiter = Arc::new(Waiter::default());
    store.watch(Arc::clone(&waiter) as Arc<dyn ProgressWatcher>);
    let mut batch = WriteBatch::new();
    let mut records = 0_u64;
    while let Some((space, key, value)) = reader.next(records)? {
        batch.put(space, key, value);
        records += 1;
        if batch.bytes() >= IMPORT_BATCH_BYTES {
            waiter.commit(store, &batch)?;
            batch.clear();
        }
    }
    waiter.commit(store, &batch)?;
    Ok(records)
}

/// Waits until each batch is durable, so that the store is never busy and memory stays bounded.
#[derive(Default)]
struct Waiter {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Waiter {
    fn commit(&self, store: &dyn KeyValueStore, batch: &WriteBatch) -> Result<(), KvError> {
        let sequence = self.commit_when_there_is_room(store, batch)?;
        let mut progress = self.progress.lock();
        // The store may have made progress before the watcher was added.
        *progress = store.progress();
        self.changed.wait_while(&mut progress, |progress| progress.durable < sequence && !progress.sealed);
        match progress.durable < sequence {
            true => {
                let cause = store.status().sealed.unwrap_or_default();
                Err(KvError::Sealed { cause })
            }
            false => Ok(()),
        }
    }
}

impl Waiter {
    /// A store is busy for some moments while it is behind with its files, and for longer while the disk is full.
    fn commit_when_there_is_room(
        &self,
        store: &dyn KeyValueStore,
        batch: &WriteBatch,
    ) -> Result<Sequence, KvError> {
        let began = Instant::now();
        loop {
            match store.commit(batch) {
                Err(KvError::Busy { .. }) if began.elapsed() < BUSY_MAX => {
                    self.changed.wait_for(&mut self.progress.lock(), BUSY_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }
}

impl ProgressWatcher for Waiter {
    fn progress(&self, progress: Progress) {
        *self.progress.lock() = progress;
        self.changed.notify_all();
    }
}

/// Reads the records of a dump.
struct DumpReader<'a> {
    input: &'a mut dyn Read,
    offset: u64,
}

impl<'a> DumpReader<'a> {
    fn open(input: &'a mut dyn Read) -> Result<Self, KvError> {
        let mut reader = Self { input, offset: 0 };
        let mut magic = [0; MAGIC.len()];
        reader.read(&mut magic)?;
        match &magic == MAGIC {
            true => Ok(reader),
            false => {
                Err(KvError::Dump { offset: 0, reason: "this is not a dump of keys of version 1".into() })
            }
        }
    }

    /// The next record; `None` after the last. `records` is the number of those before.
    fn next(&mut self, records: u64) -> Result<Option<(Space, Key, Value)>, KvError> {
        let begin = self.offset;
        let damaged = |reason: &str| KvError::Dump { offset: begin, reason: reason.to_owned() };
        let body = self.body()?;
        let Some((kind, rest)) = body.split_first() else { return Err(damaged("a record is empty")) };
        match *kind {
            KIND_END if *rest == records.to_le_bytes() => Ok(None),
            KIND_END => Err(damaged("the number of records is not that of the end")),
            KIND_RECORD => record(&body).map(Some).ok_or_else(|| damaged("a record has wrong lengths")),
            _ => Err(damaged("a record has an unknown kind")),
        }
    }

    fn body(&mut self) -> Result<Bytes, KvError> {
        let begin = self.offset;
        let mut head = [0; FRAME_BYTES];
        self.read(&mut head)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > BODY_BYTES_MAX {
            return Err(KvError::Dump { offset: begin, reason: format!("a record of {length} bytes") });
        }
        let mut body = vec![0; length];
        self.read(&mut body)?;
        match crc32c::crc32c(&body) == u32::from_le_bytes([c0, c1, c2, c3]) {
            true => Ok(body.into()),
            false => Err(KvError::Dump { offset: begin, reason: "the checksum of a record is wrong".into() }),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), KvError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                KvError::Dump { offset: self.offset, reason: "it ends before its end record".into() }
            }
            _ => KvError::DumpIo { verb: "read", source: Arc::new(error) },
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Takes the body of a record apart.
fn record(body: &Bytes) -> Option<(Space, Key, Value)> {
    let fixed = body.first_chunk::<BODY_FIXED_BYTES>()?;
    let [_, name_bytes, k0, k1] = *fixed;
    let key_at = BODY_FIXED_BYTES + usize::from(name_bytes);
    let value_at = key_at + usize::from(u16::from_le_bytes([k0, k1]));
    let name = std::str::from_utf8(body.get(BODY_FIXED_BYTES..key_at)?).ok()?;
    let space = Space::named(name).ok()?;
    (value_at <= body.len()).then(|| (space, body.slice(key_at..value_at), body.slice(value_at..)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    const A: Space = Space::new("attributes");
    const S: Space = Space::new("sessions");

    fn dump() -> Vec<u8> {
        let store = MemoryStore::new();
        let mut batch = WriteBatch::new();
        batch.put(A, "k", "v").put(S, "empty", "").put(S, vec![0, 255], vec![0; 100_000]);
        store.commit(&batch).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(export(&*store.snapshot().unwrap(), &mut bytes).unwrap(), 3);
        assert_eq!(size(&*store.snapshot().unwrap()).unwrap(), bytes.len() as u64);
        bytes
    }

    #[test]
    fn an_import_has_the_records_of_the_export() {
        let bytes = dump();
        let copy = MemoryStore::new();
        assert_eq!(import(&copy, &mut bytes.as_slice()).unwrap(), 3);
        assert_eq!(copy.get(S, &[0, 255]).unwrap().unwrap().len(), 100_000);
        let mut again = Vec::new();
        export(&*copy.snapshot().unwrap(), &mut again).unwrap();
        assert!(again == bytes);
        assert!(matches!(import(&copy, &mut bytes.as_slice()), Err(KvError::NotEmpty)));
    }

    #[test]
    fn a_shortened_or_changed_dump_is_refused() {
        let bytes = dump();
        for length in [0, 7, 8, 12, 20, bytes.len() - 1] {
            let error = import(&MemoryStore::new(), &mut &bytes[..length]).unwrap_err();
            assert!(matches!(error, KvError::Dump { .. }), "{length} {error}");
        }
        for at in [0, 9, 12, 16, 30, 50_000, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let error = import(&MemoryStore::new(), &mut changed.as_slice()).unwrap_err();
            assert!(matches!(error, KvError::Dump { .. }), "{at} {error}");
        }
    }
}

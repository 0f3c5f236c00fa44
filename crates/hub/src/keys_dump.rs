//! The key-value engine in checks and backups.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use kv::{CheckReport, KeyValueStore, KvError, Snapshot, dump};
use store::Finding;
use store::backup::Extra;

/// The file of a backup that has the records of the key-value engine (`docs/format/kv.md`). An installation that finds it in its
/// data directory reads it into its engine.
pub const KEYS_DUMP: &str = "keys.dump";

/// The records of a snapshot as a file of a backup.
///
/// # Errors
/// A record cannot be read, or the system has no pipe or thread left.
pub(crate) fn keys_extra(snapshot: Box<dyn Snapshot>) -> Result<Extra, KvError> {
    let bytes = dump::size(&*snapshot)?;
    Ok(Extra { path: KEYS_DUMP.to_owned(), bytes, content: Box::new(Dumped::Waiting(Some(snapshot))) })
}

/// A dump that a thread writes while it is read. The thread starts at the first read.
enum Dumped {
    Waiting(Option<Box<dyn Snapshot>>),
    Running(io::PipeReader),
}

impl Read for Dumped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Self::Waiting(snapshot) = self {
            let snapshot = snapshot.take().ok_or_else(|| io::Error::other("the dump could not begin"))?;
            let (reader, writer) = io::pipe()?;
            std::thread::Builder::new().name("kv-dump".into()).spawn(move || {
                let mut out = io::BufWriter::with_capacity(64 * 1024, writer);
                // A reader that has gone ends the dump. A dump that is too short is reported by the reader of the backup.
                if let Err(error) = dump::export(&*snapshot, &mut out) {
                    tracing::warn!(%error, "the dump of the key-value engine ended early");
                }
            })?;
            *self = Self::Running(reader);
        }
        match self {
            Self::Running(reader) => reader.read(buffer),
            Self::Waiting(_) => unreachable!("BUG: the thread has started"),
        }
    }
}

/// Reads all records of the key-value engine. Damage becomes findings.
pub fn keys_findings(kv: &dyn KeyValueStore, directory: &Path) -> Vec<Finding> {
    let report = kv.check(&mut |_| ControlFlow::Continue(()));
    let damage = report.map_or_else(|error| vec![error.to_string()], |report: CheckReport| report.damage);
    let finding = |problem: String| {
        Finding::damage(directory, None, problem).with(
            "Sessions, retained messages, attributes or stored calls may be missing. No row of the store is lost by it.",
            "Put the keys of a backup there: `tacho restore` into a new directory, then copy its directory `keys`.",
        )
    };
    damage.into_iter().map(finding).collect()
}

//! The key-value engine in checks and backups.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kv::{CheckReport, Checkpoint, KeyValueStore, KvError, Snapshot, dump};
use store::Finding;
use store::backup::{BackupFile, BackupList, Digest, Extra, KEYS_DIRECTORY, Sums};

/// The key-value engine as files of a backup: the files of a checkpoint, or the dump of a store that has no files. Tables that the
/// receiver has with the same bytes are not sent.
///
/// # Errors
/// A file or a record cannot be read; the engine is busy, or sealed.
pub(crate) fn keys_extras(kv: &dyn KeyValueStore, have: &BackupList) -> Result<Vec<Extra>, KvError> {
    let Some(checkpoint) = kv.checkpoint()? else { return Ok(vec![keys_extra(kv.snapshot()?)?]) };
    let checkpoint = Arc::new(checkpoint);
    let have: HashMap<&str, &BackupFile> = have.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut extras = Vec::new();
    for (place, file) in checkpoint.files().iter().enumerate() {
        let path = format!("{KEYS_DIRECTORY}/{}", file.name());
        let mut known = None;
        if let Some(there) =
            have.get(path.as_str()).filter(|there| file.is_immutable() && there.bytes == file.bytes())
        {
            let digest = digest_of(&checkpoint, place);
            let digest = digest.map_err(|error| KvError::io("read for a backup", file.name(), error))?;
            known = (digest == there.sha256).then(|| (*there).clone());
        }
        extras.push(Extra { path, bytes: file.bytes(), content: checkpoint.reader(place), known });
    }
    Ok(extras)
}

fn digest_of(checkpoint: &Arc<Checkpoint>, place: usize) -> io::Result<Digest> {
    let (mut sums, mut reader) = (Sums::default(), checkpoint.reader(place));
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(sums.digest()),
            count => sums.add(&buffer[..count]),
        }
    }
}

/// The file of a backup that has the records of a store without files, and that earlier backups have (`docs/format/kv.md`). An
/// installation that finds it in its data directory reads it into its engine.
pub const KEYS_DUMP: &str = "keys.dump";

/// The records of a snapshot as a file of a backup.
///
/// # Errors
/// A record cannot be read, or the system has no pipe or thread left.
fn keys_extra(snapshot: Box<dyn Snapshot>) -> Result<Extra, KvError> {
    let bytes = dump::size(&*snapshot)?;
    Ok(Extra {
        path: KEYS_DUMP.to_owned(),
        bytes,
        content: Box::new(Dumped::Waiting(Some(snapshot))),
        known: None,
    })
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

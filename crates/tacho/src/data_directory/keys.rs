//! Opens the key-value engine of a data directory.
//!
//! A backup has the content of the engine as one file. A data directory with such a file, from `tacho restore` or from an
//! unpacked tar, gets its engine from it at the first opening.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use anyhow::{Context as _, ensure};
use hub::maintenance::KEYS_DUMP;
use kv::{EngineOptions, EngineStore, KeyValueStore as _, dump};
use model::limits::Portion;
use tempfile::TempDir;

use super::layout::keys_directory;

/// The engine that is made from a dump.
const UNFINISHED: &str = "keys.unfinished";
/// Least bytes of the engine's cache and of its spaces in memory, on a small machine.
const MEMORY_BYTES_MIN: usize = 8 << 20;
/// A dump that was read as a whole.
const READ_DUMP: &str = "keys.dump.read";

/// Opens the key-value engine of a directory whose lock this process holds already. A directory without an engine gets an empty
/// one.
pub(crate) fn open_keys(data: &Path, memory: Portion) -> anyhow::Result<EngineStore> {
    let directory = keys_directory(data);
    import_dump(data, &directory)?;
    let all = EngineOptions::default().memory_bytes_max() as usize;
    let options = EngineOptions::within(memory.of(all).max(MEMORY_BYTES_MIN) as u64);
    open_with(&directory, &options)
}

/// The key-value engine of a stopped installation, in a copy: opening an engine changes its files.
#[derive(Debug)]
pub(crate) struct CopiedKeys {
    pub(crate) engine: EngineStore,
    _copy: TempDir,
}

/// Opens a copy of the key-value engine of a directory. `None` if the directory has neither an engine nor a dump of one.
pub(crate) fn open_copy_of_keys(data: &Path) -> anyhow::Result<Option<CopiedKeys>> {
    let (directory, path) = (keys_directory(data), data.join(KEYS_DUMP));
    let copy = TempDir::with_prefix("tacho-keys-").context("cannot make a temporary directory")?;
    let copying = || format!("cannot copy {} to {}", directory.display(), copy.path().display());
    let is_copied = directory.is_dir();
    if is_copied {
        copy_directory(&directory, copy.path()).with_context(copying)?;
    }
    let engine = open(copy.path())?;
    if !is_copied {
        if !path.exists() {
            return Ok(None);
        }
        let file = File::open(&path).with_context(copying)?;
        dump::import(&engine, &mut BufReader::new(file)).with_context(copying)?;
    }
    Ok(Some(CopiedKeys { engine, _copy: copy }))
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

fn open(directory: &Path) -> anyhow::Result<EngineStore> {
    open_with(directory, &EngineOptions::default())
}

fn open_with(directory: &Path, options: &EngineOptions) -> anyhow::Result<EngineStore> {
    EngineStore::open(directory, options)
        .with_context(|| format!("cannot open the key-value engine in {}", directory.display()))
}

/// Makes an engine from the dump of a backup, if there is one. A crash at any step leaves a state from which the next call continues.
fn import_dump(data: &Path, directory: &Path) -> anyhow::Result<()> {
    let (path, unfinished, read) = (data.join(KEYS_DUMP), data.join(UNFINISHED), data.join(READ_DUMP));
    let failed = || format!("cannot make {} from {}", directory.display(), path.display());
    if path.exists() && !read.exists() {
        ensure!(
            !directory.exists(),
            "{} has the keys of a backup, but there is a directory {}; remove one of them",
            path.display(),
            directory.display()
        );
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(failed)?;
        }
        let engine = open(&unfinished)?;
        let file = File::open(&path).with_context(failed)?;
        dump::import(&engine, &mut BufReader::new(file)).with_context(failed)?;
        engine.close().with_context(failed)?;
        drop(engine);
        // From here on the new engine is complete.
        fs::rename(&path, &read).and_then(|()| sync_directory(data)).with_context(failed)?;
    }
    if read.exists() {
        if unfinished.exists() {
            fs::rename(&unfinished, directory).and_then(|()| sync_directory(data)).with_context(failed)?;
        }
        fs::remove_file(&read).and_then(|()| sync_directory(data)).with_context(failed)?;
    }
    Ok(())
}

fn sync_directory(data: &Path) -> io::Result<()> {
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use kv::{Space, WriteBatch};

    use super::*;

    const SPACE: Space = Space::new("attributes");

    #[test]
    fn a_dump_becomes_the_engine_once() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        let source = kv::MemoryStore::new();
        let mut batch = WriteBatch::new();
        batch.put(SPACE, "k", "v");
        source.commit(&batch).unwrap();
        let mut bytes = Vec::new();
        dump::export(&*source.snapshot().unwrap(), &mut bytes).unwrap();
        // An attempt before has ended in the middle.
        fs::create_dir(data.join(UNFINISHED)).unwrap();
        fs::write(data.join(UNFINISHED).join("rubbish"), "x").unwrap();
        fs::write(data.join(KEYS_DUMP), &bytes).unwrap();
        let engine = open_keys(data, Portion::ALL).unwrap();
        assert_eq!(engine.get(SPACE, b"k").unwrap().unwrap(), "v");
        drop(engine);
        let names: Vec<_> = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["keys"]);
        // The process ended after the dump was read.
        fs::rename(data.join("keys"), data.join(UNFINISHED)).unwrap();
        fs::write(data.join(READ_DUMP), &bytes).unwrap();
        let engine = open_keys(data, Portion::ALL).unwrap();
        assert_eq!(engine.get(SPACE, b"k").unwrap().unwrap(), "v");
        drop(engine);
        fs::write(data.join(KEYS_DUMP), &bytes).unwrap();
        let refused = open_keys(data, Portion::ALL).unwrap_err().to_string();
        assert!(refused.contains("remove one of them"), "{refused}");
    }
}

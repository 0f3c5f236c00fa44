//! The allowed entries of a backup: plain files with known names, each once. The maker of the backup is not trusted.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use model::limits::BACKUP_LIST_BYTES_MAX;
use store::backup::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, is_inside, is_keys_file};
use tar::{Archive, Entries, Entry, EntryType};

use crate::disk::{Disk, EntryKind, numbered};

/// The entries of a stream. Long names, which archives spread over several entries, are not resolved and so are refused: a
/// backup has only short names.
pub(super) fn entries<'a, 's>(
    archive: &'a mut Archive<&'s mut dyn Read>,
) -> io::Result<Entries<'a, &'s mut dyn Read>> {
    Ok(archive.entries()?.raw(true))
}

/// The names of the entries of a stream so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    seen: HashSet<String>,
}

impl Names {
    /// The name of the next entry. The error describes what is wrong with the entry.
    pub(super) fn next(&mut self, entry: &Entry<'_, &mut dyn Read>) -> Result<String, String> {
        let name = entry.path_bytes();
        let shown = String::from_utf8_lossy(&name).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            let kind = kind_of(entry.header().entry_type());
            return Err(format!("the entry {shown:?} is {kind}; a backup has nothing but plain files"));
        }
        if std::str::from_utf8(&name).is_err() || !is_inside(&shown) {
            return Err(format!("a file is named {shown:?}, which no file of a backup is"));
        }
        if self.seen.contains(BACKUP_LIST) {
            return Err(format!("the entry {shown:?} comes behind {BACKUP_LIST}, which is the last one"));
        }
        if !self.seen.insert(shown.clone()) {
            return Err(format!("the entry {shown:?} comes twice"));
        }
        Ok(shown)
    }
}

fn kind_of(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Directory => "a directory",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        _ => "of a kind that this program does not write",
    }
}

/// Reads the list from a stream.
pub(super) fn read_list(content: &mut dyn Read) -> Result<(BackupList, String), String> {
    let mut text = String::new();
    let read = content.take(BACKUP_LIST_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{BACKUP_LIST} cannot be read: {error}"))?;
    if text.len() as u64 > BACKUP_LIST_BYTES_MAX {
        return Err(format!("{BACKUP_LIST} has more than {BACKUP_LIST_BYTES_MAX} bytes"));
    }
    Ok((BackupList::decode(&text)?, text))
}

/// Refuses a file that no restored directory has. `beside` names the files that do not belong to the store.
pub(super) fn check_known(path: &str, beside: &[&str]) -> Result<(), String> {
    let of_store = path.strip_prefix(STORE_DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
    let known = match of_store {
        Some("manifest" | "series") => true,
        Some(path) => {
            let is = |dir: &str, suffix: &str| {
                path.strip_prefix(dir).is_some_and(|name| numbered(name, suffix).is_some())
            };
            is("log/", ".log") || is("parts/", ".parquet")
        }
        None => beside.contains(&path) || is_keys_file(path),
    };
    match known {
        true => Ok(()),
        false => Err(format!("it has the file {path:?}, which this program knows no use for")),
    }
}

/// Refuses a path in the directory of a backup that is not a plain file in plain directories.
pub(super) fn check_plain(disk: &dyn Disk, dir: &Path, stored: &str) -> Result<(), String> {
    let mut path = dir.to_owned();
    let mut names = stored.split('/').peekable();
    while let Some(name) = names.next() {
        path.push(name);
        let wanted = if names.peek().is_some() { EntryKind::Directory } else { EntryKind::File };
        let kind = disk.kind(&path).map_err(|error| format!("it cannot be read: {error}"))?;
        if kind != wanted {
            return Err(format!("{name:?} is a link or a device; a backup has nothing but plain files"));
        }
    }
    Ok(())
}

/// Compares the received files with the list. No file may be missing, different or unlisted.
pub(super) fn check_listed(list: &BackupList, came: &[BackupFile]) -> Result<(), String> {
    for wanted in &list.files {
        let found = came.iter().find(|file| file.path == wanted.path);
        if !found.is_some_and(|found| is_same(found, wanted)) {
            return Err(format!("{} is missing or does not have its checksum", wanted.path));
        }
    }
    match came.iter().find(|file| list.find(&file.path).is_none()) {
        Some(stranger) => Err(format!("{} is in it, but not in its {BACKUP_LIST}", stranger.path)),
        None => Ok(()),
    }
}

/// Whether a file has the length and the checksums of its list entry.
pub(super) fn is_same(found: &BackupFile, listed: &BackupFile) -> bool {
    (found.bytes, found.crc, found.sha256) == (listed.bytes, listed.crc, listed.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_restored_directory_has_is_known() {
        let check = |path| check_known(path, &["registry.sqlite"]);
        for path in ["store/manifest", "store/series", "registry.sqlite"] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        for path in [
            "keys/lock",
            "keys/3.jnl",
            "keys/keyspaces/1/tables/7",
            "store/log/000000000000000a.log",
            "store/parts/0000000000000001.parquet",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        for path in [
            "registry.sqlite-wal",
            "tacho.toml",
            "restore.unfinished",
            "store",
            "store/LOCK",
            "store/log/spare",
            "store/parts/1.parquet",
            "stored/manifest",
            "x/registry.sqlite",
            "keys/registry.sqlite",
        ] {
            assert!(check(path).unwrap_err().contains(path), "{path}");
        }
    }
}

//! A backup as a tar stream: the files of the store, the other files of the installation, and the list at the end.
//!
//! Any tar can unpack the stream to a data directory. If a file cannot be read or is too short, the stream has zeros in
//! place of the missing bytes. The reader of the stream has the checksums in the manifest and reports the damaged part.
//! So one damaged part does not prevent the backup of the others.

use std::io::{self, Read, Write};

use tar::{Builder, EntryType, Header};

use super::{BACKUP_LIST, BackupFile, BackupList, STORE_DIRECTORY, Sums};
use crate::files::{StoreFile, StoreFiles};

/// A file of the installation that does not belong to the store.
pub struct Extra {
    /// Path in the data directory.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// The content of the file.
    pub content: Box<dyn Read + Send>,
    /// The entry of the receiver's list of a file with this path and these bytes. Then the content is not sent.
    pub known: Option<BackupFile>,
}

/// The path of a file of the store in a data directory.
fn path_of(file: &StoreFile) -> String {
    format!("{STORE_DIRECTORY}/{}", file.name)
}

/// The entry of the file in the list of the files that the receiver has already.
fn find<'a>(file: &StoreFile, have: &'a BackupList) -> Option<&'a BackupFile> {
    let is_it = |known: &&BackupFile| known.bytes == file.bytes && Some(known.crc) == file.crc;
    have.find(&path_of(file)).filter(is_it)
}

/// The number of bytes of all files that [`write_stream`] writes.
pub fn stream_bytes(files: &dyn StoreFiles, extras: &[Extra], have: &BackupList) -> u64 {
    let store =
        files.files().iter().filter(|file| find(file, have).is_none()).map(|file| file.bytes).sum::<u64>();
    store + extras.iter().filter(|extra| extra.known.is_none()).map(|extra| extra.bytes).sum::<u64>()
}

/// Writes the files that the receiver does not have, and then the list of all files.
///
/// # Errors
/// The errors of `out`, and of an extra file that cannot be read: nothing else has its checksum. A file of the store that cannot be read is
/// not an error (see above).
pub fn write_stream(
    files: &dyn StoreFiles,
    extras: Vec<Extra>,
    have: &BackupList,
    created_us: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut list = BackupList { created_us, ..BackupList::default() };
    let mut tar = Builder::new(out);
    for (index, file) in files.files().iter().enumerate() {
        let path = path_of(file);
        let listed = match find(file, have) {
            Some(known) => BackupFile { stored: path.clone(), path, ..known.clone() },
            None => append(&mut tar, path, file.bytes, created_us, FileReader { files, index, offset: 0 })?,
        };
        list.files.push(listed);
    }
    for Extra { path, bytes, content, known } in extras {
        list.files.push(match known {
            Some(known) => BackupFile { stored: path.clone(), path, ..known },
            None => append(&mut tar, path.clone(), bytes, created_us, Whole { content, left: bytes, path })?,
        });
    }
    let text = list.encode();
    append(&mut tar, BACKUP_LIST.to_owned(), text.len() as u64, created_us, text.as_bytes())?;
    tar.into_inner()?.flush()
}

/// Writes one file and returns its entry for the list.
fn append(
    tar: &mut Builder<&mut dyn Write>,
    path: String,
    bytes: u64,
    created_us: i64,
    content: impl Read,
) -> io::Result<BackupFile> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o600); // tokens and password hashes are among them
    header.set_mtime((created_us / 1_000_000).max(0).cast_unsigned());
    let mut content = Exactly { content, left: bytes, sums: Sums::default(), broken: false };
    tar.append_data(&mut header, &path, &mut content)?;
    let (crc, sha256) = (content.sums.crc(), content.sums.digest());
    Ok(BackupFile { stored: path.clone(), path, bytes, crc, sha256 })
}

/// Gives exactly the announced number of bytes, with zeros in place of missing ones.
struct Exactly<R> {
    content: R,
    left: u64,
    sums: Sums,
    broken: bool,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..wanted];
        let count = match self.broken || wanted == 0 {
            true => 0,
            false => match self.content.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted || Whole::ended(&error) => {
                    return Err(error);
                }
                Err(_) => 0,
                Ok(count) => count,
            },
        };
        if count == 0 {
            self.broken = true;
            buffer.fill(0);
        }
        let count = if count == 0 { wanted } else { count };
        self.sums.add(&buffer[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

/// The content of an extra file. An error of it, or an early end, ends the stream.
struct Whole {
    content: Box<dyn Read + Send>,
    left: u64,
    path: String,
}

/// Marks an error of an extra file.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {problem}")]
struct Ended {
    path: String,
    problem: String,
}

impl Whole {
    fn ended(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Ended>())
    }

    fn failed(&self, problem: String) -> io::Error {
        io::Error::other(Ended { path: self.path.clone(), problem })
    }
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.content.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.failed(error.to_string())),
            Ok(0) if self.left > 0 && !buffer.is_empty() => {
                Err(self.failed(format!("it ends {} bytes too early", self.left)))
            }
            Ok(count) => {
                self.left = self.left.saturating_sub(count as u64);
                Ok(count)
            }
        }
    }
}

struct FileReader<'a> {
    files: &'a dyn StoreFiles,
    index: usize,
    offset: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.files.read_at(self.index, buffer, self.offset);
        let count = read.map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}

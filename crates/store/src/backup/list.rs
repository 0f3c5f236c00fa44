//! The list of a backup: which files it has, under which names, and their checksums. docs/format/backup.md.
//!
//! It is the last file that is written: a backup without it, or whose list does not end as it must, is unfinished.

use std::fmt::Write;

/// Name of the list in a backup.
pub const BACKUP_LIST: &str = "backup.list";
/// Where the store's files stand in a data directory and in a backup.
pub const STORE_DIRECTORY: &str = "store";

const FIRST_LINE: &str = "tachograph backup 1";

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// Path in the data directory, with `/` between its parts.
    pub path: String,
    /// Path in the backup. Another one than `path` if a file of an earlier backup has that.
    pub stored: String,
    /// Length.
    pub bytes: u64,
    /// CRC-32C of all bytes.
    pub crc: u32,
}

/// What a finished backup says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupList {
    /// When it was begun, in microseconds since 1970.
    pub created_us: i64,
    /// How many backups were made into this directory before.
    pub generation: u64,
    /// Parts that were left out because they were damaged.
    pub left_out: Vec<String>,
    /// The files, the manifest last.
    pub files: Vec<BackupFile>,
}

impl BackupList {
    /// The file with this path in the data directory.
    pub fn find(&self, path: &str) -> Option<&BackupFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The list as text.
    pub fn encode(&self) -> String {
        let mut text = format!("{FIRST_LINE}\ncreated {}\ngeneration {}\n", self.created_us, self.generation);
        for path in &self.left_out {
            let _infallible = writeln!(text, "left-out {path}");
        }
        for BackupFile { path, stored, bytes, crc } in &self.files {
            let _infallible = writeln!(text, "file {bytes} {crc:08x} {}\t{}", path, stored);
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _infallible = writeln!(text, "end {crc:08x}");
        text
    }

    /// Reads a list; the error says what is wrong with it.
    pub fn decode(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n'));
        let (body, last) = body.ok_or("it is not finished")?;
        let body = &text[..body.len() + 1];
        let crc = last.strip_prefix("end ").and_then(|crc| u32::from_str_radix(crc, 16).ok());
        match crc {
            None => return Err("it is not finished".to_owned()),
            Some(crc) if crc != crc32c::crc32c(body.as_bytes()) => {
                return Err("its checksum does not match".to_owned());
            }
            Some(_) => {}
        }
        let mut lines = body.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(format!("it begins with {first:?}, which this program does not know"));
        }
        let mut list = Self::default();
        for line in lines {
            list.read_line(line).ok_or_else(|| format!("the line {line:?} is not understood"))?;
        }
        Ok(list)
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "created" => self.created_us = rest.parse().ok()?,
            "generation" => self.generation = rest.parse().ok()?,
            "left-out" => self.left_out.push(rest.to_owned()),
            "file" => {
                let (bytes, rest) = rest.split_once(' ')?;
                let (crc, names) = rest.split_once(' ')?;
                let (path, stored) = names.split_once('\t')?;
                let (bytes, crc) = (bytes.parse().ok()?, u32::from_str_radix(crc, 16).ok()?);
                let (path, stored) = (path.to_owned(), stored.to_owned());
                if !is_inside(&path) || !is_inside(&stored) {
                    return None;
                }
                self.files.push(BackupFile { path, stored, bytes, crc });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether a path of a backup stays in its directory and can be written into a list.
pub fn is_inside(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(plain) && !path.contains(['\\', '\n', '\t', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BackupList {
        let file = |path: &str, stored: &str| BackupFile {
            path: path.into(),
            stored: stored.into(),
            bytes: 7,
            crc: 0xff,
        };
        BackupList {
            created_us: -5,
            generation: 3,
            left_out: vec!["store/parts/a b".into()],
            files: vec![file("store/series", "store/series.3"), file("a b", "a b")],
        }
    }

    #[test]
    fn a_list_comes_back() {
        assert_eq!(BackupList::decode(&list().encode()), Ok(list()));
        assert_eq!(list().find("a b").map(|file| file.bytes), Some(7));
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_noticed() {
        let text = list().encode();
        for len in 0..text.len() {
            assert!(BackupList::decode(&text[..len]).is_err(), "{len}");
        }
        for position in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1;
            let flipped = String::from_utf8(bytes).unwrap_or_default();
            assert!(BackupList::decode(&flipped).is_err(), "{position}");
        }
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        for path in ["/etc/passwd", "../x", "a/../b", "a//b", "", "a/", "a\tb", "./a"] {
            assert!(!is_inside(path), "{path:?}");
            let mut list = list();
            list.files[0].path = path.into();
            assert!(BackupList::decode(&list.encode()).is_err(), "{path:?}");
        }
        assert!(is_inside("store/parts/0000.parquet.2"));
    }
}

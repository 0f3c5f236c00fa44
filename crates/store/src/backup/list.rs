//! The list of a backup: its files, their names and their checksums. docs/format/backup.md.
//!
//! The list is written last. A backup without a list, or with an incomplete list, is unfinished.

use std::collections::HashSet;
use std::fmt::Write;

use super::Digest;

/// The file name of the list in a backup.
pub const BACKUP_LIST: &str = "backup.list";
/// The directory of the files of the store, in a data directory and in a backup.
pub const STORE_DIRECTORY: &str = "store";

/// The first line of a list.
const FIRST_LINE: &str = "tachograph backup 2";
/// The first line of a list from before the first release.
const FIRST_LINE_1: &str = "tachograph backup 1";
/// The last commit that reads such a list.
const LAST_READING_COMMIT: &str = "ad6acc8b";

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// Path in the data directory, with `/` between the components.
    pub path: String,
    /// Path in the backup. It differs from `path` if an earlier backup has a file of that name.
    pub stored: String,
    /// Length in bytes.
    pub bytes: u64,
    /// CRC-32C of all bytes.
    pub crc: u32,
    /// SHA-256 of all bytes.
    pub sha256: Digest,
}

/// The content of the list of a finished backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupList {
    /// When the backup began, in microseconds since 1970.
    pub created_us: i64,
    /// The number of earlier backups in this directory.
    pub generation: u64,
    /// Parts that the backup leaves out because they were damaged.
    pub left_out: Vec<String>,
    /// The files, the manifest last.
    pub files: Vec<BackupFile>,
}

impl BackupList {
    /// The file with this path in the data directory.
    pub fn find(&self, path: &str) -> Option<&BackupFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The sum of the lengths of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The list as text.
    pub fn encode(&self) -> String {
        let mut text = format!("{FIRST_LINE}\ncreated {}\ngeneration {}\n", self.created_us, self.generation);
        for path in &self.left_out {
            let _infallible = writeln!(text, "left-out {path}");
        }
        for BackupFile { path, stored, bytes, crc, sha256 } in &self.files {
            let _infallible = writeln!(text, "file {bytes} {crc:08x} {sha256} {path}\t{stored}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _infallible = writeln!(text, "end {crc:08x}");
        text
    }

    /// Reads a list. The error describes what is wrong with it.
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
        match lines.next().unwrap_or_default() {
            FIRST_LINE => {}
            FIRST_LINE_1 => {
                return Err(format!(
                    "it has format version 1, this program knows version 2; restore it with a program built from commit \
                     {LAST_READING_COMMIT} (docs/format/README.md has the steps)"
                ));
            }
            first => return Err(format!("it begins with {first:?}, which this program does not know")),
        }
        let mut list = Self::default();
        for line in lines {
            list.read_line(line).ok_or_else(|| format!("the line {line:?} is not understood"))?;
        }
        list.check_names()?;
        Ok(list)
    }

    /// Refuses a list that names a file twice, or whose sum of lengths overflows.
    fn check_names(&self) -> Result<(), String> {
        let (mut paths, mut stored) = (HashSet::new(), HashSet::new());
        let mut bytes: u64 = 0;
        for file in &self.files {
            if !paths.insert(file.path.as_str()) || !stored.insert(file.stored.as_str()) {
                return Err(format!("it names {:?} twice", file.path));
            }
            bytes = bytes.checked_add(file.bytes).ok_or("its files have more bytes than can be counted")?;
        }
        Ok(())
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "created" => self.created_us = rest.parse().ok()?,
            "generation" => self.generation = rest.parse().ok()?,
            "left-out" => self.left_out.push(rest.to_owned()),
            "file" => {
                let (bytes, rest) = rest.split_once(' ')?;
                let (crc, rest) = rest.split_once(' ')?;
                let (sha256, names) = rest.split_once(' ')?;
                let (path, stored) = names.split_once('\t')?;
                let (bytes, crc) = (bytes.parse().ok()?, u32::from_str_radix(crc, 16).ok()?);
                let sha256 = sha256.parse().ok()?;
                if !is_inside(path) || !is_stored_name(path, stored) {
                    return None;
                }
                let (path, stored) = (path.to_owned(), stored.to_owned());
                self.files.push(BackupFile { path, stored, bytes, crc, sha256 });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether a path stays in the directory of the backup and can be written into a list.
pub fn is_inside(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(plain) && !path.contains(['\\', '\n', '\t', '\0'])
}

/// Whether a file may have this name in a backup: its path, or its path with a dot and the number of a backup.
fn is_stored_name(path: &str, stored: &str) -> bool {
    let Some(rest) = stored.strip_prefix(path) else { return false };
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix('.').is_some_and(number)
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
            sha256: Digest::of(path.as_bytes()),
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
        assert!(list().encode().starts_with(FIRST_LINE));
    }

    #[test]
    fn a_list_of_version_1_is_refused_with_the_commit_that_reads_it() {
        let body = format!("{FIRST_LINE_1}\ncreated 5\ngeneration 0\nfile 7 000000ff a\ta\n");
        let text = format!("{body}end {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let refused = BackupList::decode(&text).unwrap_err();
        assert!(refused.contains("version 1") && refused.contains(LAST_READING_COMMIT), "{refused}");
    }

    #[test]
    fn a_name_that_appears_twice_and_a_file_under_a_strange_name_are_refused() {
        let again = |change: &dyn Fn(&mut BackupFile)| {
            let mut list = list();
            let mut file = list.files[0].clone();
            change(&mut file);
            list.files.push(file);
            BackupList::decode(&list.encode())
        };
        assert!(again(&|_| {}).unwrap_err().contains("twice"));
        assert!(again(&|file| file.stored = "store/series.4".into()).unwrap_err().contains("twice"));
        for stored in ["registry", "store/series.", "store/series.x", "store/series/3", "backup.list"] {
            assert!(
                again(&|file| file.stored = stored.into()).unwrap_err().contains("understood"),
                "{stored}"
            );
        }
        let huge = |file: &mut BackupFile| {
            (file.path, file.stored, file.bytes) = ("x".into(), "x".into(), u64::MAX);
        };
        assert!(again(&huge).unwrap_err().contains("more bytes"));
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

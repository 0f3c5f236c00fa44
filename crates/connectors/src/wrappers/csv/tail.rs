//! A file that grows, is cut off, or is replaced.

use std::fs::{self, File, Metadata};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use super::file_position::{FilePosition, Head};
use crate::limits::{CSV_CHUNK_BYTES, CSV_HEAD_BYTES_MAX, CSV_LINE_BYTES_MAX};
use crate::wrappers::failure::Failure;

/// Reads complete lines of a file.
pub(super) struct FileTail {
    path: String,
    file: File,
    /// Where the next line begins.
    offset: u64,
    /// The first bytes of the file, as far as they were read.
    head: Vec<u8>,
    /// The length of a last line without an end, when it was seen. It is a line if the file has the same length at the next look.
    unended: Option<u64>,
}

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Complete lines; none at the end of the file. A line that is too long, or the last one, may lack its end.
    pub(super) lines: Vec<u8>,
    /// Whether they are the first ones of another file.
    pub(super) is_new_file: bool,
}

impl FileTail {
    /// Opens a file at a place; at its beginning if it is another file than that of the place.
    pub(super) fn open(path: &str, place: &FilePosition) -> Result<Self, Failure> {
        let fail = |error| Failure::while_(format_args!("cannot read {path}"), error);
        let file = open_file(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        let mut tail = Self { path: path.to_owned(), file, offset: 0, head: Vec::new(), unended: None };
        tail.read_head(place.head.bytes).map_err(fail)?;
        if metadata.len() >= place.offset && Head::of(&tail.head) == place.head {
            tail.offset = place.offset;
        } else {
            tail.head.clear();
        }
        Ok(tail)
    }

    /// Where the next line begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The first bytes of the file, of those before a place.
    pub(super) fn head_until(&self, offset: u64) -> Head {
        let bytes = usize::try_from(offset).unwrap_or(usize::MAX);
        Head::of(&self.head[..self.head.len().min(bytes)])
    }

    /// The next lines. At the end of the file, those of the file that has the name now.
    pub(super) fn next_lines(&mut self) -> Result<Chunk, Failure> {
        let is_new_file = self.is_rewritten()?;
        if is_new_file {
            self.begin_again();
        }
        let lines = self.lines()?;
        if !lines.is_empty() || is_new_file || self.unended.is_some() {
            return Ok(Chunk { lines, is_new_file });
        }
        let Some(file) = self.replacement()? else { return Ok(Chunk::default()) };
        // Before the other file got the name, more lines may have come to this one.
        let lines = self.lines()?;
        if !lines.is_empty() || self.unended.is_some() {
            return Ok(Chunk { lines, is_new_file: false });
        }
        self.file = file;
        self.begin_again();
        Ok(Chunk { lines: self.lines()?, is_new_file: true })
    }

    fn begin_again(&mut self) {
        (self.offset, self.unended) = (0, None);
        self.head.clear();
    }

    /// Whether the file is shorter than what was read of it, or begins with other bytes: it was cut off, and perhaps written again.
    fn is_rewritten(&mut self) -> Result<bool, Failure> {
        if self.metadata()?.len() < self.offset {
            return Ok(true);
        }
        let mut head = vec![0; self.head.len()];
        let read = self.read_at(0, &mut head).map_err(|error| self.fail(error))?;
        Ok(head[..read] != self.head)
    }

    fn metadata(&self) -> Result<Metadata, Failure> {
        self.file.metadata().map_err(|error| self.fail(error))
    }

    /// The file that has the name now, if it is another one.
    fn replacement(&self) -> Result<Option<File>, Failure> {
        let file = match open_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| self.fail(error))?,
        };
        let found = file.metadata().map_err(|error| self.fail(error))?;
        let own = self.metadata()?;
        Ok(((found.dev(), found.ino()) != (own.dev(), own.ino())).then_some(file))
    }

    fn lines(&mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; CSV_CHUNK_BYTES];
        let read = self.read_at(self.offset, &mut bytes).map_err(|error| self.fail(error))?;
        bytes.truncate(read);
        let is_end = read < CSV_CHUNK_BYTES;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let length = match complete {
            0 if read > CSV_LINE_BYTES_MAX => read,
            0 if is_end => self.unended_line(read as u64),
            complete => complete,
        };
        bytes.truncate(length);
        if length > 0 {
            self.unended = None;
            let missing = CSV_HEAD_BYTES_MAX.saturating_sub(self.head.len());
            if self.head.len() as u64 == self.offset {
                self.head.extend(bytes.iter().take(missing));
            }
            self.offset += length as u64;
        }
        Ok(bytes)
    }

    /// A last line without an end is a line if nothing follows it until the next look. An empty one is not a line.
    fn unended_line(&mut self, length: u64) -> usize {
        match std::mem::replace(&mut self.unended, (length > 0).then_some(length)) {
            Some(before) if before == length => usize::try_from(length).unwrap_or(0),
            _ => 0,
        }
    }

    fn read_head(&mut self, bytes: usize) -> std::io::Result<()> {
        let mut head = vec![0; bytes.min(CSV_HEAD_BYTES_MAX)];
        let read = self.read_at(0, &mut head)?;
        head.truncate(read);
        self.head = head;
        Ok(())
    }

    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn fail(&self, error: std::io::Error) -> Failure {
        Failure::while_(format_args!("cannot read {}", self.path), error)
    }
}

/// Opens a file, and nothing else: the opening of a named pipe waits for its writer.
fn open_file(path: &str) -> Result<File, Error> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a file"));
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    struct TestFile {
        _folder: tempfile::TempDir,
        path: String,
    }

    fn file(text: &str) -> TestFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, text).unwrap();
        TestFile { path: path.to_str().unwrap().to_owned(), _folder: folder }
    }

    fn append(path: &str, text: &str) {
        fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn next(tail: &mut FileTail) -> (String, bool) {
        let chunk = tail.next_lines().unwrap();
        (String::from_utf8(chunk.lines).unwrap(), chunk.is_new_file)
    }

    #[test]
    fn complete_lines_are_read_as_they_come() {
        let place = file("1\n2\n3");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        assert_eq!(next(&mut tail), ("1\n2\n".into(), false));
        assert_eq!(next(&mut tail), (String::new(), false), "the line may continue");
        append(&place.path, "4\n5");
        assert_eq!(next(&mut tail), ("34\n".into(), false));
        assert_eq!(next(&mut tail).0, "");
        assert_eq!(next(&mut tail), ("5".into(), false), "nothing followed");
        assert_eq!(tail.offset(), 8);
    }

    #[test]
    fn another_file_of_the_name_is_read_after_the_rest_of_the_first() {
        let place = file("1\n");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        next(&mut tail);
        append(&place.path, "2\n");
        fs::rename(&place.path, format!("{}.1", place.path)).unwrap();
        assert_eq!(next(&mut tail), ("2\n".into(), false));
        assert_eq!(next(&mut tail), (String::new(), false), "there is none yet");
        fs::write(&place.path, "3\n").unwrap();
        assert_eq!(next(&mut tail), ("3\n".into(), true));
        fs::write(&place.path, "").unwrap();
        assert_eq!(next(&mut tail), (String::new(), true), "cut off");
    }

    #[test]
    fn a_last_line_without_an_end_is_read_before_the_file_that_replaced_it() {
        let place = file("1\n");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        next(&mut tail);
        append(&place.path, "2");
        let old = format!("{}.1", place.path);
        fs::rename(&place.path, &old).unwrap();
        fs::write(&place.path, "3\n").unwrap();
        assert_eq!(next(&mut tail), (String::new(), false), "the line may continue");
        append(&old, "2");
        assert_eq!(next(&mut tail), (String::new(), false), "it continued");
        assert_eq!(next(&mut tail), ("22".into(), false), "nothing followed");
        assert_eq!(next(&mut tail), ("3\n".into(), true));
        append(&place.path, "4");
        assert_eq!(next(&mut tail).0, "");
        fs::OpenOptions::new().write(true).open(&place.path).unwrap().set_len(2).unwrap();
        fs::rename(&place.path, &old).unwrap();
        fs::write(&place.path, "5\n").unwrap();
        assert_eq!(next(&mut tail), ("5\n".into(), true), "the line was taken back");
    }

    #[test]
    fn a_file_that_was_cut_off_and_is_longer_again_is_read_from_its_beginning() {
        let place = file("1\n2\n");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        next(&mut tail);
        fs::write(&place.path, "3\n4\n5\n").unwrap();
        assert_eq!(next(&mut tail), ("3\n4\n5\n".into(), true));
        assert_eq!(next(&mut tail), (String::new(), false));
        append(&place.path, "6\n");
        assert_eq!(next(&mut tail), ("6\n".into(), false));
    }

    #[test]
    fn what_is_not_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [folder.path(), pipe.as_path()] {
            let path = path.to_str().unwrap();
            let failed = FileTail::open(path, &FilePosition::beginning(path)).err().unwrap();
            assert_eq!(failed.to_string(), format!("cannot read {path}: it is not a file"));
        }
        let place = file("1\n");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        next(&mut tail);
        fs::remove_file(&place.path).unwrap();
        mknodat(CWD, place.path.as_str(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(tail.next_lines().unwrap_err().to_string().contains("it is not a file"));
    }

    #[test]
    fn a_file_is_known_again_by_its_beginning() {
        let place = file("1\n2\n3\n");
        let mut tail = FileTail::open(&place.path, &FilePosition::beginning(&place.path)).unwrap();
        next(&mut tail);
        let mut read = FilePosition::beginning(&place.path);
        (read.offset, read.head) = (4, tail.head_until(4));
        let mut again = FileTail::open(&place.path, &read).unwrap();
        assert_eq!(next(&mut again), ("3\n".into(), false));
        fs::write(&place.path, "4\n5\n6\n").unwrap();
        assert_eq!(FileTail::open(&place.path, &read).unwrap().offset(), 0);
        fs::write(&place.path, "1\n").unwrap();
        assert_eq!(FileTail::open(&place.path, &read).unwrap().offset(), 0);
        assert!(
            FileTail::open("/nonexistent/a.csv", &read)
                .err()
                .unwrap()
                .to_string()
                .contains("/nonexistent/a.csv")
        );
    }
}

//! Cuts received bytes into lines.

/// Cuts received bytes into lines of a limited length, wherever the bytes were cut on their way.
///
/// The caller keeps the bytes: each call of [`next`](Self::next) gets those that follow the last [`Cut`].
#[derive(Debug, Clone)]
pub struct LineCutter {
    line_bytes_max: usize,
    /// Bytes of the next line that have no line end.
    searched: usize,
    /// The bytes up to the next line end belong to a line that is too long.
    skips: bool,
}

/// What received bytes begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// A whole line: its length in bytes, including its end.
    Line(usize),
    /// The beginning of a line that is too long: its length in bytes. Each such line is reported once.
    TooLong(usize),
    /// More of a line that is too long: the length in bytes.
    Rest(usize),
    /// The beginning of a line, or nothing.
    Incomplete,
}

impl LineCutter {
    /// Creates a cutter that takes lines of at most `line_bytes_max` bytes, without their ends.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, searched: 0, skips: false }
    }

    /// Cuts off what the bytes begin with.
    pub fn next(&mut self, bytes: &[u8]) -> Cut {
        if self.skips {
            return self.skip(bytes);
        }
        let unsearched = bytes.get(self.searched..).unwrap_or_default();
        let end = memchr::memchr(b'\n', unsearched).map(|at| self.searched + at);
        self.searched = 0;
        match end {
            Some(end) if end > self.line_bytes_max => Cut::TooLong(end + 1),
            Some(end) => Cut::Line(end + 1),
            None if bytes.len() > self.line_bytes_max => {
                self.skips = true;
                Cut::TooLong(bytes.len())
            }
            None => {
                self.searched = bytes.len();
                Cut::Incomplete
            }
        }
    }

    fn skip(&mut self, bytes: &[u8]) -> Cut {
        match memchr::memchr(b'\n', bytes) {
            Some(end) => {
                self.skips = false;
                Cut::Rest(end + 1)
            }
            None if bytes.is_empty() => Cut::Incomplete,
            None => Cut::Rest(bytes.len()),
        }
    }
}

/// A line without its end, which is a line feed or a carriage return and a line feed.
#[must_use]
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

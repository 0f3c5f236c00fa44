//! Writes CSV lines (RFC 4180), for answers of queries and for exports.

/// A dialect of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    line_end: &'static [u8],
    null: Null,
}

/// How a cell without a value differs from empty text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// It does not. A line with one empty cell is `""`, so it differs from a line without cells.
    SameAsEmpty,
    /// Empty text is quoted, and so is text with blanks at an end, which some readers cut.
    Distinct,
}

impl Dialect {
    /// Answers of queries: CR LF at line ends.
    pub const ANSWER: Self = Self { line_end: b"\r\n", null: Null::SameAsEmpty };
    /// Exports: LF at line ends; null and empty text differ.
    pub const EXPORT: Self = Self { line_end: b"\n", null: Null::Distinct };
}

/// Lines of cells.
#[derive(Debug)]
pub struct CsvLines {
    dialect: Dialect,
    out: Vec<u8>,
    /// Where the open line begins.
    line: usize,
    /// Cells of the open line.
    cells: usize,
}

impl CsvLines {
    /// No lines.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, out: Vec::new(), line: 0, cells: 0 }
    }

    /// Begins a cell. It has no value unless the caller writes one.
    #[inline]
    pub fn begin_cell(&mut self) {
        if self.cells > 0 {
            self.out.push(b',');
        }
        self.cells += 1;
    }

    /// The output, for a value that needs no quotes.
    #[inline]
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Writes text into the open cell, with quotes if it needs them.
    pub fn text(&mut self, text: &[u8]) {
        if !self.needs_quotes(text) {
            return self.out.extend_from_slice(text);
        }
        self.out.push(b'"');
        for run in text.split_inclusive(|byte| *byte == b'"') {
            self.out.extend_from_slice(run);
            if run.ends_with(b"\"") {
                self.out.push(b'"');
            }
        }
        self.out.push(b'"');
    }

    /// Begins a cell and writes text into it.
    pub fn text_cell(&mut self, text: &[u8]) {
        self.begin_cell();
        self.text(text);
    }

    pub fn end_line(&mut self) {
        if self.dialect.null == Null::SameAsEmpty && self.cells == 1 && self.out.len() == self.line {
            self.out.extend_from_slice(b"\"\"");
        }
        self.out.extend_from_slice(self.dialect.line_end);
        self.line = self.out.len();
        self.cells = 0;
    }

    /// Takes the finished lines.
    pub fn take(&mut self) -> Vec<u8> {
        self.line = 0;
        std::mem::take(&mut self.out)
    }

    /// The finished lines.
    pub fn lines(&self) -> &[u8] {
        &self.out
    }

    /// Drops the finished lines and keeps their allocation.
    pub fn clear(&mut self) {
        self.line = 0;
        self.out.clear();
    }

    fn needs_quotes(&self, text: &[u8]) -> bool {
        text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'))
            || (self.dialect.null == Null::Distinct && (text.is_empty() || has_blank_end(text)))
    }
}

/// Whether the text begins or ends with white space.
fn has_blank_end(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.trim() != text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(dialect: Dialect, cells: &[&str]) -> String {
        let mut lines = CsvLines::new(dialect);
        cells.iter().for_each(|cell| lines.text_cell(cell.as_bytes()));
        lines.end_line();
        String::from_utf8(lines.take()).unwrap()
    }

    #[test]
    fn text_that_could_be_misread_is_quoted() {
        let quoted = |text: &str| line(Dialect::EXPORT, &[text]);
        assert_eq!(quoted("plain"), "plain\n");
        assert_eq!(quoted(""), "\"\"\n");
        assert_eq!(quoted("a,b"), "\"a,b\"\n");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"\n");
        assert_eq!(quoted(" x"), "\" x\"\n");
    }

    #[test]
    fn answers_quote_only_delimiters_and_line_ends() {
        assert_eq!(line(Dialect::ANSWER, &["", " x", "a,b"]), ", x,\"a,b\"\r\n");
        assert_eq!(line(Dialect::ANSWER, &[""]), "\"\"\r\n", "a line with one empty cell");
        assert_eq!(line(Dialect::ANSWER, &[]), "\r\n");
    }
}

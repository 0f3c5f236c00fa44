//! The findings of checks.

use std::fmt;

/// A problem: its place, a description, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Repository path of the file.
    pub(crate) file: String,
    /// Line in the file, from 1; 0 means the whole file.
    pub(crate) line: usize,
    /// The description of the problem.
    pub(crate) problem: String,
    pub(crate) remedy: String,
}

impl Finding {
    /// A finding about one line, or about the whole file with line 0.
    pub(crate) fn new(
        file: &str,
        line: usize,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { file: file.to_owned(), line, problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}", self.file)?,
            line => write!(formatter, "{}:{line}", self.file)?,
        }
        write!(formatter, ": {}\n    remedy: {}", self.problem, self.remedy)
    }
}

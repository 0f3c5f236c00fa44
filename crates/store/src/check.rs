//! What a check of a store's files found, in words for the operator.

use std::ops::ControlFlow;
use std::path::PathBuf;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is lost and nothing needs to be done.
    Note,
    /// The disk does not hold what the store promised to keep, or not in the way it must.
    Damage,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub path: PathBuf,
    /// Where in the file, if it is at one place.
    pub offset: Option<u64>,
    /// What is wrong there.
    pub what: String,
    /// What that means: which table, times and rows, and whether anything acknowledged is lost.
    pub means: String,
    /// What to do.
    pub action: String,
    /// Name of the table whose rows are affected, if it is one.
    pub table: Option<String>,
    /// Most rows that are affected, if that is known.
    pub rows: Option<u64>,
}

impl Finding {
    /// Damage to a file.
    pub fn damage(path: impl Into<PathBuf>, offset: Option<u64>, what: impl Into<String>) -> Self {
        Self::new(Severity::Damage, path.into(), offset, what.into())
    }

    /// Something that needs nobody to act.
    pub fn note(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::new(Severity::Note, path.into(), None, what.into())
    }

    fn new(severity: Severity, path: PathBuf, offset: Option<u64>, what: String) -> Self {
        let (means, action) = (String::new(), String::new());
        Self { severity, path, offset, what, means, action, table: None, rows: None }
    }

    /// Says what it means and what to do.
    #[must_use]
    pub fn with(mut self, means: impl Into<String>, action: impl Into<String>) -> Self {
        self.means = means.into();
        self.action = action.into();
        self
    }

    /// Says whose rows are affected, and how many at most.
    #[must_use]
    pub fn of(mut self, table: Option<&str>, rows: Option<u64>) -> Self {
        self.table = table.map(str::to_owned);
        self.rows = rows;
        self
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is not as it should be, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Bytes that were read and compared with their checksums.
    pub bytes: u64,
    /// Tables defined.
    pub tables: u64,
    /// Series defined.
    pub series: u64,
    /// Parts read.
    pub parts: u64,
    /// Rows in parts, decoded one by one.
    pub part_rows: u64,
    /// Log segments read.
    pub log_segments: u64,
    /// Rows in the log that no part holds.
    pub log_rows: u64,
    /// Whether somebody ended the check early: then what was not read may be damaged.
    pub interrupted: bool,
}

impl CheckReport {
    /// Whether anything is damaged.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Damage)
    }
}

/// Told how many bytes of how many are done; `Break` ends the work.
pub type ByteProgress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

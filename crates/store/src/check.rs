//! The report of a check of the files of a store, with texts for the operator.

use std::ops::ControlFlow;
use std::path::PathBuf;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing. Nothing is lost, and nobody needs to act.
    Note,
    /// The disk does not have the content that the store promised to keep.
    Damage,
}

/// One deviation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub path: PathBuf,
    /// The position in the file; `None` if it is not one position.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// The consequences: the table, the times and the rows, and whether acknowledged rows are lost.
    pub means: String,
    /// The remedy.
    pub action: String,
    /// The table whose rows are affected; `None` if it is not one table.
    pub table: Option<String>,
    /// The largest number of rows that may be affected, if it is known.
    pub rows: Option<u64>,
}

impl Finding {
    /// Damage to a file.
    pub fn damage(path: impl Into<PathBuf>, offset: Option<u64>, what: impl Into<String>) -> Self {
        Self::new(Severity::Damage, path.into(), offset, what.into())
    }

    /// A fact on which nobody needs to act.
    pub fn note(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::new(Severity::Note, path.into(), None, what.into())
    }

    fn new(severity: Severity, path: PathBuf, offset: Option<u64>, what: String) -> Self {
        let (means, action) = (String::new(), String::new());
        Self { severity, path, offset, what, means, action, table: None, rows: None }
    }

    /// Adds the consequences and the remedy.
    #[must_use]
    pub fn with(mut self, means: impl Into<String>, action: impl Into<String>) -> Self {
        self.means = means.into();
        self.action = action.into();
        self
    }

    /// Adds the affected table and the largest number of affected rows.
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
    /// The findings, in the order in which the check made them.
    pub findings: Vec<Finding>,
    /// Number of bytes that were read and compared with their checksums.
    pub bytes: u64,
    /// Number of tables.
    pub tables: u64,
    /// Number of series.
    pub series: u64,
    /// Number of parts that were read.
    pub parts: u64,
    /// Number of rows in parts. The check decodes each of them.
    pub part_rows: u64,
    /// Number of log segments that were read.
    pub log_segments: u64,
    /// Number of rows in the log that no part has.
    pub log_rows: u64,
    /// Whether the caller ended the check early. Files that were not read may be damaged.
    pub interrupted: bool,
}

impl CheckReport {
    /// Whether there is a finding of damage.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Damage)
    }
}

/// Takes the number of bytes that are done and the number of all bytes. `Break` ends the work.
pub type ByteProgress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

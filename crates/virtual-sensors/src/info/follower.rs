//! What followers report, and what callers see of them.

/// The data that a follower reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FollowerReport {
    /// Whether the target takes rows.
    pub is_connected: bool,
    /// Attempts that failed, since the follower began.
    pub failures: u64,
    /// Rows that the target has refused for good, those that came again included.
    pub refused: u64,
    /// Why the last attempt failed, or the target refused the last row. It stays until another one fails or is refused.
    pub last_error: Option<String>,
}

/// The description of a follower for callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FollowerInfo {
    pub name: String,
    /// Where the rows go, in words.
    pub target: String,
    /// What it has reported.
    pub report: FollowerReport,
    /// Rows that it has delivered since the server began, those that came again included.
    pub rows: u64,
    /// About how many rows it has still to deliver.
    pub rows_behind: u64,
}

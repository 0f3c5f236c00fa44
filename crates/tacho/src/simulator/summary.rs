//! What a simulated fleet has done.

use wire::mqtt::ReasonCode;

/// Counts of reports and connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Reports sent, repeated ones not counted.
    pub sent: u64,
    /// Reports acknowledged as taken.
    pub acked: u64,
    /// Reports refused by the server.
    pub refused: u64,
    /// Reports not made because too many were unacknowledged.
    pub skipped: u64,
    /// Connections lost or refused.
    pub lost: u64,
}

impl Summary {
    /// Counts the last answer to a report.
    pub(super) fn answered(&mut self, reason: ReasonCode) {
        *(if reason.is_error() { &mut self.refused } else { &mut self.acked }) += 1;
    }
}

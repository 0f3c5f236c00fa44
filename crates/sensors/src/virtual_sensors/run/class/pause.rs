//! Runs of a script that are left out after it was stopped at a limit, so that one sensor does not take the time of the others.

use crate::virtual_sensors::limits::SCRIPT_PAUSE_RUNS_MAX;

/// The pause of a script. It counts runs and reads no clock, so it is the same when rows are evaluated again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::virtual_sensors::run) struct Pause {
    /// Runs that were stopped in succession.
    pub(in crate::virtual_sensors::run) stops: u32,
    /// Runs that are still left out.
    pub(in crate::virtual_sensors::run) runs: u32,
}

impl Pause {
    /// Whether the next run is left out.
    pub(super) fn leaves_out(&mut self) -> bool {
        let is_paused = self.runs > 0;
        self.runs = self.runs.saturating_sub(1);
        is_paused
    }

    /// A run was stopped: the first time none is left out, then 1, 3, 7 and so on. Writes a line for people.
    pub(super) fn after_stop(&mut self) -> String {
        let runs = 1_u32.checked_shl(self.stops).unwrap_or(u32::MAX) - 1;
        self.runs = runs.min(SCRIPT_PAUSE_RUNS_MAX);
        self.stops = self.stops.saturating_add(1);
        match self.runs {
            0 => String::new(),
            runs => {
                format!("; it was stopped {} times in succession, and {runs} runs are left out", self.stops)
            }
        }
    }
}

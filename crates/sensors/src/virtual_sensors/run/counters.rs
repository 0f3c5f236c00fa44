//! What a sensor has done so far.

/// Counts since the sensor was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Elements that came.
    pub elements: u64,
    /// Elements that came after the event time had passed them, and were left out.
    pub late: u64,
    /// Elements that left the reorder buffer early because it was full.
    pub released_early: u64,
    /// Elements that left a window early because it was full.
    pub overflowed: u64,
    /// Slides in time that were left out because the clock had jumped too far.
    pub slides_skipped: u64,
    /// Executions of the queries of streams.
    pub executions: u64,
    /// Executions that `rate` or `count` of a stream has refused.
    pub executions_refused: u64,
    /// Rows of the output.
    pub rows: u64,
    /// Rows that the rate of the output has refused.
    pub rows_over_rate: u64,
    /// Rows of a time that the output has had.
    pub rows_of_known_time: u64,
    /// Rows that the class has left out because a value was missing.
    pub rows_with_nulls: u64,
    /// Sentences of NMEA 0183 that cannot be read, or whose checksum is wrong.
    pub sentences_refused: u64,
    /// Rows whose sentences say no position.
    pub rows_without_position: u64,
    /// Runs of a script that were stopped at a limit. They are faults, too.
    pub scripts_stopped: u64,
    /// Runs of a script that were left out because earlier ones were stopped at a limit.
    pub script_runs_left_out: u64,
    /// Elements, executions and rows that could not be computed.
    pub faults: u64,
    /// The newest fault.
    pub last_fault: Option<String>,
}

impl Counters {
    pub(super) fn fault(&mut self, reason: String) {
        self.faults += 1;
        self.last_fault = Some(reason);
    }
}

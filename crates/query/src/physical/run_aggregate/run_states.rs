//! The interface to the states of one aggregate.

use arrow_array::{ArrayRef, BooleanArray};
use datafusion::common::Result;

use super::boundaries::BatchRuns;

/// The states of one aggregate for each run.
pub(super) trait RunStates: Send {
    /// Adds the rows of a batch to the states of its runs.
    fn add(&mut self, arguments: &[ArrayRef], filter: Option<&BooleanArray>, runs: &BatchRuns) -> Result<()>;

    /// Returns the states of all runs so far and forgets them.
    fn take(&mut self) -> Result<Vec<ArrayRef>>;

    /// The memory of the states in bytes.
    fn size(&self) -> usize;
}

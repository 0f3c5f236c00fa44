//! What reading a CSV file counts.

use super::cell::is_rounded;
use super::time::TimeCounts;

/// Counts about cells that are skipped or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CsvCounts {
    /// Counts about the times.
    pub times: TimeCounts,
    /// Cells such as NaN in columns of numbers.
    pub not_finite: u64,
    /// Cells with text in columns without a name.
    pub unnamed: u64,
    /// Cells with text beyond the last column.
    pub beyond: u64,
    /// Numbers with more digits than a floating-point number keeps.
    pub rounded: u64,
    /// Columns of text whose cells are mostly numbers: the name, the first cell that is not a number, and its line.
    pub texts: Vec<(String, String, u64)>,
}

impl CsvCounts {
    /// Cells with text that are not imported.
    pub(super) fn skipped_cells(&self) -> u64 {
        self.not_finite + self.unnamed + self.beyond
    }

    /// Counts a cell of a column of floating-point numbers, and the number that was read from it.
    pub(super) fn float(&mut self, text: Option<&str>, value: Option<f64>) {
        match (text, value) {
            (Some(text), Some(value)) => self.rounded += u64::from(is_rounded(text, value)),
            (Some(_), None) => self.not_finite += 1,
            (None, _) => {}
        }
    }
}

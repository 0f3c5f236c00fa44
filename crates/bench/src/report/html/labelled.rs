//! The inputs of a page, each with the label that the page shows.

use crate::result::Bundle;

/// A bundle and the name it has on the page.
#[derive(Debug, Clone)]
pub struct LabelledBundle {
    /// Short name: of the directory, or what the reader chose.
    pub label: String,
    /// Runs of one side are of one thing: a verdict compares sides.
    pub side: usize,
    /// The bundle.
    pub bundle: Bundle,
}

/// The answer of a series of runs, from `ab.json` or `capacity.json`.
#[derive(Debug, Clone)]
pub struct SeriesAnswer {
    /// Short name: of the directory, or what the reader chose.
    pub label: String,
    /// What is in the file.
    pub answer: serde_json::Value,
}

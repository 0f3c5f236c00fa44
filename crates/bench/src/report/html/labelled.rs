//! The inputs of a page, each with the label that the page shows.

use load::result::Bundle;

/// A bundle with its label on the page.
#[derive(Debug, Clone)]
pub struct LabelledBundle {
    /// A short label: the name of the directory, or the reader's choice.
    pub label: String,
    /// The index of the side. Runs of one side have the same setting; a verdict compares sides.
    pub side: usize,
    pub bundle: Bundle,
}

/// The answer of a series of runs, from `ab.json` or `capacity.json`.
#[derive(Debug, Clone)]
pub struct SeriesAnswer {
    /// A short label: the name of the directory, or the reader's choice.
    pub label: String,
    /// The content of the file.
    pub answer: serde_json::Value,
}

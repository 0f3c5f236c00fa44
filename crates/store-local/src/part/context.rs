//! The writer of a part asks the store for definitions through [`WriteContext`].

use std::sync::Arc;

/// The store around a part that is being written.
pub(crate) trait WriteContext {
    /// Visits number and value of each tag of each series, in order; after each series `None`.
    fn tags(&self, series: &[u32], visit: &mut TagVisitor<'_>);
    /// The names of a table, its first key and its tags.
    fn table(&self, table: u32) -> TableNames;
    /// Whether the writer should continue. It asks between two row groups.
    fn should_continue(&self) -> bool;
}

/// Takes the number and the value of a tag, or `None` at the end of a series.
pub(crate) type TagVisitor<'a> = dyn FnMut(Option<(u32, &str)>) + 'a;

/// The names that a narrow part shows of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableNames {
    pub(crate) name: Arc<str>,
    /// The key with number 0.
    pub(crate) field: Arc<str>,
    /// By tag number.
    pub(crate) tags: Vec<Arc<str>>,
}

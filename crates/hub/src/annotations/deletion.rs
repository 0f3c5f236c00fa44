//! The data to delete.

/// Annotations to delete: those that begin in a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationDeletion {
    /// The series.
    pub tsuids: Vec<String>,
    /// Whether notes about all series are deleted too.
    pub global: bool,
}

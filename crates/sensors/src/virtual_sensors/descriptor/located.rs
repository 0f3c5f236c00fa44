//! Values with their places.

use crate::virtual_sensors::fault::TextPosition;

/// A value and where it is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    pub value: T,
    /// Where its text begins.
    pub place: TextPosition,
}

impl<T> Located<T> {
    pub(crate) fn new(value: T, place: TextPosition) -> Self {
        Self { value, place }
    }
}

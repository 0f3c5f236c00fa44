//! Values with their places.

use crate::virtual_sensors::fault::Place;

/// A value and where it is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<T> {
    pub value: T,
    /// Where its text begins.
    pub place: Place,
}

impl<T> Said<T> {
    pub(crate) fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

//! A message that the server refuses and keeps as a dead letter.

use super::super::acks::Refusal;

/// A message that cannot be taken as what its topic promises.
pub(super) struct Unfit {
    pub(super) refusal: Refusal,
    /// For metrics.
    pub(super) label: &'static str,
}

//! A message that the server refuses and keeps as a dead letter.

use super::super::acks::Refusal;

/// A message that cannot be taken as what its topic promises.
pub(super) struct Unfit {
    pub(super) refusal: Refusal,
    /// For metrics.
    pub(super) label: &'static str,
    /// The refused part of its payload; all of it when it is `None`.
    pub(super) payload: Option<Vec<u8>>,
}

//! Slots: the columns that parts and chunks have for the keys of a table.

use std::sync::Arc;

use model::FieldType;

use crate::row::KeyId;

/// The column of one key and one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) key: KeyId,
    pub(crate) field_type: FieldType,
    /// The name of the column in parts.
    pub(crate) physical: Arc<str>,
}

//! The audit table: one row for each administrative act of a caller.
//!
//! A row has the tag `login` and the keys `role`, `act` and `subject`, and `entity_type` and `entity_id` if the act is about one entity. The hub appends it after the act (before a backup, which
//! then holds it) and answers when the row is durable. Commands that open the data directory themselves, and logins, leave
//! no row.

pub use crate::registry::AUDIT_TABLE;

/// The tag of its rows.
pub(crate) const AUDIT_TAG: &str = "login";

/// The keys of its rows.
pub(crate) const AUDIT_KEYS: [&str; 5] = ["role", "act", "subject", "entity_type", "entity_id"];

//! The tables of a tenant that the server itself writes. No profile may have them.

/// The table of administrative acts.
pub const AUDIT_TABLE: &str = "audit";

/// The table of refused payloads.
pub const DEAD_LETTER_TABLE: &str = "dead_letter";

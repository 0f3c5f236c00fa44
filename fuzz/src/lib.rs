//! What several targets share.

pub mod edits;
pub mod kept;

//! The common part of several targets.

pub mod edits;
pub mod kept;

//! The installation: audit, checks and backups, and the key-value engine.

mod audit;
pub mod audit_log;
mod key_values;
pub mod maintenance;

//! Directories of results.

use std::path::PathBuf;

use crate::machine::utc_now;

/// `bench-runs/<UTC>-<scenario>`, relative to the working directory.
pub fn default_directory(scenario: &str) -> PathBuf {
    PathBuf::from("bench-runs").join(format!("{}-{scenario}", utc_now().replace(':', "")))
}

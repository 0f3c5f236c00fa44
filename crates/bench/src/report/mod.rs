//! Directories of results, and the HTML report.

mod bundle;
pub mod html;

pub use bundle::{default_directory, refuse_used};

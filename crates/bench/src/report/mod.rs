//! Where results go, and the page that shows them.

mod bundle;
pub mod html;

pub use bundle::{default_directory, refuse_used};

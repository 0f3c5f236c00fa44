//! The capacity of each layer of a stack, and which one is the narrowest.
//!
//! `file.rs` reads the file with the layers, `run.rs` measures each, `narrowest.rs` compares them, `report.rs` prints the
//! result. `docs/tune/chain.md` describes the file.

mod bottleneck;
mod file;
mod report;
mod run;

pub use bottleneck::{Bottleneck, Range, narrowest};
pub use file::{Chain, ChainError, Layer, Source};
pub use report::{ChainReport, LayerReport, Measured};
pub use run::run;

/// The name of the file with the result.
pub const FILE: &str = "chain.json";

//! Rules as data: the files in `rules/`, one for each product.

mod builtin;
mod error;
mod raw;
mod read;
mod rule;

pub use builtin::{FACTS, FILES};
pub use error::RuleError;
pub(crate) use rule::CURRENT;
pub use rule::{Effect, Level, Parameter, Product, Ranges, Restart, Risk, RiskKind, Rule};

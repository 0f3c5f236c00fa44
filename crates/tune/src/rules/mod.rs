//! Rules as data: the files in `rules/`, one for each product.

mod builtin;
mod change;
mod error;
mod raw;
mod read;
mod read_change;
mod rule;
mod setter;

pub use builtin::{FACTS, FILES};
pub use change::Change;
pub(crate) use change::Values;
pub use error::RuleError;
pub(crate) use rule::CURRENT;
pub use rule::{Effect, Level, Parameter, Product, Ranges, Restart, Risk, RiskKind, Rule};
pub use setter::Manual;
pub(crate) use setter::Setting;

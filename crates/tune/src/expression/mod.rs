//! The language of conditions and formulas in rules. `docs/tune/rules.md` describes it.
//!
//! The language is our own. `docs/adr/0015-rule-language.md` compares it with the libraries.

mod check;
mod compiled;
mod error;
mod evaluate;
mod parse;
mod syntax;
mod token;

#[cfg(test)]
mod tests;

pub use check::Declarations;
pub use compiled::Expression;
pub use error::ExpressionError;
pub use evaluate::{Increase, Scope};

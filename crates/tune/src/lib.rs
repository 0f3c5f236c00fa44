//! Tuning advice.
//!
//! A probe reads the version, settings and counters of a target into an [`Observation`]. [`advise`] applies the rules of the
//! [`Product`] and returns findings, the largest expected effect first. Rules are data: a file for each product in `rules/`.
//! `docs/tune/README.md` describes the command, `docs/tune/rules.md` the files.

mod advise;
pub mod chain;
pub mod change;
mod endpoint;
mod expression;
mod finding;
mod limits;
mod observation;
pub mod probe;
pub mod prove;
mod report;
mod rules;
mod statement;
mod target;
mod unit;
mod value;
mod version;

pub use advise::advise;
pub use endpoint::{Endpoint, EndpointError};
pub use expression::{Declarations, Expression, ExpressionError, Increase, Scope};
pub use finding::{Advice, Evidence, Finding, Undecided};
pub use observation::{Group, Hidden, Observation};
pub use report::Report;
pub use rules::{
    Change, Effect, FACTS, FILES, Level, Manual, Parameter, Product, Ranges, Restart, Risk, RiskKind, Rule,
    RuleError,
};
pub use statement::Statement;
pub use target::{HostRole, Server, Target, TargetError};
pub use unit::Unit;
pub use value::{Value, ValueKind};
pub use version::{RangeError, Version, VersionRange};

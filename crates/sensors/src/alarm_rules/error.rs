//! The error of rules that cannot be read.

use std::fmt;

/// Rules that cannot be read, or that break a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RuleError {
    /// The place in the JSON of `profileData`, such as `alarms[0].createRules.CRITICAL.condition`.
    pub path: String,
    /// The fault, and the rule.
    pub reason: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profileData.{}: {}", self.path, self.reason)
    }
}

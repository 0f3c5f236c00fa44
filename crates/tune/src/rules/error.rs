//! Errors in rule files.

use std::fmt;

/// An error in a rule file: where it is, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RuleError {
    /// The product, parameter or rule.
    pub subject: String,
    pub reason: String,
}

impl RuleError {
    pub(super) fn new(subject: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self { subject: subject.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

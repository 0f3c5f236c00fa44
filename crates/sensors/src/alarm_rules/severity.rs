//! The severity of an alarm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The severity of an alarm in ThingsBoard's words. The most severe comes first in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Someone must act now.
    Critical,
    /// Someone must act soon.
    Major,
    /// A fault without urgency.
    Minor,
    /// A fault may come.
    Warning,
    /// Of unknown weight.
    Indeterminate,
}

impl Severity {
    /// All severities, the most severe first.
    pub const ALL: [Self; 5] = [Self::Critical, Self::Major, Self::Minor, Self::Warning, Self::Indeterminate];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "CRITICAL",
            Self::Major => "MAJOR",
            Self::Minor => "MINOR",
            Self::Warning => "WARNING",
            Self::Indeterminate => "INDETERMINATE",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Severity {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|severity| severity.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("the severity is {name:?}; it must be one of {names}")
        })
    }
}

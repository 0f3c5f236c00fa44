//! Whether a result may be quoted. Every output asks here, so none can leave out that a run is invalid or partial.

use super::RunResult;

/// What every output says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// Why the figures must not be quoted; empty for a valid run.
    pub invalid: Vec<String>,
    /// Why the run is not whole, if it is not.
    pub partial: Option<String>,
    /// Whether any gate or check looked at the run. A result of another tool has none.
    pub checked: bool,
}

impl Validity {
    /// Whether the figures may be quoted.
    pub fn is_quotable(&self) -> bool {
        self.invalid.is_empty() && self.partial.is_none()
    }

    /// `VALID`, `UNCHECKED`, `INVALID`, `PARTIAL` or `INVALID, PARTIAL`.
    pub fn word(&self) -> &'static str {
        match (self.invalid.is_empty(), self.partial.is_none()) {
            (true, true) if self.checked => "VALID",
            (true, true) => "UNCHECKED",
            (false, true) => "INVALID",
            (true, false) => "PARTIAL",
            (false, false) => "INVALID, PARTIAL",
        }
    }

    /// Every reason, the partial end first.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.partial.iter().chain(&self.invalid).map(String::as_str)
    }
}

impl RunResult {
    /// Judges the run by its gates, checks and faults; the written word `valid` can only take away.
    pub fn validity(&self) -> Validity {
        let mut invalid: Vec<String> = Vec::new();
        for gate in self.gates.iter().filter(|gate| !gate.passed) {
            invalid.push(gate.sentence());
        }
        for check in self.verification.iter().filter(|check| !check.passed) {
            invalid.push(format!("{}: {} expected, {} found", check.what, check.expected, check.found));
        }
        for fault in &self.faults {
            invalid.push(format!("second {:.0}: {}", fault.at_s, fault.what));
        }
        if !self.valid && invalid.is_empty() && self.partial.is_none() {
            invalid.push("the result says so without a reason".to_owned());
        }
        let partial = self
            .partial
            .as_ref()
            .map(|partial| format!("the run ended early, {:.0} s in: {}", partial.at_s, partial.reason));
        let checked = !(self.gates.is_empty() && self.verification.is_empty());
        Validity { invalid, partial, checked }
    }

    /// Makes the written `valid` agree with gates, checks and faults.
    pub(crate) fn settle(&mut self) {
        self.valid = true;
        self.valid = self.validity().is_quotable();
    }
}

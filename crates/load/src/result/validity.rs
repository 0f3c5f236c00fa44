//! Whether a result may be quoted. Every output uses this function, so none can hide that a run is invalid or partial.

use super::RunResult;

/// The first statement of every output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// The reasons why the figures must not be quoted; empty for a valid run.
    pub invalid: Vec<String>,
    /// The reason why the run is not complete, if it is not.
    pub partial: Option<String>,
    /// Whether the run has any gate or check. A result of another tool has none.
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

    /// All reasons, the partial end first.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.partial.iter().chain(&self.invalid).map(String::as_str)
    }
}

impl RunResult {
    /// Judges the run by its gates, checks and faults. The field `valid` can only make it worse.
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

    /// Sets the field `valid` according to gates, checks and faults.
    pub fn settle(&mut self) {
        self.valid = true;
        self.valid = self.validity().is_quotable();
    }
}

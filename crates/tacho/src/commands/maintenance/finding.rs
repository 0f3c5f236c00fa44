//! A finding of a check, as text.

use store::{Finding, Severity};

/// Describes a finding in a few lines.
pub(super) fn describe(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Note => "note",
        Severity::Damage => "DAMAGE",
    };
    let at = finding.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
    let mut text = format!("{word}  {}{at}: {}", finding.path.display(), finding.what);
    for (title, line) in [("means", &finding.means), ("to do", &finding.action)] {
        if !line.is_empty() {
            text.push_str(&format!("\n  {title}  {line}"));
        }
    }
    text
}

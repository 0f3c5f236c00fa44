//! The report of a target, as text for people and as JSON for programs.

use serde::Serialize;

use crate::finding::{Advice, Evidence, Finding};
use crate::observation::Observation;
use crate::unit::format_number;
use crate::value::Value;

/// The width of the text in columns.
const WIDTH: usize = 100;
/// The column at which the text behind a label begins.
const INDENT: usize = 16;

/// The report of a target.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The target as the user named it.
    pub target: String,
    /// The target in words.
    pub title: String,
    /// The variant of the product.
    pub variant: String,
    /// The version as the target prints it.
    pub version: Option<String>,
    /// The role of the target.
    pub role: Option<String>,
    /// Findings, undecided rules and a note.
    #[serde(flatten)]
    pub advice: Advice,
}

impl Report {
    /// The report of an observed target.
    pub fn new(target: &str, title: &str, observation: &Observation, advice: Advice) -> Self {
        Self {
            target: target.to_owned(),
            title: title.to_owned(),
            variant: observation.variant.clone(),
            version: observation.version.clone(),
            role: observation.role.clone(),
            advice,
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("BUG: a report is plain JSON")
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let count = match self.advice.findings.len() {
            0 => "no findings".to_owned(),
            1 => "1 finding".to_owned(),
            more => format!("{more} findings, the largest expected effect first"),
        };
        let mut lines = vec![format!("{}, {}{version}: {count}", self.title, self.variant)];
        lines.extend(self.advice.note.iter().flat_map(|note| wrapped("note", note)));
        for (index, finding) in self.advice.findings.iter().enumerate() {
            lines.push(String::new());
            lines.extend(finding_lines(index + 1, finding));
        }
        lines.extend(self.undecided_lines());
        lines.join("\n")
    }

    /// The parameters whose rules could not be decided.
    fn undecided_lines(&self) -> Vec<String> {
        if self.advice.undecided.is_empty() {
            return Vec::new();
        }
        let reason = |missing: &[String]| match missing {
            [] => "nothing was counted".to_owned(),
            missing => format!("no value of {}", missing.join(", ")),
        };
        let each = self.advice.undecided.iter().map(|it| format!("{} ({})", it.rule, reason(&it.missing)));
        let mut lines = vec![String::new()];
        lines.extend(wrapped("not examined", &each.collect::<Vec<_>>().join("; ")));
        lines.extend(self.hidden_lines());
        lines
    }

    /// The reasons for missing values, those with the same reason together.
    fn hidden_lines(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for hidden in &self.advice.hidden {
            match reasons.iter_mut().find(|(reason, _)| *reason == hidden.reason) {
                Some((_, names)) => names.push(&hidden.name),
                None => reasons.push((&hidden.reason, vec![&hidden.name])),
            }
        }
        let line = |(index, (reason, names)): (usize, (&str, Vec<&str>))| {
            wrapped(if index == 0 { "hidden" } else { "" }, &format!("{}: {reason}", names.join(", ")))
        };
        reasons.into_iter().enumerate().flat_map(line).collect()
    }
}

fn finding_lines(number: usize, finding: &Finding) -> Vec<String> {
    let subject = finding.subject.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
    let current = match &finding.current {
        Some(current) => format!(" = {}", finding.unit.format(current)),
        None => String::new(),
    };
    let suggested =
        finding.suggested.as_ref().map(|value| format!(", suggested: {}", finding.unit.format(value)));
    let mut lines =
        vec![format!("{number}. {}{subject}{current}{}", finding.parameter, suggested.unwrap_or_default())];
    let mut add = |label: &str, text: &str| lines.extend(wrapped(label, text));
    finding.advice.iter().for_each(|advice| add("advice", advice));
    add("why", &finding.why);
    for (index, evidence) in finding.evidence.iter().enumerate() {
        add(if index == 0 { "evidence" } else { "" }, &evidence_text(evidence));
    }
    add("effect", &format!("{}: {}", finding.effect.level.words(), finding.effect.text));
    match finding.risks.as_slice() {
        [] => add("risk", "none known"),
        risks => risks.iter().for_each(|risk| add("risk", &format!("{}: {}", risk.kind.words(), risk.text))),
    }
    add("change", &format!("{} (takes effect {})", finding.change, finding.restart.words()));
    add("undo", &finding.undo);
    add("source", &format!("{} (rule {})", finding.source, finding.rule));
    lines
}

fn evidence_text(evidence: &Evidence) -> String {
    let format = |value: &Value| evidence.unit.format(value);
    let Some(Value::Number(increase)) = evidence.increase else {
        return format!("{} = {}", evidence.name, format(&evidence.value));
    };
    let window = evidence.window_s.unwrap_or_default();
    let rate = if window > 0.0 {
        format!(", {} per second", format_number(increase / window))
    } else {
        String::new()
    };
    format!(
        "{}: {} in {} s{rate}",
        evidence.name,
        format(&Value::Number(increase)),
        format_number(window.round())
    )
}

/// A label and a text behind it, broken between words.
pub(crate) fn wrapped(label: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("   {label:width$}", width = INDENT - 3);
    let mut length = INDENT;
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if !is_empty && length + 1 + word_length > WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(INDENT)));
            (length, is_empty) = (INDENT, true);
        }
        if !is_empty {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
        is_empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Undecided;
    use crate::observation::Hidden;
    use crate::rules::{Effect, Level, Restart, Risk, RiskKind};
    use crate::unit::Unit;

    fn finding() -> Finding {
        let backlog = "Connections wait in this queue until the server accepts them; the kernel drops those that do not fit, \
                       and the client tries again after a second.";
        Finding {
            rule: "linux-somaxconn".into(),
            parameter: "net.core.somaxconn".into(),
            subject: None,
            unit: Unit::Count,
            current: Some(Value::from(128.0)),
            suggested: Some(Value::from(4_096.0)),
            advice: None,
            evidence: vec![
                Evidence {
                    name: "ListenOverflows".into(),
                    unit: Unit::Count,
                    value: Value::from(150.0),
                    increase: Some(Value::from(120.0)),
                    window_s: Some(60.0),
                },
                Evidence {
                    name: "memory".into(),
                    unit: Unit::Bytes,
                    value: Value::from(8_589_934_592.0),
                    increase: None,
                    window_s: None,
                },
            ],
            why: backlog.into(),
            effect: Effect { level: Level::PreventsFailure, text: "no dropped connections".into() },
            risks: vec![Risk { kind: RiskKind::Memory, text: "some kilobytes".into() }],
            restart: Restart::Restart,
            change: "sysctl -w net.core.somaxconn=4096".into(),
            undo: "sysctl -w net.core.somaxconn=128".into(),
            manual: None,
            source: "kernel documentation".into(),
        }
    }

    fn report(findings: Vec<Finding>) -> Report {
        let observation = Observation {
            variant: "linux".into(),
            version: Some("6.1".into()),
            role: Some("server".into()),
            ..Observation::default()
        };
        let missing = vec!["cpu.governor".to_owned()];
        let undecided = vec![
            Undecided { rule: "linux-governor".into(), parameter: "cpu.governor".into(), missing },
            Undecided { rule: "x".into(), parameter: "x".into(), missing: Vec::new() },
        ];
        Report::new(
            "host:",
            "This host as a server",
            &observation,
            Advice { findings, undecided, ..Advice::default() },
        )
    }

    #[test]
    fn the_text_is_for_people() {
        let expected = "\
This host as a server, linux 6.1: 1 finding

1. net.core.somaxconn = 128, suggested: 4096
   why          Connections wait in this queue until the server accepts them; the kernel drops those
                that do not fit, and the client tries again after a second.
   evidence     ListenOverflows: 120 in 60 s, 2 per second
                memory = 8 GiB
   effect       prevents failure: no dropped connections
   risk         memory: some kilobytes
   change       sysctl -w net.core.somaxconn=4096 (takes effect after a restart)
   undo         sysctl -w net.core.somaxconn=128
   source       kernel documentation (rule linux-somaxconn)

   not examined linux-governor (no value of cpu.governor); x (nothing was counted)";
        assert_eq!(report(vec![finding()]).text(), expected);
        assert!(report(Vec::new()).text().starts_with("This host as a server, linux 6.1: no findings\n"));
    }

    #[test]
    fn hidden_values_have_their_reason_once() {
        let mut report = report(Vec::new());
        report.advice.hidden =
            [("cores", "it is remote"), ("cpu.governor", "it is off"), ("memory", "it is remote")]
                .map(|(name, reason)| Hidden::new(name, reason))
                .into();
        let expected =
            "\n   hidden       cores, memory: it is remote\n                cpu.governor: it is off";
        assert!(report.text().ends_with(expected), "{}", report.text());
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["hidden"][1]["reason"], "it is off");
    }

    #[test]
    fn the_json_is_for_programs() {
        let json: serde_json::Value = serde_json::from_str(&report(vec![finding()]).json()).unwrap();
        assert_eq!(json["findings"][0]["current"], 128);
        assert_eq!(json["findings"][0]["restart"], "restart");
        assert_eq!(json["findings"][0]["effect"]["level"], "prevents_failure");
        assert_eq!(json["undecided"][0]["missing"][0], "cpu.governor");
        assert_eq!((json["role"].as_str(), json["note"].is_null()), (Some("server"), true));
    }
}

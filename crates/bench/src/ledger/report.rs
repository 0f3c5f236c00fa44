//! The result of a ledger run.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Judgement, Options};
use crate::machine::{Machine, utc_now};
use crate::options::Context;

/// One kill.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Kill {
    /// Before the server was ready.
    pub during_startup: bool,
    /// After ready, or after the process was started.
    pub delay_ms: u64,
    /// Whether points in flight at the kill before were sent again.
    pub resent: bool,
    /// Points sent for the first time before this kill.
    pub sent: u64,
    /// Points acknowledged before this kill, those sent again included.
    pub acked: u64,
    /// Per device the first number sent before this kill.
    #[serde(skip)]
    pub first_numbers: Vec<u64>,
    /// Start of the process after this kill to ready.
    pub restart_ms: Option<u64>,
    /// What was readable afterwards of the points sent before this kill.
    pub check: Option<Judgement>,
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.during_startup {
            return write!(f, "{} ms into start-up", self.delay_ms);
        }
        write!(f, "{} ms after ready, {} points sent, {} acked", self.delay_ms, self.sent, self.acked)
    }
}

/// Everything about one ledger run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Report {
    /// `ledger`.
    pub scenario: &'static str,
    /// No point was lost, invented, duplicated or changed, in any check.
    pub kept: bool,
    /// End, UTC.
    pub ended: String,
    /// How the run was asked for.
    pub command_line: Vec<String>,
    /// Source commit.
    pub commit: Option<String>,
    /// The options, defaults filled in.
    pub options: serde_json::Value,
    /// The machine.
    pub machine: Machine,
    /// The data directory; for the terminal, not for a published result.
    #[serde(skip)]
    pub data: PathBuf,
    /// The kills in order.
    pub kills: Vec<Kill>,
    /// All points after the last kill.
    pub at_end: Judgement,
    /// All points after an orderly stop and one more start.
    pub after_stop: Judgement,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        context: &Context,
        data: &Path,
        kills: Vec<Kill>,
        at_end: Judgement,
        after_stop: Judgement,
    ) -> Self {
        let checks = kills.iter().filter_map(|kill| kill.check.as_ref());
        let kept = checks.chain([&at_end, &after_stop]).all(Judgement::kept);
        Self {
            scenario: "ledger",
            kept,
            ended: utc_now(),
            command_line: context.command_line.clone(),
            commit: context.commit.clone(),
            options: serde_json::to_value(options).expect("BUG: options have only text keys"),
            machine: Machine::here(),
            data: data.to_owned(),
            kills,
            at_end,
            after_stop,
        }
    }

    /// Whether the server kept its promise; the exit status of the command.
    pub fn kept(&self) -> bool {
        self.kept
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let startup = self.kills.iter().filter(|kill| kill.during_startup).count();
        writeln!(
            f,
            "killed {} times, {startup} of them during start-up; slowest restart {} ms",
            self.kills.len(),
            self.kills.iter().filter_map(|kill| kill.restart_ms).max().unwrap_or(0)
        )?;
        let after_kills = self.kills.iter().enumerate();
        for (index, check) in after_kills.filter_map(|(i, kill)| Some((i, kill.check.as_ref()?))) {
            if !check.kept() {
                judgement(f, &format!("kill {}", index + 1), check)?;
            }
        }
        judgement(f, "at the end", &self.at_end)?;
        judgement(f, "after a stop", &self.after_stop)?;
        if self.kept {
            return write!(f, "KEPT: every acknowledged point is readable exactly once, none was invented");
        }
        write!(f, "BROKEN: the directory {} is kept for inspection", self.data.display())
    }
}

fn judgement(f: &mut fmt::Formatter<'_>, name: &str, j: &Judgement) -> fmt::Result {
    writeln!(
        f,
        "{name:<13} {} acked, {} maybe, {} stored: {} lost, {} invented, {} duplicated, {} wrong",
        j.acked, j.maybe, j.stored, j.lost, j.invented, j.duplicated, j.wrong
    )?;
    for example in &j.examples {
        writeln!(f, "  {example}")?;
    }
    Ok(())
}

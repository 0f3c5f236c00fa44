//! `tacho tune TARGET --apply` and `--undo`: changes a target, and restores it.

use std::io::{IsTerminal as _, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use tune::change::{self, Carried, ParameterChange, UndoFile};

use super::inspected_target::{COULD_NOT, InspectedTarget};
use crate::output::say;

/// The name that stands for all findings.
const ALL: &str = "all";

// No documentation of the type: clap would give it as that of the command.
#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// Makes the changes of these rules, or of all findings that a command can change
    #[arg(long, value_name = "RULE[,RULE...]|all", value_delimiter = ',', conflicts_with_all = ["undo", "prove", "json"])]
    pub(super) apply: Vec<String>,
    /// Restores the values that an undo file holds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "json", "window"])]
    pub(super) undo: Option<PathBuf>,
    /// The undo file, which is written before anything is changed [default: tacho-tune-undo-UTC.json]
    #[arg(long, value_name = "FILE", requires = "apply")]
    undo_file: Option<PathBuf>,
    /// The new value, instead of the suggested one; needed by a rule that has no finding
    #[arg(long, value_name = "VALUE")]
    pub(super) value: Option<String>,
    /// Does not ask
    #[arg(long)]
    yes: bool,
}

impl ApplyArgs {
    /// Refuses options that do not apply.
    pub(super) fn check(&self, is_proof: bool) -> anyhow::Result<()> {
        let is_change = !self.apply.is_empty() || self.undo.is_some();
        ensure!(is_change || !self.yes, "--yes applies to --apply and --undo only");
        let has_rule = is_proof || !self.apply.is_empty();
        ensure!(has_rule || self.value.is_none(), "--value applies to --apply and --prove only");
        let is_one = is_proof || self.apply.len() == 1 && self.apply[0] != ALL;
        ensure!(is_one || self.value.is_none(), "--value needs one rule");
        Ok(())
    }
}

/// Makes the changes.
pub(super) fn apply(args: &ApplyArgs, looked: &mut InspectedTarget) -> anyhow::Result<ExitCode> {
    let changes = planned(args, looked)?;
    if changes.is_empty() {
        say("no change")?;
        return Ok(ExitCode::SUCCESS);
    }
    say(change::plan_text(looked.product, &changes))?;
    let file = UndoFile::new(&looked.shown_target, looked.probe.identity(), changes.clone());
    let path = args.undo_file.clone().unwrap_or_else(|| file.default_path());
    if !confirmed(args.yes, "Make the changes?")? {
        return Ok(ExitCode::FAILURE);
    }
    file.write(&path)?;
    let undo = format!("to undo it: tacho tune {} --undo {}", looked.shown_target, path.display());
    let carried = change::carry_out(looked.probe.as_mut(), &changes, &mut |time| sleep(time));
    tell(&carried, &changes, false)?;
    say(undo)?;
    Ok(code(&carried))
}

/// Restores what an undo file holds.
pub(super) fn undo(args: &ApplyArgs, path: &Path, looked: &mut InspectedTarget) -> anyhow::Result<ExitCode> {
    let file = UndoFile::read(path)?;
    file.check(looked.probe.identity())?;
    if file.target != looked.shown_target {
        say(format!("note: the undo file was written for {}", file.target))?;
    }
    say(change::undo_text(
        &file,
        &change::present_values(looked.product, &looked.observation, &file.changes),
    ))?;
    if !confirmed(args.yes, "Restore these values?")? {
        return Ok(ExitCode::FAILURE);
    }
    let carried = change::undo(looked.probe.as_mut(), &file.changes, &mut |time| sleep(time));
    tell(&carried, &file.changes, true)?;
    Ok(code(&carried))
}

fn planned(args: &ApplyArgs, looked: &InspectedTarget) -> anyhow::Result<Vec<ParameterChange>> {
    let advice = tune::advise(looked.product, &looked.observation);
    if args.apply != [ALL] {
        ensure!(!args.apply.iter().any(|rule| rule == ALL), "--apply takes either rules or `all`");
        let value = args.value.as_deref();
        return Ok(change::plan_rules(looked.product, &looked.observation, &advice, &args.apply, value)?);
    }
    let plan = change::plan_all(looked.product, &looked.observation, &advice);
    plan.left_out.iter().try_for_each(|reason| say(format!("left out: {reason}")))?;
    Ok(plan.changes)
}

/// Asks. Without a terminal nobody can answer, so `--yes` must.
fn confirmed(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !stdin().is_terminal() {
        bail!(
            "nobody can be asked, because standard input is not a terminal: --yes does not ask. Nothing was changed"
        );
    }
    write!(stdout(), "{question} [y/N] ")
        .and_then(|()| stdout().flush())
        .context("cannot write to standard output")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("cannot read the answer")?;
    let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !is_yes {
        say("nothing was changed")?;
    }
    Ok(is_yes)
}

/// Returns what was carried out and what was not.
fn tell(carried: &Carried, changes: &[ParameterChange], is_undo: bool) -> anyhow::Result<()> {
    for (name, outcome) in &carried.done {
        let change = changes.iter().find(|change| change.name() == *name);
        let change = change.with_context(|| format!("BUG: {name} is not in the plan"))?;
        let wanted = if is_undo { &change.old } else { &change.new };
        say(format!("{name} {}", outcome.text(change, wanted)))?;
    }
    carried
        .not_kept
        .iter()
        .try_for_each(|why| say(format!("note: the value works now, and a restart forgets it: {why}")))?;
    let Some(failure) = &carried.failure else { return Ok(()) };
    say(format!("failed: {failure}"))?;
    let names = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let done: Vec<String> = carried.done.iter().map(|(name, _)| name.clone()).collect();
    say(format!("{}: {}", if is_undo { "restored" } else { "changed" }, names(&done)))?;
    carried.unsure.iter().try_for_each(|name| say(format!("not certain: {name}")))?;
    say(format!("not begun: {}", names(&carried.not_begun)))
}

fn code(carried: &Carried) -> ExitCode {
    if carried.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(COULD_NOT) }
}

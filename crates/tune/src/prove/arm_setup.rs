//! Makes the target A or B before each run, looks at it after the run, and restores it at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Instant;

use bench::ab::Arm;
use bench::command::Arms;
use load::result::Bundle;
use load::statistics::paired::Verdict;

use super::command;
use super::error::ProveError;
use super::method::{ChangeMethod, ChangeSteps, shows};
use super::order::Order;
use super::report::Memory;
use super::state::{ChangeState, End, Step, after, before, last};
use crate::change::{ParameterChange, UndoFile, carry_out, found_in, undo};
use crate::limits::{RESTART_PAUSE, RESTART_TIME_MAX};
use crate::probe::{self, Probe, Start};
use crate::rules::Product;
use crate::target::Target;
use crate::value::Value;

/// The name of the undo file in the directory of the results.
const UNDO_FILE: &str = "undo.json";

/// The target of a proof.
pub(super) struct Prover<'a> {
    target: &'a Target,
    shown_target: &'a str,
    context: &'a probe::Context,
    product: &'static Product,
    way: &'a ChangeMethod,
    /// The undo of the statements.
    undo_file: Option<UndoFile>,
    directory: PathBuf,
    place: ChangeState,
    /// The start of the process that the last step has left.
    start: Option<Start>,
    has_restarted: bool,
    memory: [Vec<u64>; 2],
    stop: Arc<AtomicBool>,
}

impl<'a> Prover<'a> {
    /// Looks at the target, which stays as it is.
    pub(super) fn new(order: &'a Order<'_>) -> Result<Self, ProveError> {
        let mut probe = probe::connect(order.target, order.probe)?;
        let start = probe.start()?;
        let undo_file = match &order.way.makes {
            ChangeSteps::Statements(changes) => {
                Some(UndoFile::new(order.shown_target, probe.identity(), unkept(changes)))
            }
            ChangeSteps::Commands { .. } => None,
        };
        Ok(Self {
            target: order.target,
            shown_target: order.shown_target,
            context: order.probe,
            product: order.product,
            way: &order.way,
            undo_file,
            directory: PathBuf::new(),
            place: ChangeState::Out,
            start,
            has_restarted: false,
            memory: [Vec::new(), Vec::new()],
            stop: Arc::default(),
        })
    }

    /// Restores the target, or keeps the change.
    pub(super) fn end(&mut self, verdict: Option<Verdict>, keep: bool) -> End {
        let (step, stays) = last(self.place, verdict, keep);
        // The user has stopped the proof, not its undo.
        self.stop = Arc::default();
        let ended = match (step, stays) {
            (Step::Stay, false) => return End::RolledBack,
            (_, true) => self.keep(step),
            _ => self.make(step).and_then(|()| self.restart_if_needed()).and_then(|()| self.check(false)),
        };
        match (ended, stays) {
            (Ok(()), true) => End::Kept,
            (Ok(()), false) => End::RolledBack,
            (Err(error), false) => End::NotRolledBack(format!("{error}. {}", self.by_hand())),
            // A change that cannot be kept in order is undone.
            (Err(_), true) => self.end(None, false),
        }
    }

    /// The memory of the target in each arm.
    pub(super) fn memory(&self) -> Option<Memory> {
        Memory::of(&self.memory)
    }

    /// Whether the target has started again by itself.
    pub(super) fn has_restarted(&self) -> bool {
        self.has_restarted
    }

    /// Makes a change that stays. It comes into the file of the server too, where the server can do that.
    fn keep(&mut self, step: Step) -> Result<(), String> {
        if let ChangeSteps::Statements(changes) = &self.way.makes {
            let carried = carry_out(self.connected()?.as_mut(), changes, &mut |time| sleep(time));
            carried.failure.map_or(Ok(()), |error| Err(error.to_string()))?;
            self.place = ChangeState::In;
            self.undo_kept(changes)?;
        } else {
            self.make(step)?;
        }
        if step == Step::Change {
            self.restart_if_needed()?;
        }
        self.check(true)
    }

    /// Replaces the undo file: the undo of a change that a file of the server keeps comes into that file too.
    fn undo_kept(&self, changes: &[ParameterChange]) -> Result<(), String> {
        let Some(file) = &self.undo_file else { return Ok(()) };
        let path = self.directory.join(UNDO_FILE);
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let kept = file.with(changes.to_vec());
        kept.write(&path).map_err(|error| error.to_string())
    }

    /// Makes or undoes the change.
    fn make(&mut self, step: Step) -> Result<(), String> {
        if step == Step::Stay {
            return Ok(());
        }
        let place = std::mem::replace(&mut self.place, ChangeState::Unsure);
        match &self.way.makes {
            ChangeSteps::Statements(changes) => {
                let changes = unkept(changes);
                let mut probe = self.connected()?;
                let wait = &mut |time| sleep(time);
                let carried = match step {
                    Step::Undo => undo(probe.as_mut(), &changes, wait),
                    _ => carry_out(probe.as_mut(), &changes, wait),
                };
                carried.failure.map_or(Ok(()), |error| Err(error.to_string()))?;
            }
            ChangeSteps::Commands { change, undo, .. } => {
                command::run(if step == Step::Undo { undo } else { change })?;
            }
        }
        self.place = after(place, step);
        Ok(())
    }

    /// Starts the target again, if its change needs that, and waits until it answers.
    fn restart_if_needed(&mut self) -> Result<(), String> {
        let Some(restart) = &self.way.restart else { return Ok(()) };
        command::run(restart)?;
        let before = self.start.clone();
        let is_new = |start: &Option<Start>| match (&before, start) {
            // The process that is about to end may still answer.
            (Some(before @ Start::Id(_)), Some(start)) if !matches!(self.target, Target::Host(_)) => {
                !before.is_same(start)
            }
            _ => true,
        };
        let (_, start) = self.wait(is_new)?;
        self.start = start;
        Ok(())
    }

    /// Compares what the target shows with the arm.
    fn check(&self, is_changed: bool) -> Result<(), String> {
        let values: Vec<(&str, Option<&str>, Option<&Value>)> = match &self.way.makes {
            ChangeSteps::Statements(changes) => changes
                .iter()
                .map(|it| (it.parameter.as_str(), it.subject.as_deref(), Some(&it.old)))
                .collect(),
            ChangeSteps::Commands { parameter, wanted, .. } => {
                wanted.iter().map(|it| (parameter.as_str(), it.subject.as_deref(), it.old.as_ref())).collect()
            }
        };
        let sample = self.connected()?.sample_settings().map_err(|error| error.to_string())?;
        for (parameter, subject, old) in values {
            let found = found_in(&sample, self.product, parameter, subject);
            if shows(is_changed, old, found.as_ref()) == Some(false) {
                let found = found.map(|value| value.to_string()).unwrap_or_default();
                let expected = if is_changed { "with the change" } else { "without the change" };
                return Err(format!(
                    "{parameter} is {found} {expected}: the change has no effect, or somebody else changes it too"
                ));
            }
        }
        Ok(())
    }

    fn connected(&self) -> Result<Box<dyn Probe>, String> {
        self.wait(|_| true).map(|(probe, _)| probe)
    }

    /// Connects, and tries again for a time: a target that starts does not answer at once.
    fn wait(
        &self,
        is_wanted: impl Fn(&Option<Start>) -> bool,
    ) -> Result<(Box<dyn Probe>, Option<Start>), String> {
        let begun = Instant::now();
        loop {
            let connected = probe::connect(self.target, self.context)
                .and_then(|mut probe| probe.start().map(|start| (probe, start)));
            let problem = match connected {
                Ok((probe, start)) if is_wanted(&start) => return Ok((probe, start)),
                Ok(_) => "the process that answers has not started again".to_owned(),
                Err(error) => error.to_string(),
            };
            if self.stop.load(Ordering::Relaxed) {
                return Err(format!("stopped by a signal; {problem}"));
            }
            if begun.elapsed() >= RESTART_TIME_MAX {
                return Err(format!("{problem} (after {} s)", RESTART_TIME_MAX.as_secs()));
            }
            sleep(RESTART_PAUSE);
        }
    }

    /// The work of a person if the target could not be restored.
    fn by_hand(&self) -> String {
        match &self.way.makes {
            ChangeSteps::Statements(_) => {
                let file = self.directory.join(UNDO_FILE);
                format!(
                    "When the target answers again: tacho tune {} --undo {}",
                    self.shown_target,
                    file.display()
                )
            }
            ChangeSteps::Commands { undo, .. } => match &self.way.restart {
                Some(restart) => format!("By hand: {undo}; {restart}"),
                None => format!("By hand: {undo}"),
            },
        }
    }

    /// The reason why a run does not count: the target has started again, or does not answer.
    fn disturbance(&mut self) -> Option<String> {
        let connected = probe::connect(self.target, self.context).and_then(|mut probe| probe.start());
        let start = match connected {
            Ok(start) => start,
            Err(error) => {
                self.place = ChangeState::Unsure;
                return Some(format!("after the run the target does not answer: {error}"));
            }
        };
        let is_same = match (&self.start, &start) {
            (Some(before), Some(now)) => before.is_same(now),
            _ => true,
        };
        if is_same {
            return None;
        }
        self.has_restarted = true;
        // The new process has what its file says.
        self.place = ChangeState::Unsure;
        self.start = start;
        Some("the target has started again by itself during the run".to_owned())
    }
}

/// The changes without the statements that keep them: a value in a file of the server would outlive a proof that breaks off.
fn unkept(changes: &[ParameterChange]) -> Vec<ParameterChange> {
    changes.iter().map(|change| ParameterChange { keep: Vec::new(), ..change.clone() }).collect()
}

impl Arms for Prover<'_> {
    fn begin(&mut self, directory: &Path, stop: Arc<AtomicBool>) -> load::Result<()> {
        (self.stop, self.directory) = (stop, directory.to_owned());
        let written = self.undo_file.as_ref().map(|file| file.write(&directory.join(UNDO_FILE)));
        written.unwrap_or(Ok(())).map_err(|error| load::Error::Verdict(error.to_string()))
    }

    fn before(&mut self, arm: Arm) -> load::Result<()> {
        let step = before(self.place, arm);
        let failed = |error: String| {
            let what = if step == Step::Undo { "undone" } else { "made" };
            load::Error::Verdict(format!("the change could not be {what}: {error}"))
        };
        self.make(step).map_err(failed)?;
        // Both arms start again before each run, so that neither has the warmer memory.
        self.restart_if_needed().map_err(failed)?;
        self.check(arm == Arm::B).map_err(load::Error::Verdict)
    }

    fn after(&mut self, arm: Arm, bundle: Option<&Bundle>) -> Result<(), String> {
        let phase = bundle.and_then(Bundle::main_phase);
        self.memory[arm as usize].extend(phase.and_then(|phase| phase.cost.target_rss_bytes_max));
        self.disturbance().map_or(Ok(()), Err)
    }
}

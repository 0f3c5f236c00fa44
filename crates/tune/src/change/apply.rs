//! Carries changes out, and undoes them.

use std::time::Duration;

use super::verify::found_in;
use super::{ChangeError, Outcome, ParameterChange};
use crate::limits::{EFFECT_PAUSE, EFFECT_TIME_MAX};
use crate::probe::Probe;
use crate::rules::Product;
use crate::statement::Statement;
use crate::value::Value;

/// The result of an application.
#[derive(Debug, Default)]
pub struct Carried {
    /// The changes that the target has taken, and what it has made of them.
    pub done: Vec<(String, Outcome)>,
    /// Values that are in effect, but that a restart forgets, and why.
    pub not_kept: Vec<String>,
    /// The first failure. The changes after it were not begun.
    pub failure: Option<ChangeError>,
    /// The parameter of the failure. It may be changed or not.
    pub unsure: Option<String>,
    /// The changes that were not begun.
    pub not_begun: Vec<String>,
}

/// Makes all changes, one after the other, up to the first failure. `sleep` waits.
pub fn carry_out(
    probe: &mut dyn Probe,
    changes: &[ParameterChange],
    sleep: &mut dyn FnMut(Duration),
) -> Carried {
    let steps = changes.iter().map(|change| Step { change, is_undo: false }).collect();
    carry(probe, steps, sleep)
}

/// Undoes all changes, the last one first, up to the first failure.
pub fn undo(probe: &mut dyn Probe, changes: &[ParameterChange], sleep: &mut dyn FnMut(Duration)) -> Carried {
    let steps = changes.iter().rev().map(|change| Step { change, is_undo: true }).collect();
    carry(probe, steps, sleep)
}

/// One way of a change.
#[derive(Clone, Copy)]
struct Step<'a> {
    change: &'a ParameterChange,
    is_undo: bool,
}

impl<'a> Step<'a> {
    /// The value before and after this way.
    fn values(self) -> (&'a Value, &'a Value) {
        let ParameterChange { old, new, .. } = self.change;
        if self.is_undo { (new, old) } else { (old, new) }
    }

    fn statements(self) -> &'a [Statement] {
        if self.is_undo { &self.change.undo } else { &self.change.change }
    }
}

fn carry(probe: &mut dyn Probe, steps: Vec<Step<'_>>, sleep: &mut dyn FnMut(Duration)) -> Carried {
    let mut carried = Carried::default();
    for (index, step) in steps.iter().enumerate() {
        match one(probe, *step, sleep) {
            Ok((outcome, not_kept)) => {
                carried.done.push((step.change.name(), outcome));
                carried.not_kept.extend(not_kept);
            }
            Err(error) => {
                carried.failure = Some(error);
                carried.unsure = Some(step.change.name());
                carried.not_begun = steps[index + 1..].iter().map(|step| step.change.name()).collect();
                break;
            }
        }
    }
    carried
}

fn one(
    probe: &mut dyn Probe,
    step: Step<'_>,
    sleep: &mut dyn FnMut(Duration),
) -> Result<(Outcome, Option<String>), ChangeError> {
    let change = step.change;
    set(probe, change, step.statements())?;
    let outcome = outcome(probe, step, sleep)?;
    if let Outcome::Unchanged | Outcome::Hidden = outcome {
        let found = match outcome {
            Outcome::Hidden => "hidden".to_owned(),
            _ => change.unit.format(step.values().0),
        };
        return Err(ChangeError::NotInEffect { name: change.name(), found });
    }
    // The file of a server that shall keep the value is of use only if the value works.
    let not_kept = set(probe, change, &change.keep).err().map(|error| error.to_string());
    Ok((outcome, not_kept))
}

fn set(probe: &mut dyn Probe, change: &ParameterChange, statements: &[Statement]) -> Result<(), ChangeError> {
    for statement in statements {
        probe.carry_out(statement).map_err(|error| ChangeError::Statement {
            name: change.name(),
            statement: statement.to_string(),
            error: Box::new(error),
            grant: change.grant.clone(),
        })?;
    }
    Ok(())
}

/// Looks at the parameter until it has another value than before, or for the longest time.
fn outcome(
    probe: &mut dyn Probe,
    step: Step<'_>,
    sleep: &mut dyn FnMut(Duration),
) -> Result<Outcome, ChangeError> {
    let change = step.change;
    let look = |error| ChangeError::Look { name: change.name(), error };
    let id = probe.identity().product;
    let product = Product::named(id).unwrap_or_else(|| panic!("BUG: there are no rules for {id}"));
    let (old, new) = step.values();
    let mut waited = Duration::ZERO;
    loop {
        let sample = probe.sample_settings().map_err(look)?;
        let found = found_in(&sample, product, &change.parameter, change.subject.as_deref());
        let outcome = Outcome::of(old, new, change.restart, found.as_ref());
        let is_over = waited >= EFFECT_TIME_MAX || !outcome.may_follow();
        if is_over {
            return Ok(outcome);
        }
        sleep(EFFECT_PAUSE);
        waited += EFFECT_PAUSE;
    }
}

impl Carried {
    /// Whether everything was carried out.
    pub fn is_complete(&self) -> bool {
        self.failure.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::probe::{Identity, ProbeError, Sample, StatementError};
    use crate::rules::Restart;
    use crate::unit::Unit;

    /// A Redis with these settings, which refuses a command for each of these parameters.
    struct Server {
        identity: Identity,
        settings: BTreeMap<String, Value>,
        refuses: &'static str,
        /// The number of looks that still show the old value.
        delay: u32,
        pending: Option<(String, Value)>,
    }

    impl Probe for Server {
        fn identity(&self) -> &Identity {
            &self.identity
        }

        fn sample(&mut self) -> Result<Sample, ProbeError> {
            match (self.delay, self.pending.take()) {
                (0, Some((name, value))) => drop(self.settings.insert(name, value)),
                (_, pending) => {
                    self.pending = pending;
                    self.delay = self.delay.saturating_sub(1);
                }
            }
            Ok(Sample { settings: self.settings.clone(), ..Sample::default() })
        }

        fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
            let Statement::Command(words) = statement else { panic!("{statement:?}") };
            match words.as_slice() {
                [_, rewrite] if rewrite == "REWRITE" => Err(StatementError::Refused("no file".into())),
                [_, _, name, _] if name == self.refuses => Err(StatementError::Permission("NOPERM".into())),
                [_, _, name, value] => {
                    self.pending = Some((name.clone(), value.parse::<f64>().unwrap().into()));
                    Ok(())
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn server(refuses: &'static str, delay: u32) -> Server {
        let identity = Identity {
            product: "redis",
            title: "t".into(),
            variant: "redis".into(),
            version: None,
            role: None,
        };
        let settings = ["maxmemory", "maxclients", "tcp-backlog"].map(|name| (name.to_owned(), 1.0.into()));
        Server { identity, settings: settings.into(), refuses, delay, pending: None }
    }

    fn change(parameter: &str) -> ParameterChange {
        let set = |value: &str| {
            let words = ["CONFIG", "SET", parameter, value].map(str::to_owned);
            vec![Statement::Command(words.into())]
        };
        ParameterChange {
            rule: format!("redis-{parameter}"),
            parameter: parameter.into(),
            subject: None,
            unit: Unit::Count,
            old: 1.0.into(),
            new: 2.0.into(),
            restart: Restart::Dynamic,
            change: set("2"),
            keep: vec![Statement::Command(["CONFIG", "REWRITE"].map(str::to_owned).into())],
            undo: set("1"),
            grant: Some("Grant it: +config|set".into()),
            also: None,
        }
    }

    #[test]
    fn a_change_is_verified_when_the_target_shows_it_and_undone() {
        let mut server = server("", 3);
        let mut waited = Duration::ZERO;
        let carried = carry_out(&mut server, &[change("maxmemory")], &mut |time| waited += time);
        assert!(carried.is_complete() && waited == 3 * EFFECT_PAUSE, "{carried:?} {waited:?}");
        assert_eq!(carried.done, [("maxmemory".to_owned(), Outcome::AsWanted)]);
        assert!(carried.not_kept[0].contains("no file"), "the value works although no file keeps it");
        assert_eq!(server.settings["maxmemory"], 2.0.into());
        assert!(undo(&mut server, &[change("maxmemory")], &mut |_| {}).is_complete());
        assert_eq!(server.settings["maxmemory"], 1.0.into());
    }

    #[test]
    fn a_failure_says_what_was_changed_and_what_was_not() {
        let changes = ["maxmemory", "maxclients", "tcp-backlog"].map(change);
        let carried = carry_out(&mut server("maxclients", 0), &changes, &mut |_| {});
        assert_eq!(carried.done, [("maxmemory".to_owned(), Outcome::AsWanted)]);
        assert_eq!(
            (carried.unsure.as_deref(), carried.not_begun.as_slice()),
            (Some("maxclients"), &["tcp-backlog".to_owned()][..])
        );
        let failure = carried.failure.unwrap().to_string();
        assert!(failure.contains("NOPERM") && failure.ends_with("Grant it: +config|set"), "{failure}");
    }

    #[test]
    fn a_target_that_takes_a_statement_and_changes_nothing_is_a_failure() {
        let mut waited = Duration::ZERO;
        let carried =
            carry_out(&mut server("", u32::MAX), &[change("maxmemory")], &mut |time| waited += time);
        assert!(matches!(carried.failure, Some(ChangeError::NotInEffect { .. })), "{carried:?}");
        assert_eq!(waited, EFFECT_TIME_MAX);
    }
}

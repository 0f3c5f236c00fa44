//! How a change is made in a proof: by statements of the rule, or by commands of the user. Pure functions.

use super::error::ProveError;
use crate::change::{ParameterChange, PlanError, Wanted, plan_rules, wanted};
use crate::finding::Advice;
use crate::observation::Observation;
use crate::rules::{Manual, Product, Restart, Rule};
use crate::value::Value;

/// Commands of the user, which a shell runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// Makes the change.
    pub change: Option<String>,
    /// Undoes the change.
    pub undo: Option<String>,
    /// Starts the target again, before each run.
    pub restart: Option<String>,
}

/// How the change is made.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeMethod {
    pub(super) makes: ChangeSteps,
    /// Starts the target again, before each run.
    pub(super) restart: Option<String>,
}

/// What makes the change and its undo.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChangeSteps {
    /// Statements of the rule.
    Statements(Vec<ParameterChange>),
    /// Commands of the user, and the values that the target then shows, as far as they are known.
    Commands { change: String, undo: String, parameter: String, wanted: Vec<Wanted> },
}

/// The way for a rule, or what it needs.
pub fn way(
    product: &Product,
    observation: &Observation,
    advice: &Advice,
    rule: &Rule,
    value: Option<&str>,
    commands: &Commands,
) -> Result<ChangeMethod, ProveError> {
    let needs_restart = rule.restart == Restart::Restart;
    let makes = match rule.change.manual() {
        None => {
            let is_data = rule.restart == Restart::Reinstall;
            refuse_commands(rule, commands)?;
            if is_data {
                let change =
                    rule.change.templates(&rule.parameter, product.parameters[&rule.parameter].unit).0;
                return Err(PlanError::Manual { rule: rule.id.clone(), reason: Manual::Data, change }.into());
            }
            let rules = [rule.id.clone()];
            ChangeSteps::Statements(plan_rules(product, observation, advice, &rules, value)?)
        }
        Some(reason) => by_commands(product, observation, advice, rule, value, commands, reason)?,
    };
    match (needs_restart, &commands.restart) {
        (true, None) => {
            Err(missing(rule, &["--restart-command"], "The change takes effect after a restart."))
        }
        (false, Some(_)) => {
            let why = "its change takes effect without a restart";
            Err(ProveError::Option { option: "--restart-command", rule: rule.id.clone(), why })
        }
        (_, restart) => Ok(ChangeMethod { makes, restart: restart.clone() }),
    }
}

fn refuse_commands(rule: &Rule, commands: &Commands) -> Result<(), ProveError> {
    let given = [("--change-command", &commands.change), ("--undo-command", &commands.undo)];
    match given.into_iter().find(|(_, command)| command.is_some()) {
        None => Ok(()),
        Some((option, _)) => {
            let why = "this command makes its change itself";
            Err(ProveError::Option { option, rule: rule.id.clone(), why })
        }
    }
}

fn by_commands(
    product: &Product,
    observation: &Observation,
    advice: &Advice,
    rule: &Rule,
    value: Option<&str>,
    commands: &Commands,
    reason: Manual,
) -> Result<ChangeSteps, ProveError> {
    let (Some(change), Some(undo)) = (&commands.change, &commands.undo) else {
        let options = [
            ("--change-command", commands.change.is_none()),
            ("--undo-command", commands.undo.is_none()),
            ("--restart-command", commands.restart.is_none() && rule.restart == Restart::Restart),
        ];
        let names: Vec<&str> =
            options.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
        return Err(missing(rule, &names, reason.sentence()));
    };
    // The commands know the value. What the rule says about it serves to look whether they work.
    let wanted = match wanted(product, observation, advice, rule, value) {
        Ok(wanted) => wanted,
        Err(PlanError::NoValue { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let parameter = rule.parameter.clone();
    Ok(ChangeSteps::Commands { change: change.clone(), undo: undo.clone(), parameter, wanted })
}

fn missing(rule: &Rule, options: &[&str], why: &str) -> ProveError {
    ProveError::Commands { rule: rule.id.clone(), missing: options.join(" and "), why: why.to_owned() }
}

/// Whether a parameter shows the arm that it shall show. `None`: the target does not say.
pub(super) fn shows(is_changed: bool, old: Option<&Value>, found: Option<&Value>) -> Option<bool> {
    let is_old = crate::change::is_same(old?, found?);
    Some(is_old != is_changed)
}

impl ChangeMethod {
    /// A and B in words.
    pub(super) fn labels(&self) -> [String; 2] {
        let unknown = || "as it is".to_owned();
        let joined = |texts: Vec<String>| texts.join(", ");
        match &self.makes {
            ChangeSteps::Statements(changes) => {
                let label = |value: fn(&ParameterChange) -> &Value| {
                    let each =
                        changes.iter().map(|it| format!("{} = {}", it.name(), it.unit.format(value(it))));
                    joined(each.collect())
                };
                [label(|change| &change.old), label(|change| &change.new)]
            }
            ChangeSteps::Commands { change, parameter, wanted, .. } => {
                let label = |value: fn(&Wanted) -> Option<&Value>| {
                    wanted.first().and_then(value).map(|value| format!("{parameter} = {value}"))
                };
                [
                    label(|wanted| wanted.old.as_ref()).unwrap_or_else(unknown),
                    label(|wanted| wanted.new.as_ref()).unwrap_or_else(|| format!("after `{change}`")),
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::advise;

    fn observation(variant: &str, version: &str, settings: &[(&str, Value)]) -> Observation {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Observation {
            variant: variant.into(),
            version: Some(version.into()),
            settings,
            ..Observation::default()
        }
    }

    fn way_of(
        (id, observation): (&str, &Observation),
        rule: &str,
        value: Option<&str>,
        commands: &Commands,
    ) -> Result<ChangeMethod, ProveError> {
        let product = Product::named(id).unwrap();
        let advice = advise(product, observation);
        way(product, observation, &advice, product.rule(rule).unwrap(), value, commands)
    }

    fn commands(change: bool, undo: bool, restart: bool) -> Commands {
        let command = |is_there: bool| is_there.then(|| "true".to_owned());
        Commands { change: command(change), undo: command(undo), restart: command(restart) }
    }

    #[test]
    fn a_file_of_the_server_needs_three_commands() {
        let observation = observation("redis", "7.0.15", &[("io-threads", 1.0.into())]);
        let way = |commands| way_of(("redis", &observation), "redis-io-threads", Some("2"), &commands);
        let error = way(commands(false, false, false)).unwrap_err().to_string();
        assert!(error.contains("--change-command and --undo-command and --restart-command"), "{error}");
        assert!(error.contains("from its file"), "{error}");
        assert!(way(commands(true, true, false)).unwrap_err().to_string().contains("--restart-command"));
        let ChangeSteps::Commands { wanted, .. } = way(commands(true, true, true)).unwrap().makes else {
            panic!()
        };
        assert_eq!((wanted[0].old.clone(), wanted[0].new.clone()), (Some(1.0.into()), Some(2.0.into())));
    }

    #[test]
    fn a_rule_with_statements_accepts_no_commands() {
        let observation = observation("redis", "7.0.15", &[("appendfsync", "everysec".into())]);
        let way = |commands| way_of(("redis", &observation), "redis-appendfsync", Some("no"), &commands);
        assert!(matches!(
            way(commands(true, true, false)),
            Err(ProveError::Option { option: "--change-command", .. })
        ));
        assert!(matches!(
            way(commands(false, false, true)),
            Err(ProveError::Option { option: "--restart-command", .. })
        ));
        let labels = way(commands(false, false, false)).unwrap().labels();
        assert_eq!(labels, ["appendfsync = everysec", "appendfsync = no"]);
    }

    #[test]
    fn without_a_finding_and_without_a_value_there_is_nothing_to_prove() {
        let observation = observation("redis", "7.0.15", &[("appendfsync", "everysec".into())]);
        let error = way_of(("redis", &observation), "redis-appendfsync", None, &Commands::default());
        assert!(error.unwrap_err().to_string().contains("Name one with --value"));
    }

    #[test]
    fn a_setting_of_postgresql_that_needs_a_restart_needs_its_command_only() {
        let observation = observation("postgresql", "15.18", &[("shared_buffers", 134_217_728.0.into())]);
        let way = |commands| {
            way_of(("postgresql", &observation), "postgresql-shared-buffers", Some("256MB"), &commands)
        };
        assert!(way(commands(false, false, false)).unwrap_err().to_string().contains("--restart-command"));
        assert!(matches!(way(commands(false, false, true)).unwrap().makes, ChangeSteps::Statements(_)));
    }

    #[test]
    fn a_parameter_shows_its_arm() {
        let (old, new) = (Value::from(1.0), Value::from(2.0));
        assert_eq!(shows(true, Some(&old), Some(&new)), Some(true));
        assert_eq!(shows(true, Some(&old), Some(&old)), Some(false));
        assert_eq!(shows(false, Some(&old), Some(&old)), Some(true));
        assert_eq!(shows(false, Some(&old), Some(&new)), Some(false));
        assert_eq!((shows(true, None, Some(&old)), shows(true, Some(&old), None)), (None, None));
    }
}

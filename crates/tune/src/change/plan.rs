//! The changes of rules, with their statements. Pure functions.

use super::verify::{is_same, value_in};
use super::{ParameterChange, PlanError};
use crate::finding::Advice;
use crate::observation::Observation;
use crate::probe::parse_value;
use crate::rules::{Product, Rule, Setting};
use crate::value::Value;
use crate::version::Version;

/// The changes of all findings that can be applied.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// The changes, in the order of the findings.
    pub changes: Vec<ParameterChange>,
    /// The findings without a change, and why.
    pub left_out: Vec<PlanError>,
}

/// A value that a rule wants for one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The thing that the parameter belongs to, if several have one.
    pub subject: Option<String>,
    /// The present value, if the target shows it.
    pub old: Option<Value>,
    /// The value to set; `None` if only a command of the user knows it.
    pub new: Option<Value>,
}

/// All findings that can be applied. Of two for one parameter the first one counts, which has the larger effect.
pub fn plan_all(product: &Product, observation: &Observation, advice: &Advice) -> Plan {
    let mut plan = Plan::default();
    let mut seen: Vec<&str> = Vec::new();
    for finding in &advice.findings {
        if seen.contains(&finding.rule.as_str()) {
            continue;
        }
        seen.push(&finding.rule);
        match plan_rule(product, observation, advice, &finding.rule, None) {
            Err(error) => plan.left_out.push(error),
            Ok(changes) => add(&mut plan.changes, changes),
        }
    }
    plan
}

/// The changes of the named rules. With a value, which one rule may have, no finding is needed.
pub fn plan_rules(
    product: &Product,
    observation: &Observation,
    advice: &Advice,
    rules: &[String],
    value: Option<&str>,
) -> Result<Vec<ParameterChange>, PlanError> {
    let mut changes = Vec::new();
    for rule in rules {
        add(&mut changes, plan_rule(product, observation, advice, rule, value)?);
    }
    Ok(changes)
}

fn add(changes: &mut Vec<ParameterChange>, more: Vec<ParameterChange>) {
    for change in more {
        let is_same = |other: &ParameterChange| {
            (&other.parameter, &other.subject) == (&change.parameter, &change.subject)
        };
        if !changes.iter().any(is_same) {
            changes.push(change);
        }
    }
}

fn plan_rule(
    product: &Product,
    observation: &Observation,
    advice: &Advice,
    name: &str,
    value: Option<&str>,
) -> Result<Vec<ParameterChange>, PlanError> {
    let rule = rule_for(product, observation, name)?;
    let unit = product.parameters[&rule.parameter].unit;
    if let Some(reason) = rule.change.manual() {
        let finding = advice.findings.iter().find(|finding| finding.rule == name);
        let template = || rule.change.templates(&rule.parameter, unit).0;
        let change = finding.map_or_else(template, |finding| finding.change.clone());
        return Err(PlanError::Manual { rule: name.to_owned(), reason, change });
    }
    let wanted = wanted(product, observation, advice, rule, value)?.into_iter();
    let changes = wanted.map(|wanted| change_of(product, observation, rule, wanted));
    let mut changes = changes.collect::<Result<Vec<_>, _>>()?;
    if value.is_some() {
        changes.iter_mut().for_each(note_given_value);
    }
    Ok(changes)
}

/// The rule knows the risk of its own suggestion only.
fn note_given_value(change: &mut ParameterChange) {
    const NOTE: &str =
        "the value is given, not suggested: the risk is that of the value which the rule suggests";
    change.also = Some(change.also.take().map_or_else(|| NOTE.to_owned(), |also| format!("{also}; {NOTE}")));
}

/// The rule of that name, if it holds for the version and the role of the target.
pub fn rule_for<'a>(
    product: &'a Product,
    observation: &Observation,
    name: &str,
) -> Result<&'a Rule, PlanError> {
    let Some(rule) = product.rule(name) else {
        let ends = |rule: &&Rule| name.split('-').any(|word| word.len() > 3 && rule.id.contains(word));
        let similar = product.rules.iter().filter(ends).take(3).map(|rule| rule.id.clone()).collect();
        return Err(PlanError::UnknownRule {
            rule: name.to_owned(),
            product: product.title.clone(),
            similar,
        });
    };
    let version = observation.version.as_deref().and_then(Version::parse);
    let has_version = rule
        .versions
        .get(&observation.variant)
        .is_some_and(|range| version.as_ref().map_or(range.is_all(), |version| range.contains(version)));
    let has_role =
        rule.roles.is_empty() || observation.role.as_ref().is_some_and(|role| rule.roles.contains(role));
    if has_version && has_role {
        return Ok(rule);
    }
    let words = [Some(&observation.variant), observation.version.as_ref(), observation.role.as_ref()];
    let target = words.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ");
    Err(PlanError::OtherVersion { rule: name.to_owned(), target })
}

/// The values that a rule wants: of its findings, or the given one for each thing that has the parameter.
pub fn wanted(
    product: &Product,
    observation: &Observation,
    advice: &Advice,
    rule: &Rule,
    value: Option<&str>,
) -> Result<Vec<Wanted>, PlanError> {
    let unit = product.parameters[&rule.parameter].unit;
    let (rule_name, parameter) = (rule.id.clone(), rule.parameter.clone());
    let given = value.map(|text| {
        parse_value(text, unit).ok_or_else(|| PlanError::WrongValue {
            text: text.to_owned(),
            parameter: parameter.clone(),
            unit,
        })
    });
    let given = given.transpose()?;
    let findings: Vec<_> = advice.findings.iter().filter(|finding| finding.rule == rule.id).collect();
    if !findings.is_empty() {
        let each = findings.into_iter().map(|finding| {
            let new = given.clone().or_else(|| finding.suggested.clone());
            let advice = finding.advice.clone().unwrap_or_default();
            let no_value =
                || PlanError::NoValue { rule: rule_name.clone(), parameter: parameter.clone(), advice };
            let new = new.ok_or_else(no_value)?;
            Ok(Wanted { subject: finding.subject.clone(), old: finding.current.clone(), new: Some(new) })
        });
        return each.collect();
    }
    let Some(given) = given else {
        let undecided = advice.undecided.iter().find(|undecided| undecided.rule == rule.id);
        let undecided = undecided.map(|it| it.missing.clone()).unwrap_or_default();
        return Err(PlanError::NoFinding { rule: rule_name, parameter, undecided });
    };
    let subjects: Vec<Option<String>> = match &product.parameters[&rule.parameter].group {
        None => vec![None],
        Some(kind) => {
            observation.groups.get(kind).into_iter().flatten().map(|group| Some(group.name.clone())).collect()
        }
    };
    let each = subjects.into_iter().map(|subject| {
        let old = value_in(
            &observation.settings,
            &observation.groups,
            product,
            &rule.parameter,
            subject.as_deref(),
        );
        Wanted { subject, old, new: Some(given.clone()) }
    });
    Ok(each.collect())
}

/// The present values of changed parameters, in the same order.
pub fn present_values(
    product: &Product,
    observation: &Observation,
    changes: &[ParameterChange],
) -> Vec<Option<Value>> {
    let Observation { settings, groups, .. } = observation;
    let value =
        |it: &ParameterChange| value_in(settings, groups, product, &it.parameter, it.subject.as_deref());
    changes.iter().map(value).collect()
}

fn change_of(
    product: &Product,
    observation: &Observation,
    rule: &Rule,
    wanted: Wanted,
) -> Result<ParameterChange, PlanError> {
    let unit = product.parameters[&rule.parameter].unit;
    let (id, parameter) = (rule.id.clone(), rule.parameter.clone());
    let Some(old) = wanted.old else {
        let hidden = observation.hidden.iter().find(|hidden| hidden.name == parameter);
        let reason = hidden.map(|hidden| hidden.reason.clone());
        return Err(PlanError::UnknownCurrent { rule: id, parameter, reason });
    };
    let leaves_open = || PlanError::NoValue {
        rule: rule.id.clone(),
        parameter: rule.parameter.clone(),
        advice: rule.advice.clone().unwrap_or_default(),
    };
    let new = wanted.new.ok_or_else(leaves_open)?;
    if is_same(&old, &new) {
        return Err(PlanError::NoChange { rule: id, parameter, value: unit.format(&new) });
    }
    let setting = Setting { parameter: &rule.parameter, unit, subject: wanted.subject.as_deref() };
    let restored = rule.change.restores().and_then(|name| observation.settings.get(name));
    let manual = |reason| PlanError::Manual {
        rule: rule.id.clone(),
        reason,
        change: rule.change.templates(&rule.parameter, unit).0,
    };
    let statements = rule.change.statements(setting, (&old, &new), restored).map_err(manual)?;
    let is_unset = observation.unset.contains(&(wanted.subject.clone(), parameter.clone()));
    let undo = statements.reset.filter(|_| is_unset).unwrap_or(statements.undo);
    Ok(ParameterChange {
        rule: id,
        parameter,
        subject: wanted.subject,
        unit,
        old,
        new,
        restart: rule.restart,
        change: statements.change,
        keep: statements.keep,
        undo,
        grant: rule.change.grant().map(str::to_owned),
        also: rule.change.also().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::advise::advise;
    use crate::observation::Group;

    fn product(id: &str) -> &'static Product {
        Product::named(id).unwrap()
    }

    fn observation(variant: &str, version: &str, settings: &[(&str, Value)]) -> Observation {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let version = Some(version.to_owned());
        Observation { variant: variant.into(), version, settings, ..Observation::default() }
    }

    fn plan(
        id: &str,
        observation: &Observation,
        rule: &str,
        value: Option<&str>,
    ) -> Result<Vec<ParameterChange>, PlanError> {
        let advice = advise(product(id), observation);
        plan_rules(product(id), observation, &advice, &[rule.to_owned()], value)
    }

    fn texts(statements: &[crate::statement::Statement]) -> Vec<String> {
        statements.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_finding_becomes_statements_for_both_ways() {
        let observation = observation("mysql", "8.0.36", &[("innodb_flush_log_at_trx_commit", 0.0.into())]);
        let changes = plan("mysql", &observation, "mysql-flush-log-never", None).unwrap();
        assert_eq!(texts(&changes[0].change), ["SET GLOBAL innodb_flush_log_at_trx_commit = 1"]);
        assert_eq!(texts(&changes[0].undo), ["SET GLOBAL innodb_flush_log_at_trx_commit = 0"]);
        assert_eq!((&changes[0].old, &changes[0].new), (&0.0.into(), &1.0.into()));
        assert!(changes[0].grant.as_ref().unwrap().contains("SYSTEM_VARIABLES_ADMIN"));
        assert!(changes[0].also.as_ref().is_none_or(|also| !also.contains("is given")));
    }

    #[test]
    fn a_parameter_of_postgresql_that_had_its_default_gets_it_back() {
        let mut observation = observation("postgresql", "15.18", &[("autovacuum", "off".into())]);
        let undo = |observation: &Observation| {
            texts(&plan("postgresql", observation, "postgresql-autovacuum", None).unwrap()[0].undo)
        };
        assert_eq!(undo(&observation)[0], "ALTER SYSTEM SET autovacuum = 'off'");
        observation.unset = BTreeSet::from([(None, "autovacuum".to_owned())]);
        assert_eq!(undo(&observation)[0], "ALTER SYSTEM RESET autovacuum");
    }

    #[test]
    fn the_kernel_gets_the_share_back_that_bytes_have_replaced() {
        let settings = [("vm.dirty_bytes", 0.0.into()), ("vm.dirty_ratio", 20.0.into())];
        let mut observation = observation("linux", "6.1.0", &settings);
        observation.role = Some("server".into());
        let changes = plan("linux", &observation, "linux-dirty-bytes", Some("1073741824")).unwrap();
        assert_eq!(texts(&changes[0].change), ["sysctl -w vm.dirty_bytes=1073741824"]);
        assert_eq!(texts(&changes[0].undo), ["sysctl -w vm.dirty_ratio=20"]);
    }

    #[test]
    fn a_rule_without_a_finding_needs_a_value() {
        let observation = observation("redis", "7.0.15", &[("appendfsync", "everysec".into())]);
        let error = plan("redis", &observation, "redis-appendfsync", None).unwrap_err();
        assert!(
            matches!(error, PlanError::NoFinding { .. }) && error.to_string().contains("--value"),
            "{error}"
        );
        let changes = plan("redis", &observation, "redis-appendfsync", Some("always")).unwrap();
        assert_eq!(texts(&changes[0].change), ["CONFIG SET appendfsync always"]);
        assert_eq!(texts(&changes[0].keep), ["CONFIG REWRITE"]);
        assert!(changes[0].also.as_ref().unwrap().contains("the value which the rule suggests"));
        let same = plan("redis", &observation, "redis-appendfsync", Some("EVERYSEC")).unwrap_err();
        assert!(matches!(same, PlanError::NoChange { .. }), "{same}");
    }

    #[test]
    fn a_value_with_a_factor_is_a_number_and_another_text_is_refused() {
        let observation = observation("redis", "7.0.15", &[("maxmemory", 0.0.into())]);
        let changes = plan("redis", &observation, "redis-maxmemory", Some("64mb")).unwrap();
        assert_eq!(texts(&changes[0].change), ["CONFIG SET maxmemory 67108864"]);
        let error = plan("redis", &observation, "redis-maxmemory", Some("much")).unwrap_err();
        assert!(matches!(error, PlanError::WrongValue { .. }), "{error}");
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let observation = observation("redis", "7.0.15", &[("io-threads", 1.0.into())]);
        let error = |rule: &str, value| plan("redis", &observation, rule, value).unwrap_err().to_string();
        let manual = error("redis-io-threads", Some("4"));
        assert!(
            manual.contains("reads this setting from its file") && manual.contains("redis.conf"),
            "{manual}"
        );
        assert!(error("redis-io-thread", None).contains("do you mean"));
        assert!(error("redis-appendfsync", Some("no")).contains("would be no undo"));
        assert!(error("redis-hash-ziplist-entries", Some("64")).contains("not a rule for redis 7.0.15"));
    }

    #[test]
    fn each_table_is_a_change_of_its_own() {
        let name = "table.autovacuum_vacuum_scale_factor".to_owned();
        let table = |table: &str| Group {
            name: table.into(),
            settings: BTreeMap::from([(name.clone(), 0.2.into())]),
        };
        let mut observation = observation("postgresql", "15.18", &[]);
        observation.groups =
            BTreeMap::from([("table".to_owned(), vec![table("public.a"), table("public.\"B\"")])]);
        observation.unset = BTreeSet::from([(Some("public.a".to_owned()), name)]);
        let changes =
            plan("postgresql", &observation, "postgresql-autovacuum-scale-factor", Some("0.01")).unwrap();
        assert_eq!(
            texts(&changes[1].change),
            ["ALTER TABLE public.\"B\" SET (autovacuum_vacuum_scale_factor = '0.01')"]
        );
        assert_eq!(texts(&changes[0].undo), ["ALTER TABLE public.a RESET (autovacuum_vacuum_scale_factor)"]);
        assert_eq!(
            texts(&changes[1].undo),
            ["ALTER TABLE public.\"B\" SET (autovacuum_vacuum_scale_factor = '0.2')"]
        );
    }

    #[test]
    fn all_takes_what_can_be_applied_and_says_what_cannot() {
        let settings =
            [("appendonly", "yes".into()), ("appendfsync", "no".into()), ("tcp-backlog", 511.0.into())];
        let mut observation = observation("redis", "7.0.15", &settings);
        let increase = crate::expression::Increase { before: 0.0, after: 9.0, window_s: 9.0 };
        observation.counters.insert("ListenOverflows".into(), increase);
        observation.facts.insert("somaxconn".into(), 4096.0.into());
        let advice = advise(product("redis"), &observation);
        let plan = plan_all(product("redis"), &observation, &advice);
        assert_eq!(plan.changes.iter().map(|it| it.rule.as_str()).collect::<Vec<_>>(), ["redis-appendfsync"]);
        assert!(
            plan.left_out
                .iter()
                .any(|it| matches!(it, PlanError::Manual { rule, .. } if rule == "redis-tcp-backlog")),
            "{plan:?}"
        );
    }
}

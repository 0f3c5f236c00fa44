//! Applies the rules of a product to an observation. A pure function.

use std::collections::BTreeSet;

use crate::expression::{Increase, Scope};
use crate::finding::{Advice, Evidence, Finding, Undecided};
use crate::observation::{Group, Hidden, Observation};
use crate::rules::{CURRENT, Product, Rule, Setting, Values};
use crate::value::Value;
use crate::version::{Version, VersionRange};

/// Applies all rules that the version and the role of the observation have.
pub fn advise(product: &Product, observation: &Observation) -> Advice {
    let version = KnownVersion::of(product, observation);
    let mut advice = Advice { note: version.note(product, observation), ..Advice::default() };
    for rule in &product.rules {
        let has_version = rule.versions.get(&observation.variant).is_some_and(|range| version.has(range));
        let has_role =
            rule.roles.is_empty() || observation.role.as_ref().is_some_and(|role| rule.roles.contains(role));
        if has_version && has_role {
            apply(product, rule, observation, &mut advice);
        }
    }
    advice
        .findings
        .sort_by(|a, b| (a.effect.level, &a.rule, &a.subject).cmp(&(b.effect.level, &b.rule, &b.subject)));
    advice.hidden = needed(&observation.hidden, &advice.undecided);
    advice
}

/// The hidden values that undecided rules need, sorted.
fn needed(hidden: &[Hidden], undecided: &[Undecided]) -> Vec<Hidden> {
    let is_needed = |it: &&Hidden| undecided.iter().any(|rule| rule.missing.contains(&it.name));
    let needed: BTreeSet<&Hidden> = hidden.iter().filter(is_needed).collect();
    needed.into_iter().cloned().collect()
}

/// The version of the observation, as far as the rules know it.
enum KnownVersion {
    /// The rules know the version.
    Known(Version),
    /// The rules know the variant, but not this version.
    Unknown,
    /// The rules do not know the variant.
    NoVariant,
}

impl KnownVersion {
    fn of(product: &Product, observation: &Observation) -> Self {
        let Some(known) = product.variants.get(&observation.variant) else { return Self::NoVariant };
        let version = observation.version.as_deref().and_then(Version::parse);
        version.filter(|version| known.contains(version)).map_or(Self::Unknown, Self::Known)
    }

    /// Whether a rule with this range applies. A rule for all versions applies to an unknown one.
    fn has(&self, range: &VersionRange) -> bool {
        match self {
            Self::Known(version) => range.contains(version),
            Self::Unknown => range.is_all(),
            Self::NoVariant => false,
        }
    }

    fn note(&self, product: &Product, observation: &Observation) -> Option<String> {
        let variant = &observation.variant;
        match self {
            Self::Known(_) => None,
            Self::NoVariant => Some(format!("The rules do not know `{variant}`, so no rule was applied.")),
            Self::Unknown => {
                let version = observation.version.as_deref().unwrap_or("that the target does not name");
                let known = &product.variants[variant];
                Some(format!(
                    "The rules do not know the version {version} of {variant} (they know {known}). Only rules that hold for \
                     all versions were applied."
                ))
            }
        }
    }
}

/// Applies one rule: once, or for each thing that has the parameter.
fn apply(product: &Product, rule: &Rule, observation: &Observation, advice: &mut Advice) {
    let Some(kind) = &product.parameters[&rule.parameter].group else {
        return apply_to(product, rule, RuleScope { rule, observation, group: None }, advice);
    };
    let Some(groups) = observation.groups.get(kind) else {
        // The target does not show its things of this kind.
        let missing = vec![rule.parameter.clone()];
        advice.undecided.push(Undecided {
            rule: rule.id.clone(),
            parameter: rule.parameter.clone(),
            missing,
        });
        return;
    };
    for group in groups {
        apply_to(product, rule, RuleScope { rule, observation, group: Some(group) }, advice);
    }
}

fn apply_to(product: &Product, rule: &Rule, scope: RuleScope<'_>, advice: &mut Advice) {
    let decided = rule.when.evaluate(&scope).and_then(|found| {
        if found != Value::Boolean(true) {
            return Ok(None);
        }
        let suggested = rule.suggest.as_ref().map(|formula| formula.evaluate(&scope)).transpose()?;
        Ok(Some(suggested))
    });
    match decided {
        Ok(None) => {}
        Ok(Some(suggested)) => {
            let current = scope.value(CURRENT);
            // A formula can give the value that is already there.
            if suggested.is_none() || suggested != current {
                advice.findings.push(finding(product, rule, &scope, current, suggested));
            }
        }
        Err(missing) => {
            let undecided = Undecided {
                rule: rule.id.clone(),
                parameter: rule.parameter.clone(),
                missing: missing
                    .into_iter()
                    .map(|name| if name == CURRENT { rule.parameter.clone() } else { name })
                    .collect(),
            };
            if !advice.undecided.contains(&undecided) {
                advice.undecided.push(undecided);
            }
        }
    }
}

fn finding(
    product: &Product,
    rule: &Rule,
    scope: &RuleScope<'_>,
    current: Option<Value>,
    suggested: Option<Value>,
) -> Finding {
    let subject = scope.group.map(|group| group.name.clone());
    let evidence: Vec<Evidence> =
        rule.evidence.iter().filter_map(|name| evidence(product, scope, name)).collect();
    let unit = product.parameters[&rule.parameter].unit;
    let restored = rule.change.restores().and_then(|name| scope.value(name));
    let (change, undo) = rule.change.texts(Values {
        setting: Setting { parameter: &rule.parameter, unit, subject: subject.as_deref() },
        current: current.as_ref(),
        suggested: suggested.as_ref(),
        restored: restored.as_ref(),
    });
    Finding {
        rule: rule.id.clone(),
        parameter: rule.parameter.clone(),
        unit,
        advice: rule.advice.clone(),
        why: rule.why.clone(),
        effect: rule.effect.clone(),
        risks: rule.risks.clone(),
        restart: rule.restart,
        change,
        undo,
        manual: rule.change.manual(),
        source: rule.source.clone(),
        evidence,
        subject,
        current,
        suggested,
    }
}

fn evidence(product: &Product, scope: &RuleScope<'_>, name: &str) -> Option<Evidence> {
    let (name, unit) = (name.to_owned(), product.unit(name)?);
    if let Some(value) = scope.value(&name) {
        return Some(Evidence { name, unit, value, increase: None, window_s: None });
    }
    let counter = scope.counter(&name)?;
    let increase = Some(Value::Number(counter.delta()));
    Some(Evidence {
        name,
        unit,
        value: Value::Number(counter.after),
        increase,
        window_s: Some(counter.window_s),
    })
}

/// The values that one rule reads: those of its group, then those of the target, then facts.
struct RuleScope<'a> {
    rule: &'a Rule,
    observation: &'a Observation,
    group: Option<&'a Group>,
}

impl Scope for RuleScope<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let name = if name == CURRENT { &self.rule.parameter } else { name };
        let own = self.group.and_then(|group| group.settings.get(name));
        let shared = || self.observation.settings.get(name).or_else(|| self.observation.facts.get(name));
        own.or_else(shared).cloned()
    }

    fn counter(&self, name: &str) -> Option<Increase> {
        self.observation.counters.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const FACTS: &str = "[facts.memory]\nunit = 'bytes'\nmeaning = 'memory'";

    /// A product with rules of these lines.
    fn product(rules: &[&str]) -> Product {
        let mut text = String::from(
            "
            [product]
            id = 'p'
            title = 'P'
            variants = { p = '>=1, <9', fork = '>=1, <4' }
            roles = ['server', 'client']
            [parameters]
            size = { unit = 'bytes' }
            old = { unit = 'count', versions = { p = '<5' } }
            depth = { unit = 'count', group = 'disk' }
            [setters]
            it = { mysql = ['SET {name}.{parameter} = {value}'] }
            [counters]
            reads = { unit = 'count', meaning = 'reads' }
            ",
        );
        for rule in rules {
            text.push_str("[[rule]]\nwhy = 'w'\nrestart = 'dynamic'\nsource = 's'\nset = 'it'\n");
            text.push_str(rule);
            if !rule.contains("effect") {
                text.push_str("\neffect = { level = 'small', text = 't' }");
            }
            text.push('\n');
        }
        Product::read(&text, FACTS).unwrap()
    }

    fn observation(settings: &[(&str, f64)]) -> Observation {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), Value::Number(*value))).collect();
        Observation { variant: "p".into(), version: Some("2.1".into()), settings, ..Observation::default() }
    }

    const SIZE: &str = "id = 'size'\nparameter = 'size'\nwhen = 'current < 10'\nsuggest = '10'";
    const OLD: &str = "id = 'old'\nparameter = 'old'\nwhen = 'current < 10'\nsuggest = '10'";

    fn found(advice: &Advice) -> Vec<&str> {
        advice.findings.iter().map(|finding| finding.rule.as_str()).collect()
    }

    #[test]
    fn a_finding_says_what_to_do_and_how_to_undo_it() {
        let advice = advise(&product(&[SIZE]), &observation(&[("size", 4.0)]));
        let finding = &advice.findings[0];
        assert_eq!(
            (finding.change.as_str(), finding.undo.as_str()),
            ("SET {name}.size = 10", "SET {name}.size = 4")
        );
        assert_eq!(
            (&finding.current, &finding.suggested),
            (&Some(Value::from(4.0)), &Some(Value::from(10.0)))
        );
        assert!(advise(&product(&[SIZE]), &observation(&[("size", 10.0)])).findings.is_empty());
    }

    #[test]
    fn findings_are_ordered_by_their_effect() {
        let large = OLD.to_owned() + "\neffect = { level = 'large', text = 't' }";
        let advice = advise(&product(&[SIZE, &large]), &observation(&[("size", 1.0), ("old", 1.0)]));
        assert_eq!(found(&advice), ["old", "size"]);
    }

    #[test]
    fn a_version_without_the_parameter_has_no_finding() {
        let mut observation = observation(&[("size", 1.0), ("old", 1.0)]);
        observation.version = Some("5.0-log".into());
        let advice = advise(&product(&[SIZE, OLD]), &observation);
        assert_eq!((found(&advice), &advice.note), (vec!["size"], &None));
        observation.variant = "fork".into();
        observation.version = Some("3".into());
        assert_eq!(found(&advise(&product(&[SIZE, OLD]), &observation)), ["size"]);
    }

    #[test]
    fn an_unknown_version_gets_the_rules_for_all_versions_and_a_note() {
        let mut observation = observation(&[("size", 1.0), ("old", 1.0)]);
        for version in [Some("9.0"), Some("devel"), None] {
            observation.version = version.map(str::to_owned);
            let advice = advise(&product(&[SIZE, OLD]), &observation);
            assert_eq!(found(&advice), ["size"]);
            assert!(advice.note.unwrap().contains("they know >=1, <9"));
        }
        observation.variant = "other".into();
        let advice = advise(&product(&[SIZE, OLD]), &observation);
        assert!(advice.findings.is_empty() && advice.note.unwrap().contains("do not know `other`"));
    }

    #[test]
    fn a_rule_for_a_role_needs_that_role() {
        let rule = SIZE.to_owned() + "\nroles = ['client']";
        let mut observation = observation(&[("size", 1.0)]);
        assert!(advise(&product(&[&rule]), &observation).findings.is_empty());
        observation.role = Some("client".into());
        assert_eq!(found(&advise(&product(&[&rule]), &observation)), ["size"]);
    }

    #[test]
    fn a_rule_that_lacks_a_value_is_undecided() {
        let rule =
            "id = 'r'\nparameter = 'size'\nwhen = 'current < memory and rate(reads) > 1'\nsuggest = '1'";
        let advice = advise(&product(&[rule]), &observation(&[]));
        assert_eq!(advice.undecided[0].missing, ["size", "memory", "reads"]);
        assert!(advice.findings.is_empty());
    }

    #[test]
    fn hidden_values_that_undecided_rules_need_have_their_reason() {
        let rule = "id = 'r'\nparameter = 'size'\nwhen = 'current < memory'\nsuggest = '1'";
        let mut observation = observation(&[("size", 1.0)]);
        let memory = Hidden::new("memory", "the grant PROCESS is missing");
        observation.hidden = vec![memory.clone(), Hidden::new("reads", "not counted"), memory.clone()];
        assert_eq!(advise(&product(&[rule]), &observation).hidden, [memory]);
    }

    #[test]
    fn each_thing_of_a_group_has_findings_of_its_own() {
        let rule = "id = 'd'\nparameter = 'depth'\nwhen = 'current < size'\nsuggest = 'size'";
        let mut observation = observation(&[("size", 8.0)]);
        let group = |name: &str, depth: f64| Group {
            name: name.into(),
            settings: BTreeMap::from([("depth".to_owned(), Value::Number(depth))]),
        };
        observation.groups =
            BTreeMap::from([("disk".to_owned(), vec![group("b", 1.0), group("a", 8.0), group("c", 2.0)])]);
        let advice = advise(&product(&[rule]), &observation);
        let subjects: Vec<_> = advice.findings.iter().map(|finding| finding.subject.as_deref()).collect();
        assert_eq!(subjects, [Some("b"), Some("c")]);
        assert_eq!(advice.findings[0].change, "SET b.depth = 8");
    }

    #[test]
    fn evidence_has_the_increase_and_the_window_of_counters() {
        let rule = SIZE.to_owned() + "\nevidence = ['reads', 'size', 'memory']";
        let mut observation = observation(&[("size", 4.0)]);
        let reads = Increase { before: 10.0, after: 40.0, window_s: 60.0 };
        observation.counters.insert("reads".into(), reads);
        let advice = advise(&product(&[&rule]), &observation);
        let json = serde_json::to_value(&advice.findings[0].evidence).unwrap();
        let expected = serde_json::json!([
            { "name": "reads", "unit": "count", "value": 40, "increase": 30, "window_s": 60.0 },
            { "name": "size", "unit": "bytes", "value": 4 },
        ]);
        assert_eq!(json, expected);
    }
}

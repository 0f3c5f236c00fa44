//! Tests of the rule files: each is valid, and each rule has an example that shows and cures its finding.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tune::{FACTS, FILES, Group, Increase, Observation, Product, Rule, Value, advise};

/// The time between the two moments of the examples, in seconds.
const WINDOW_S: f64 = 60.0;

/// A version that rules for all of these versions know, for examples that name none.
const VERSIONS: [(&str, &str); 10] = [
    ("cassandra", "4.1.3"),
    ("elasticsearch", "7.17.0"),
    ("gsn", "1.1.8"),
    ("hbase", "2.6.1"),
    ("hitsdb", "2.4.2"),
    ("linux", "6.1.0-18-amd64"),
    ("mysql", "8.0.36"),
    ("postgresql", "15.18 (Debian 15.18-0+deb12u1)"),
    ("redis", "7.0.15"),
    ("tachograph", "0.1.0"),
];

/// An example of a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    variant: Option<String>,
    version: Option<String>,
    role: Option<String>,
    #[serde(flatten)]
    values: Values,
    /// The value that the finding suggests.
    suggested: Option<Value>,
    /// A version that has no finding.
    absent: Option<String>,
    /// Changes that remove the finding.
    clean: Option<Values>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields)]
struct Values {
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    #[serde(default)]
    facts: BTreeMap<String, Value>,
    #[serde(default)]
    counters: BTreeMap<String, [f64; 2]>,
}

fn examples(product: &Product) -> BTreeMap<String, Example> {
    let path = format!("{}/rules/examples/{}.toml", env!("CARGO_MANIFEST_DIR"), product.id);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn example_of<'a>(examples: &'a BTreeMap<String, Example>, rule: &Rule) -> &'a Example {
    examples.get(&rule.id).unwrap_or_else(|| panic!("`{}` has no example", rule.id))
}

/// The observation of an example. Settings of a group are those of one thing of that kind.
fn observation(product: &Product, rule: &Rule, example: &Example, values: &Values) -> Observation {
    let (_, version) =
        VERSIONS.into_iter().find(|(id, _)| *id == product.id).expect("VERSIONS has every product");
    let mut observation = Observation {
        variant: example.variant.clone().unwrap_or_else(|| product.id.clone()),
        version: Some(example.version.clone().unwrap_or_else(|| version.to_owned())),
        role: example.role.clone().or_else(|| product.roles.first().cloned()),
        facts: values.facts.clone(),
        ..Observation::default()
    };
    let increase = |[before, after]: [f64; 2]| Increase { before, after, window_s: WINDOW_S };
    observation.counters =
        values.counters.iter().map(|(name, pair)| (name.clone(), increase(*pair))).collect();
    for (name, value) in &values.settings {
        let parameter =
            &product.parameters.get(name).unwrap_or_else(|| panic!("{}: no parameter `{name}`", rule.id));
        let settings = match &parameter.group {
            None => &mut observation.settings,
            Some(kind) => {
                let group = Group { name: "thing".into(), ..Group::default() };
                &mut observation.groups.entry(kind.clone()).or_insert_with(|| vec![group])[0].settings
            }
        };
        settings.insert(name.clone(), value.clone());
    }
    observation
}

/// The suggestion of the rule: `None` without a finding.
fn suggestion(product: &Product, rule: &Rule, observation: &Observation) -> Option<Option<Value>> {
    let advice = advise(product, observation);
    let missing = advice.undecided.iter().find(|it| it.rule == rule.id);
    assert!(missing.is_none(), "the example of `{}` lacks {missing:?}", rule.id);
    advice.findings.into_iter().find(|finding| finding.rule == rule.id).map(|finding| finding.suggested)
}

fn with(values: &Values, changes: &Values) -> Values {
    let mut changed = values.clone();
    changed.settings.extend(changes.settings.clone());
    changed.facts.extend(changes.facts.clone());
    changed.counters.extend(changes.counters.clone());
    changed
}

#[test]
fn every_file_is_valid_and_every_rule_has_a_name_of_its_own() {
    let mut ids = BTreeSet::new();
    for (name, text) in FILES {
        let product = Product::read(text, FACTS).unwrap_or_else(|error| panic!("{name}.toml: {error}"));
        assert_eq!(product.id, name);
        for rule in &product.rules {
            assert!(rule.id.starts_with(&format!("{name}-")), "{name}: {}", rule.id);
            assert!(ids.insert(rule.id.clone()), "{} is there twice", rule.id);
        }
    }
    assert!(ids.len() > 100, "{}", ids.len());
}

#[test]
fn every_declared_name_is_used() {
    let mut unused = Vec::new();
    for product in Product::all() {
        let used: BTreeSet<&str> = product
            .rules
            .iter()
            .flat_map(|rule| {
                let expressions = std::iter::once(&rule.when).chain(&rule.suggest);
                let names = expressions.flat_map(|expression| expression.names());
                names.chain(rule.evidence.iter().map(String::as_str)).chain([rule.parameter.as_str()])
            })
            .collect();
        let shared = ["memory_bytes", "cores"];
        let declared = product.parameters.keys().chain(product.counters.keys()).chain(product.facts.keys());
        let idle = declared.filter(|name| !shared.contains(&name.as_str()) && !used.contains(name.as_str()));
        unused.extend(idle.map(|name| format!("{}: {name}", product.id)));
    }
    assert!(unused.is_empty(), "no rule uses {unused:?}");
}

#[test]
fn the_example_of_a_rule_has_its_finding() {
    for product in Product::all() {
        let examples = examples(product);
        for name in examples.keys() {
            assert!(product.rules.iter().any(|rule| rule.id == *name), "there is no rule `{name}`");
        }
        for rule in &product.rules {
            let example = example_of(&examples, rule);
            let found = suggestion(product, rule, &observation(product, rule, example, &example.values));
            let found = found.unwrap_or_else(|| panic!("the example of `{}` has no finding", rule.id));
            assert_eq!(found, example.suggested, "{}", rule.id);
        }
    }
}

#[test]
fn the_texts_of_a_finding_have_values_in_place_of_names() {
    for product in Product::all() {
        let examples = examples(product);
        for rule in &product.rules {
            let example = example_of(&examples, rule);
            let observation = observation(product, rule, example, &example.values);
            let finding =
                advise(product, &observation).findings.into_iter().find(|finding| finding.rule == rule.id);
            let finding = finding.unwrap_or_else(|| panic!("the example of `{}` has no finding", rule.id));
            for text in [&finding.change, &finding.undo] {
                let names =
                    product.parameters.keys().chain(product.counters.keys()).chain(product.facts.keys());
                let names = names.map(String::as_str).chain(["current", "suggested", "name"]);
                let left: Vec<&str> = names.filter(|name| text.contains(&format!("{{{name}}}"))).collect();
                assert!(left.is_empty() && !text.contains("<the "), "{}: {left:?}: {text}", rule.id);
            }
        }
    }
}

#[test]
fn a_finding_is_gone_after_the_change() {
    for product in Product::all() {
        let examples = examples(product);
        for rule in &product.rules {
            let example = example_of(&examples, rule);
            let mut cured = match &example.clean {
                Some(changes) => with(&example.values, changes),
                None => example.values.clone(),
            };
            if let Some(suggested) = example.suggested.as_ref().filter(|_| example.clean.is_none()) {
                cured.settings.insert(rule.parameter.clone(), suggested.clone());
                // The range of ports is a setting as a text and a fact as a number.
                if suggested == &Value::from("1024 65535") {
                    cured.facts.insert("local_ports".into(), Value::from(64_512.0));
                }
            }
            let found = suggestion(product, rule, &observation(product, rule, example, &cured));
            assert_eq!(found, None, "{}", rule.id);
        }
    }
}

#[test]
fn a_rule_is_silent_for_versions_and_variants_that_it_does_not_have() {
    let mut incomplete = Vec::new();
    for product in Product::all() {
        let examples = examples(product);
        for rule in &product.rules {
            let example = example_of(&examples, rule);
            let mut observation = observation(product, rule, example, &example.values);
            let bounded = rule.versions.get(&observation.variant).is_some_and(|range| !range.is_all());
            if bounded && example.absent.is_none() {
                incomplete.push(rule.id.clone());
            }
            let others = product.variants.keys().filter(|variant| !rule.versions.contains_key(*variant));
            for other in others {
                let observation = Observation { variant: other.clone(), ..observation.clone() };
                assert_eq!(suggestion(product, rule, &observation), None, "{} for {other}", rule.id);
            }
            if let Some(absent) = &example.absent {
                observation.version = Some(absent.clone());
                assert_eq!(suggestion(product, rule, &observation), None, "{} for {absent}", rule.id);
            }
        }
    }
    assert!(incomplete.is_empty(), "the examples of {incomplete:?} need `absent`");
}

#[test]
fn roles_without_the_rule_have_no_finding() {
    let product = Product::named("linux").unwrap();
    let examples = examples(product);
    for rule in product.rules.iter().filter(|rule| !rule.roles.is_empty()) {
        let example = example_of(&examples, rule);
        let mut observation = observation(product, rule, example, &example.values);
        let other = if rule.roles == ["server"] { "generator" } else { "server" };
        observation.role = Some(other.to_owned());
        assert_eq!(suggestion(product, rule, &observation), None, "{}", rule.id);
    }
}

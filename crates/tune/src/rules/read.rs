//! Reads and validates the file of a product.

use std::collections::{BTreeMap, BTreeSet};

use super::error::RuleError;
use super::raw::{RawFacts, RawFile, RawName, RawParameter, RawRule};
use super::read_change::{Setters, change};
use super::rule::{CURRENT, Parameter, Product, Ranges, Risk, RiskKind, Rule, RuleNames};
use crate::expression::Expression;
use crate::unit::Unit;
use crate::value::ValueKind;

impl Product {
    /// Reads the file of a product. `facts` is the text of the file with the facts that all products share.
    pub fn read(text: &str, facts: &str) -> Result<Self, RuleError> {
        let file: RawFile = toml::from_str(text).map_err(|error| RuleError::new("file", error))?;
        let shared: RawFacts = toml::from_str(facts).map_err(|error| RuleError::new("facts", error))?;
        let variants = ranges("variants", &file.product.variants)?;
        let mut product = Self {
            id: file.product.id,
            title: file.product.title,
            variants,
            roles: file.product.roles,
            parameters: BTreeMap::new(),
            counters: names(file.counters)?,
            facts: names(shared.facts)?.into_iter().chain(names(file.facts)?).collect(),
            rules: Vec::new(),
        };
        for (name, raw) in file.parameters {
            let parameter = parameter(&product, &name, raw)?;
            product.parameters.insert(name, parameter);
        }
        product.check_names()?;
        let setters = Setters::read(file.setters, file.product.process)?;
        for raw in file.rules {
            let rule = rule(&product, &setters, raw)?;
            product.rules.push(rule);
        }
        Ok(product)
    }

    /// Refuses a name that is declared twice, and names that expressions reserve.
    fn check_names(&self) -> Result<(), RuleError> {
        let mut seen = BTreeSet::from([CURRENT, "and", "or", "not", "true", "false"]);
        let names = self.parameters.keys().chain(self.counters.keys()).chain(self.facts.keys());
        for name in names {
            if !seen.insert(name.as_str()) {
                return Err(RuleError::new(name, "the name is declared twice or is reserved"));
            }
        }
        Ok(())
    }
}

fn ranges(subject: &str, raw: &BTreeMap<String, String>) -> Result<Ranges, RuleError> {
    let range = |(variant, text): (&String, &String)| {
        let range = text.parse().map_err(|error| RuleError::new(format!("{subject}, {variant}"), error))?;
        Ok((variant.clone(), range))
    };
    raw.iter().map(range).collect()
}

fn names(raw: BTreeMap<String, RawName>) -> Result<BTreeMap<String, (Unit, String)>, RuleError> {
    let name = |(name, raw): (String, RawName)| match raw.meaning.is_empty() {
        true => Err(RuleError::new(name, "its meaning is empty")),
        false => Ok((name, (raw.unit, raw.meaning))),
    };
    raw.into_iter().map(name).collect()
}

fn parameter(product: &Product, name: &str, raw: RawParameter) -> Result<Parameter, RuleError> {
    let versions = match &raw.versions {
        None => product.variants.keys().map(|variant| (variant.clone(), Default::default())).collect(),
        Some(versions) => ranges(name, versions)?,
    };
    if let Some(variant) = versions.keys().find(|variant| !product.variants.contains_key(*variant)) {
        return Err(RuleError::new(name, format!("the product has no variant `{variant}`")));
    }
    Ok(Parameter { unit: raw.unit, versions, group: raw.group })
}

fn rule(product: &Product, setters: &Setters, raw: RawRule) -> Result<Rule, RuleError> {
    let error = |reason: String| RuleError::new(&raw.id, reason);
    let Some(parameter) = product.parameters.get(&raw.parameter) else {
        return Err(error(format!("the parameter `{}` is not declared", raw.parameter)));
    };
    let names = RuleNames { product, parameter: &raw.parameter };
    let compile = |field: &str, text: &str| {
        Expression::new(text, &names).map_err(|fault| error(format!("{field}, {fault}: {text}")))
    };
    let when = compile("when", &raw.when)?;
    if when.kind() != ValueKind::Boolean {
        return Err(error(format!("when: the condition is {}", when.kind())));
    }
    let suggest = raw.suggest.as_deref().map(|text| compile("suggest", text)).transpose()?;
    if let Some(kind) = suggest.as_ref().map(Expression::kind).filter(|kind| *kind != parameter.unit.kind()) {
        return Err(error(format!(
            "suggest: the value is {kind}, the parameter is {}",
            parameter.unit.kind()
        )));
    }
    if suggest.is_none() && raw.advice.is_none() {
        return Err(error("it has neither a suggested value nor an advice".into()));
    }
    if let Some(name) = raw.evidence.iter().find(|name| product.unit(name).is_none()) {
        return Err(error(format!("evidence: `{name}` is not declared")));
    }
    let roles = raw.roles.clone().unwrap_or_default();
    if let Some(role) = roles.iter().find(|role| !product.roles.contains(role)) {
        return Err(error(format!("the product has no role `{role}`")));
    }
    let texts = [&raw.why, &raw.effect.text, &raw.source];
    let optional = [&raw.change, &raw.undo, &raw.also, &raw.undo_also, &raw.example].into_iter().flatten();
    if texts.into_iter().chain(optional).chain(raw.risk.values()).any(|text| text.trim().is_empty()) {
        return Err(error("a text is empty".into()));
    }
    let versions = match &raw.versions {
        None => parameter.versions.clone(),
        Some(versions) => ranges(&raw.id, versions)?,
    };
    let risks =
        raw.risk.iter().map(|(kind, text)| Ok(Risk { kind: risk_kind(&raw.id, kind)?, text: text.clone() }));
    let rule = Rule {
        id: raw.id.clone(),
        parameter: raw.parameter.clone(),
        versions,
        roles,
        when,
        suggest,
        advice: raw.advice.clone(),
        why: raw.why.clone(),
        evidence: raw.evidence.clone(),
        effect: raw.effect.clone(),
        risks: risks.collect::<Result<_, RuleError>>()?,
        restart: raw.restart,
        change: change(product, setters, &raw).map_err(error)?,
        source: raw.source.clone(),
    };
    check_versions(product, &rule, parameter)?;
    Ok(rule)
}

fn risk_kind(rule: &str, name: &str) -> Result<RiskKind, RuleError> {
    let kind = RiskKind::ALL.into_iter().find(|kind| kind.words() == name);
    kind.ok_or_else(|| RuleError::new(rule, format!("there is no kind of risk `{name}`")))
}

/// Refuses a rule for versions that lack a parameter which the rule uses.
fn check_versions(product: &Product, rule: &Rule, own: &Parameter) -> Result<(), RuleError> {
    for name in product.parameters_of(rule) {
        let parameter = &product.parameters[name];
        for (variant, range) in &rule.versions {
            if !parameter.versions.get(variant).is_some_and(|has| has.covers(range)) {
                let reason = format!("`{variant} {range}` has versions without `{name}`");
                return Err(RuleError::new(&rule.id, reason));
            }
        }
        if parameter.group.is_some() && parameter.group != own.group {
            return Err(RuleError::new(&rule.id, format!("`{name}` belongs to another group")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str = "[facts.memory]\nunit = 'bytes'\nmeaning = 'memory'";
    const PRODUCT: &str = "
        [product]
        id = 'p'
        title = 'P'
        variants = { p = '>=1, <9', fork = '>=1, <4' }
        roles = ['server']
        [parameters]
        size = { unit = 'bytes', versions = { p = '<5', fork = 'all' } }
        mode = { unit = 'text' }
        depth = { unit = 'count', group = 'disk' }
        [setters]
        it = { mysql = ['SET {parameter} = {value}'] }
        other = { manual = '{parameter}', reason = 'file' }
        [counters]
        reads = { unit = 'count', meaning = 'reads' }
    ";
    const RULE: &str = "
        [[rule]]
        id = 'p-size'
        parameter = 'size'
        when = 'current < memory'
        suggest = 'memory'
        why = 'w'
        effect = { level = 'large', text = 't' }
        risk = { memory = 'm' }
        restart = 'dynamic'
        set = 'it'
        source = 's'
    ";

    fn read(product: &str, rule: &str) -> Result<Product, RuleError> {
        Product::read(&format!("{product}{rule}"), FACTS)
    }

    /// The error after `old` is replaced with `new`.
    fn error(old: &str, new: &str) -> String {
        let text = format!("{PRODUCT}{RULE}");
        assert!(text.contains(old), "{old}");
        Product::read(&text.replace(old, new), FACTS).expect_err(new).to_string()
    }

    #[test]
    fn a_rule_has_the_versions_of_its_parameter_unless_it_names_others() {
        let product = read(PRODUCT, RULE).unwrap();
        assert_eq!(product.rules[0].versions["p"].to_string(), "<5");
        let rule = format!("{RULE}versions = {{ p = '>=2, <3' }}");
        assert_eq!(read(PRODUCT, &rule).unwrap().rules[0].versions.len(), 1);
    }

    #[test]
    fn a_rule_for_versions_without_a_parameter_is_refused() {
        let rule = format!("{RULE}versions = {{ p = '>=2' }}");
        assert!(read(PRODUCT, &rule).unwrap_err().reason.contains("`p >=2` has versions without `size`"));
        let used = error(
            "parameter = 'size'\n        when = 'current < memory'",
            "parameter = 'mode'\n        when = 'size < 1'",
        );
        assert!(used.contains("the value is a number"), "{used}");
        let used = error(
            "parameter = 'size'\n        when = 'current < memory'\n        suggest = 'memory'",
            "parameter = 'mode'\n        when = 'size < 1'\n        advice = 'a'",
        );
        assert!(used.contains("without `size`"), "{used}");
    }

    #[test]
    fn errors_say_where_they_are() {
        let cases = [
            ("parameter = 'size'", "parameter = 'sise'", "p-size: the parameter `sise` is not declared"),
            ("unit = 'bytes', versions", "versions", "missing field `unit`"),
            ("unit = 'bytes', versions", "unit = 'byte', versions", "unknown variant `byte`"),
            ("fork = 'all'", "fork = '8'", "size, fork: `8` is not a range"),
            ("fork = 'all'", "other = 'all'", "size: the product has no variant `other`"),
            ("current < memory", "current < memry", "p-size: when, column 11: `memry` is not declared"),
            ("when = 'current < memory'", "when = 'current'", "the condition is a number"),
            ("suggest = 'memory'", "suggest = '1 +'", "suggest, column 4: a value is missing"),
            ("suggest = 'memory'", "suggest = \"'x'\"", "the value is a text, the parameter is a number"),
            ("suggest = 'memory'", "", "neither a suggested value nor an advice"),
            ("why = 'w'", "why = ' '", "a text is empty"),
            ("why = 'w'", "why = 'w'\nevidence = ['writes']", "`writes` is not declared"),
            ("why = 'w'", "why = 'w'\nroles = ['client']", "no role `client`"),
            ("risk = { memory = 'm' }", "risk = { money = 'm' }", "no kind of risk `money`"),
            ("restart = 'dynamic'", "restart = 'never'", "unknown variant `never`"),
            ("current < memory", "depth < memory", "`depth` belongs to another group"),
            ("reads = {", "memory = {", "memory: the name is declared twice"),
            ("mode = {", "current = {", "current: the name is declared twice or is reserved"),
            ("why = 'w'", "why = 'w'\nwhere = 'w'", "unknown field `where`"),
            ("set = 'it'", "set = 'its'", "p-size: there is no setter `its`"),
            ("set = 'it'", "", "it has neither `set` nor all of `change`, `undo` and `reason`"),
            ("set = 'it'", "set = 'it'\nchange = 'c'", "`change` does not go with `set`"),
            ("set = 'it'", "set = 'it'\nrestores = 'no'", "restores: the parameter `no` is not declared"),
            ("set = 'it'", "change = 'c'\nundo = 'u'\nreason = 'client'\nalso = 'a'", "`also` needs `set`"),
            ("{value}", "1", "setter it: a template has no {value}"),
            ("mysql = [", "redis = ['{value}'], mysql = [", "setter it: it has several forms"),
            (", reason = 'file'", "", "setter other: `manual` and `reason` go together"),
        ];
        for (old, new, expected) in cases {
            let error = error(old, new);
            assert!(error.contains(expected), "{new}: {error}");
        }
    }
}

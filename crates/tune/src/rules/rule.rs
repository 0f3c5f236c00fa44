//! A product with its parameters and rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::expression::{Declarations, Expression};
use crate::unit::Unit;
use crate::value::ValueKind;
use crate::version::{Version, VersionRange};

/// Ranges of versions by variant.
pub type Ranges = BTreeMap<String, VersionRange>;

/// A product: its variants, the names that rules may use, and its rules.
#[derive(Debug)]
pub struct Product {
    /// The name of its file, such as `mysql`.
    pub id: String,
    /// The name for people.
    pub title: String,
    /// The variants (forks, clients) with the versions that the rules know.
    pub variants: Ranges,
    /// The roles that an observation can have, such as `server`. Empty if there is only one.
    pub roles: Vec<String>,
    /// The parameters by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// The units and meanings of the counters by name.
    pub counters: BTreeMap<String, (Unit, String)>,
    /// The units and meanings of the facts by name.
    pub facts: BTreeMap<String, (Unit, String)>,
    /// The rules in the order of the file.
    pub rules: Vec<Rule>,
}

impl Product {
    /// The rule of that name.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// The parameters that a version of a variant has, by name. Of a version that the rules do not know, those of all versions.
    pub fn parameters_in(
        &self,
        variant: &str,
        version: Option<&str>,
    ) -> impl Iterator<Item = (&String, &Parameter)> + Clone {
        let known = self.variants.get(variant);
        let version = version.and_then(Version::parse);
        let version = version.filter(|version| known.is_some_and(|range| range.contains(version)));
        let variant = variant.to_owned();
        self.parameters.iter().filter(move |(_, parameter)| {
            let range = parameter.versions.get(&variant);
            range.is_some_and(|range| version.as_ref().map_or(range.is_all(), |it| range.contains(it)))
        })
    }
}

/// A parameter of a product.
#[derive(Debug)]
pub struct Parameter {
    /// The unit of its value.
    pub unit: Unit,
    /// The variants and versions that have it.
    pub versions: Ranges,
    /// The kind of thing that has a value of its own, such as each block device.
    pub group: Option<String>,
}

#[derive(Debug)]
pub struct Rule {
    /// The name of the rule, unique in all products.
    pub id: String,
    /// The parameter that it is about.
    pub parameter: String,
    /// The variants and versions it applies to.
    pub versions: Ranges,
    /// The roles it applies to. Empty: all.
    pub roles: Vec<String>,
    /// The condition of a finding.
    pub when: Expression,
    /// The suggested value, in the unit of the parameter.
    pub suggest: Option<Expression>,
    /// The suggestion in words.
    pub advice: Option<String>,
    pub why: String,
    /// The names of settings, facts and counters that a finding shows.
    pub evidence: Vec<String>,
    /// The expected effect.
    pub effect: Effect,
    /// The risks of the change.
    pub risks: Vec<Risk>,
    /// The moment at which a change takes effect.
    pub restart: Restart,
    /// How to make the change, and how to undo it.
    pub change: Change,
    /// The origin of the rule.
    pub source: String,
}

/// The expected effect of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The size, by which findings are ordered.
    pub level: Level,
    /// The effect in words.
    pub text: String,
}

/// The size of an expected effect, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Without the change requests fail or data is lost.
    PreventsFailure,
    /// Tens of percent, or the worst latencies.
    Large,
    /// Up to some ten percent.
    Moderate,
    /// A few percent, or under some loads only.
    Small,
}

impl Level {
    /// The size in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::PreventsFailure => "prevents failure",
            Self::Large => "large",
            Self::Moderate => "moderate",
            Self::Small => "small",
        }
    }
}

/// A risk of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// The kind of risk.
    pub kind: RiskKind,
    /// The risk in words.
    pub text: String,
}

/// The kinds of risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskKind {
    /// Acknowledged data can be lost.
    Durability,
    /// The change takes memory.
    Memory,
    /// The service can fail or refuse requests.
    Availability,
    /// Readers or writers see other results.
    Behaviour,
    /// The change weakens the protection against attacks.
    Security,
}

impl RiskKind {
    /// All kinds.
    pub(super) const ALL: [Self; 5] =
        [Self::Durability, Self::Memory, Self::Availability, Self::Behaviour, Self::Security];

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Durability => "durability",
            Self::Memory => "memory",
            Self::Availability => "availability",
            Self::Behaviour => "behaviour",
            Self::Security => "security",
        }
    }
}

/// The moment at which a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// At once.
    Dynamic,
    /// For new sessions or connections.
    Session,
    /// With a restart of the process.
    Restart,
    /// With a new installation, or when the data is written again.
    Reinstall,
}

impl Restart {
    /// The moment in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Dynamic => "at once",
            Self::Session => "for new sessions",
            Self::Restart => "after a restart",
            Self::Reinstall => "after a new installation, or when the data is written again",
        }
    }
}

impl Product {
    /// The unit of a parameter, counter or fact.
    pub fn unit(&self, name: &str) -> Option<Unit> {
        let parameter = self.parameters.get(name).map(|parameter| parameter.unit);
        let other = || self.counters.get(name).or_else(|| self.facts.get(name)).map(|(unit, _)| *unit);
        parameter.or_else(other)
    }

    /// The parameters whose values a rule needs, its own among them.
    pub fn parameters_of<'a>(&'a self, rule: &'a Rule) -> BTreeSet<&'a str> {
        let expressions = std::iter::once(&rule.when).chain(&rule.suggest);
        let used = expressions.flat_map(Expression::names);
        let used = used.chain(rule.evidence.iter().map(String::as_str)).chain([rule.parameter.as_str()]);
        let used = used.chain(rule.change.restores());
        used.filter(|name| self.parameters.contains_key(*name)).collect()
    }
}

/// The names that the expressions of one rule may use.
pub(super) struct RuleNames<'a> {
    pub(super) product: &'a Product,
    pub(super) parameter: &'a str,
}

impl Declarations for RuleNames<'_> {
    fn kind(&self, name: &str) -> Option<ValueKind> {
        let name = if name == CURRENT { self.parameter } else { name };
        let parameter = self.product.parameters.get(name).map(|parameter| parameter.unit);
        parameter.or_else(|| self.product.facts.get(name).map(|(unit, _)| *unit)).map(Unit::kind)
    }

    fn is_counter(&self, name: &str) -> bool {
        self.product.counters.contains_key(name)
    }
}

/// The name of the rule's own parameter in its expressions.
pub(crate) const CURRENT: &str = "current";

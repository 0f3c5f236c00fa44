//! The file of a product as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::rule::{Effect, Restart};
use super::setter::Manual;
use crate::unit::Unit;

/// A file in `rules/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) product: RawProduct,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, RawParameter>,
    #[serde(default)]
    pub(super) setters: BTreeMap<String, RawSetter>,
    #[serde(default)]
    pub(super) counters: BTreeMap<String, RawName>,
    #[serde(default)]
    pub(super) facts: BTreeMap<String, RawName>,
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<RawRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProduct {
    pub(super) id: String,
    pub(super) title: String,
    /// The variants with the versions that the file knows.
    pub(super) variants: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) roles: Vec<String>,
    /// The process that is restarted.
    #[serde(default = "server")]
    pub(super) process: String,
}

fn server() -> String {
    "server".to_owned()
}

/// How parameters are set. One of the first six is there; it states who carries the statements out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSetter {
    pub(super) mysql: Option<Vec<String>>,
    pub(super) postgresql: Option<Vec<String>>,
    pub(super) redis: Option<Vec<String>>,
    pub(super) put: Option<RawPut>,
    /// The path of a file below `/proc/sys` or `/sys`, or `sysctl` for the one with the parameter's name.
    pub(super) write: Option<String>,
    /// A text for a person.
    pub(super) manual: Option<String>,
    /// The reason for `manual`.
    pub(super) reason: Option<Manual>,
    #[serde(default)]
    pub(super) keep: Vec<String>,
    pub(super) by_hand: Option<String>,
    #[serde(default)]
    pub(super) reset: Vec<String>,
    pub(super) grant: Option<String>,
}

/// A PUT of JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPut {
    pub(super) path: String,
    pub(super) body: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawParameter {
    pub(super) unit: Unit,
    /// The variants and versions that have the parameter. Without it: all.
    pub(super) versions: Option<BTreeMap<String, String>>,
    /// The kind of thing that has a value of its own, such as each block device.
    pub(super) group: Option<String>,
}

/// A counter or a fact.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawName {
    pub(super) unit: Unit,
    pub(super) meaning: String,
}

/// The file `facts.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFacts {
    pub(super) facts: BTreeMap<String, RawName>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) id: String,
    pub(super) parameter: String,
    pub(super) versions: Option<BTreeMap<String, String>>,
    pub(super) roles: Option<Vec<String>>,
    pub(super) when: String,
    pub(super) suggest: Option<String>,
    pub(super) advice: Option<String>,
    pub(super) why: String,
    #[serde(default)]
    pub(super) evidence: Vec<String>,
    pub(super) effect: Effect,
    #[serde(default)]
    pub(super) risk: BTreeMap<String, String>,
    pub(super) restart: Restart,
    /// The name of a setter. Without it `change`, `undo` and `reason` are there.
    pub(super) set: Option<String>,
    pub(super) also: Option<String>,
    pub(super) undo_also: Option<String>,
    pub(super) example: Option<String>,
    pub(super) restores: Option<String>,
    pub(super) change: Option<String>,
    pub(super) undo: Option<String>,
    pub(super) reason: Option<Manual>,
    pub(super) source: String,
}

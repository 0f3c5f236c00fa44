//! Keys of a scenario for driver `http`.

use std::collections::BTreeMap;

use load::dataset::{Alphabet, Content, Distribution};
use load::scenario::{Mix, typed};
use serde::Deserialize;
use toml::Table;

use super::{Data, JsonExpect, JsonOptions, Order, Version, has_data, has_key};
use crate::limits::HTTP_DATA_BYTES_MAX;

/// Keys of an operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationOptions {
    pub(super) request: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
    #[serde(default = "ok")]
    pub(super) status: StatusOption,
    pub(super) expect_bytes: Option<u64>,
    pub(super) expect_body: Option<String>,
    #[serde(default)]
    expect_json: BTreeMap<String, JsonValueOption>,
    #[serde(default)]
    expect_present: Vec<String>,
    #[serde(default)]
    extract: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a value of `expect_json` is a text, a number, true or false")]
enum JsonValueOption {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl JsonValueOption {
    fn expected(&self) -> std::result::Result<JsonExpect, String> {
        Ok(match self {
            Self::Boolean(value) => JsonExpect::Boolean(*value),
            Self::Integer(value) => JsonExpect::Number((*value).into()),
            Self::Float(value) => JsonExpect::Number(
                serde_json::Number::from_f64(*value)
                    .ok_or_else(|| format!("`expect_json`: JSON has no {value}"))?,
            ),
            Self::Text(text) => JsonExpect::Text(text.clone()),
        })
    }
}

impl OperationOptions {
    /// The keys about JSON.
    pub(super) fn json(&self) -> std::result::Result<JsonOptions, String> {
        let mut expect: Vec<(String, JsonExpect)> =
            self.expect_present.iter().map(|pointer| (pointer.clone(), JsonExpect::Present)).collect();
        for (pointer, value) in &self.expect_json {
            expect.push((pointer.clone(), value.expected()?));
        }
        let extract = self.extract.iter().map(|(name, pointer)| (name.clone(), pointer.clone())).collect();
        Ok(JsonOptions { expect, extract })
    }

    /// Refuses a combination for which a reader could not know the data.
    pub(super) fn check_data(&self, data: Data) -> std::result::Result<(), String> {
        let json = self.expect_json.values().filter_map(|value| match value {
            JsonValueOption::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let mut texts = [self.body.as_deref(), self.expect_body.as_deref()].into_iter().flatten().chain(json);
        if !texts.any(has_data) {
            return Ok(());
        }
        if data.bytes == 0 {
            return Err("`__data__` needs `data_bytes`, its length, in [dataset]".to_owned());
        }
        if !has_key(&self.request) {
            return Err("`__data__` is that of a key: the path needs `__key__`".to_owned());
        }
        Ok(())
    }
}

/// Keys of `[dataset]` for the data of a key. Phases and mixes cannot override them, because one phase reads what
/// another wrote.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct DataOption {
    #[serde(default)]
    data_bytes: usize,
    #[serde(default = "printable_entropy")]
    data_compressed: f64,
    /// Not the seed of the scenario, which differs between the runs of a series: the data was loaded before.
    #[serde(default = "first_seed")]
    data_seed: u64,
}

fn printable_entropy() -> f64 {
    Alphabet::Printable.entropy()
}

fn first_seed() -> u64 {
    1
}

impl DataOption {
    pub(super) fn read(dataset: &Table) -> std::result::Result<Data, String> {
        let names = ["data_bytes", "data_compressed", "data_seed"];
        let own = names.into_iter().filter_map(|name| Some((name.to_owned(), dataset.get(name)?.clone())));
        let Self { data_bytes, data_compressed, data_seed } = typed(own.collect(), "[dataset]", &[])?;
        if data_bytes > HTTP_DATA_BYTES_MAX {
            return Err(format!("data_bytes = {data_bytes}; use at most {HTTP_DATA_BYTES_MAX}"));
        }
        if !(0.0..=printable_entropy()).contains(&data_compressed) {
            return Err(format!(
                "data_compressed = {data_compressed}; it is a share, 0 to {}: data is printable",
                printable_entropy()
            ));
        }
        let content = Content::new(Alphabet::Printable, data_compressed);
        Ok(Data { seed: data_seed, bytes: data_bytes, content })
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`status` is a number, such as 200, or a list, such as [200, 404]")]
pub(super) enum StatusOption {
    One(u16),
    Several(Vec<u16>),
}

fn ok() -> StatusOption {
    StatusOption::One(200)
}

/// Keys of data set, phase and mix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupOptions {
    #[serde(default = "h1")]
    pub(super) protocol: Version,
    #[serde(default = "keep_alive")]
    pub(super) connection: ConnectionOption,
    #[serde(default = "some_keys")]
    pub(super) keys: [u64; 2],
    #[serde(default = "uniform")]
    pub(super) distribution: Distribution,
    pub(super) requests: Option<u64>,
    #[serde(default = "at_random")]
    pub(super) order: Order,
    #[serde(default)]
    pub(super) setup: Vec<String>,
}

/// Keys that only `[dataset]` may have, with the reason.
const OF_DATASET: [(&str, &str); 5] = [
    ("nginx_status", "the page is that of the target"),
    ("elasticsearch_stats", "the address is that of the target"),
    ("data_bytes", ONE_DATA),
    ("data_compressed", ONE_DATA),
    ("data_seed", ONE_DATA),
];
const ONE_DATA: &str = "what one phase writes another reads";

impl GroupOptions {
    /// Merges the keys of the data set with those of phase and mix.
    pub(super) fn read(dataset: &Table, mix: &Mix) -> std::result::Result<Self, String> {
        if let Some((name, why)) = OF_DATASET.iter().find(|(name, _)| mix.driver_keys.contains_key(*name)) {
            return Err(format!("`{name}` belongs into [dataset]: {why}"));
        }
        mix.options(&of_all_phases(dataset), "its options")
    }

    /// Refuses unknown keys of `[dataset]`. A separate check gives better suggestions.
    pub(super) fn check_dataset(dataset: &Table) -> std::result::Result<(), String> {
        let names: Vec<&str> = OF_DATASET.iter().map(|(name, _)| *name).collect();
        typed::<Self>(of_all_phases(dataset), "[dataset]", &names).map(|_| ())
    }
}

/// The keys of `[dataset]` that a phase may override.
fn of_all_phases(dataset: &Table) -> Table {
    let mut table = dataset.clone();
    table.retain(|name, _| !OF_DATASET.iter().any(|(known, _)| *known == name));
    table
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ConnectionOption {
    KeepAlive,
    Close,
}

fn at_random() -> Order {
    Order::Random
}

fn h1() -> Version {
    Version::One
}

fn keep_alive() -> ConnectionOption {
    ConnectionOption::KeepAlive
}

fn some_keys() -> [u64; 2] {
    [0, 9_999]
}

fn uniform() -> Distribution {
    Distribution::Uniform
}

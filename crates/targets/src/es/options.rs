//! Keys of a scenario for driver `es`.

use load::scenario::{Mix, Operation, Scenario, typed};
use serde::Deserialize;
use toml::Table;

use super::corpus::CorpusName;
use crate::limits::ES_SHARDS_MAX;

/// Keys of `[dataset]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetOptions {
    #[serde(default)]
    pub(super) corpus: CorpusName,
    /// The number of documents before the scale; `None` for that of the original.
    documents: Option<u64>,
    /// Not the seed of the scenario, which differs between the runs of a series: the data was loaded before.
    #[serde(default = "first_seed")]
    pub(super) data_seed: u64,
    #[serde(default = "five_thousand")]
    pub(super) bulk_size: u32,
    #[serde(default = "five")]
    pub(super) shards: u32,
    #[serde(default)]
    pub(super) replicas: u32,
    pub(super) refresh_interval: Option<String>,
    #[serde(default)]
    pub(super) translog_durability: Durability,
    #[serde(default = "five_seconds")]
    pub(super) translog_sync_interval: String,
    #[serde(default)]
    pub(super) if_exists: IfExists,
    #[serde(default = "yes")]
    pub(super) force_merge: bool,
    pub(super) max_num_segments: Option<u32>,
}

/// When the server makes writes durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Durability {
    /// Before each answer.
    #[default]
    Request,
    /// From time to time.
    Async,
}

impl Durability {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Async => "async",
        }
    }
}

/// What a load does with an index of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum IfExists {
    /// It ends with an error.
    #[default]
    Refuse,
    /// It deletes the index.
    Replace,
}

fn first_seed() -> u64 {
    1
}

fn five_thousand() -> u32 {
    5_000
}

fn five() -> u32 {
    5
}

fn five_seconds() -> String {
    "5s".to_owned()
}

fn yes() -> bool {
    true
}

impl DatasetOptions {
    pub(super) fn read(scenario: &Scenario) -> Result<Self, String> {
        let options: Self = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let wrong = |what: String| Err(format!("[dataset]: {what}"));
        if options.bulk_size == 0 || options.documents == Some(0) {
            return wrong("`bulk_size` and `documents` must be above zero".to_owned());
        }
        if options.shards == 0 || options.shards > ES_SHARDS_MAX {
            return wrong(format!("shards = {}; use 1 to {ES_SHARDS_MAX}", options.shards));
        }
        if !options.force_merge && options.max_num_segments.is_some() {
            return wrong("`max_num_segments` is for `force_merge`, which is false".to_owned());
        }
        Ok(options)
    }

    /// The number of documents of the index.
    pub(super) fn documents(&self, scenario: &Scenario) -> u64 {
        scenario.scaled(self.documents.unwrap_or(self.corpus.documents()))
    }
}

/// Keys of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum OperationOptions {
    /// Indexes documents.
    Bulk {},
    /// Documents of a country.
    Term {
        #[serde(default)]
        constant: bool,
    },
    /// Documents with two words in a row in their name.
    Phrase {
        #[serde(default)]
        constant: bool,
    },
    /// All documents.
    MatchAll {
        #[serde(default)]
        constant: bool,
    },
    /// The population of countries.
    CountryAgg {
        #[serde(default)]
        constant: bool,
        /// Whether the server may answer from its cache.
        #[serde(default)]
        cached: bool,
    },
    /// Many documents, page by page.
    Scroll {
        #[serde(default)]
        constant: bool,
        #[serde(default = "pages")]
        pages: u32,
        #[serde(default = "page_size")]
        page_size: u32,
    },
}

fn pages() -> u32 {
    25
}

fn page_size() -> u32 {
    1_000
}

impl OperationOptions {
    pub(super) fn read(operation: &Operation) -> Result<Self, String> {
        let place = operation.place();
        match operation.options()? {
            Self::Scroll { pages, page_size, .. } if pages == 0 || page_size == 0 => {
                Err(format!("{place}: `pages` and `page_size` must be above zero"))
            }
            // The server's own limit, index.max_result_window.
            Self::Scroll { page_size, .. } if page_size > 10_000 => Err(format!(
                "{place}: page_size = {page_size}; a server gives at most 10,000 documents a page"
            )),
            options => Ok(options),
        }
    }
}

/// Keys of a phase or mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupOptions {
    /// Requests of each connection, before the scale.
    pub(super) requests: Option<u64>,
}

impl GroupOptions {
    pub(super) fn read(mix: &Mix) -> Result<Self, String> {
        mix.options(&Table::new(), "its options")
    }
}

//! The settings of indexes.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::quantity;
use crate::observation::Group;
use crate::probe::contract::Identity;
use crate::value::Value;
use crate::version::Version;

/// Reads the value of a setting.
type Read = fn(&str) -> Option<Value>;

/// The settings of an index that rules use, without `index.`, and how to read them.
const SETTINGS: [(&str, Read); 7] = [
    ("refresh_interval", quantity::seconds),
    ("number_of_replicas", number),
    ("number_of_shards", number),
    ("translog.durability", text),
    ("translog.flush_threshold_size", quantity::bytes),
    ("merge.scheduler.max_thread_count", number),
    ("codec", text),
];

/// The version of Elasticsearch from which on it shows the values that an index has not set. OpenSearch always does.
const SHOWS_DEFAULTS: &str = "6.4";

/// What an index has that has not set it, in versions that do not show it (Elasticsearch 5.0 and 6.3 documentation, index modules). The
/// threads of merges follow from the processors of the node and stay unknown.
const DEFAULTS: [(&str, &str); 4] = [
    ("refresh_interval", "1s"),
    ("translog.durability", "request"),
    ("translog.flush_threshold_size", "512mb"),
    ("codec", "default"),
];

/// Whether the server shows the values that an index has not set.
pub(super) fn shows_defaults(server: &Identity) -> bool {
    let version = server.version.as_deref().and_then(Version::parse);
    server.variant != "elasticsearch" || version >= Version::parse(SHOWS_DEFAULTS)
}

/// The names of all settings of an index.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name).chain(["mapping.dynamic"])
}

/// The path of the settings of an index, or of all, for a server that shows defaults, or not: it refuses to be asked for them.
pub(super) fn settings_path(index: Option<&str>, shows_defaults: bool) -> String {
    let names: Vec<String> = SETTINGS.iter().map(|(name, _)| format!("index.{name}")).collect();
    let index = index.unwrap_or("_all");
    let defaults = if shows_defaults { "include_defaults=true&" } else { "" };
    format!("/{index}/_settings/{}?{defaults}flat_settings=true", names.join(","))
}

/// The path of the mappings of an index, or of all. A mapping has types before version 7.
pub(super) fn mapping_path(index: Option<&str>) -> String {
    let index = index.unwrap_or("_all");
    format!("/{index}/_mapping?filter_path=*.mappings.dynamic,*.mappings.*.dynamic")
}

/// The indexes of an answer with their settings. Indexes of the system are left out unless the user has named one. Without
/// `shows_defaults` the known ones are taken.
pub(super) fn read(
    settings: &Json,
    mappings: Option<&Json>,
    is_named: bool,
    shows_defaults: bool,
) -> Vec<Group> {
    let indexes = settings.as_object().into_iter().flatten();
    let own = indexes.filter(|(name, _)| is_named || !name.starts_with('.'));
    own.map(|(name, parts)| {
        let value = |setting: &str| {
            let key = format!("index.{setting}");
            let shown = ["settings", "defaults"].iter().find_map(|part| parts[*part][&key].as_str());
            shown.or_else(|| {
                DEFAULTS.iter().find(|(name, _)| !shows_defaults && *name == setting).map(|it| it.1)
            })
        };
        let read = |(setting, read): &(&str, Read)| Some(((*setting).to_owned(), read(value(setting)?)?));
        let mut settings: BTreeMap<String, Value> = SETTINGS.iter().filter_map(read).collect();
        if let Some(mappings) = mappings {
            settings.insert("mapping.dynamic".to_owned(), Value::Text(dynamic(&mappings[name]["mappings"])));
        }
        Group { name: name.clone(), settings }
    })
    .collect()
}

/// Whether new fields are added to a mapping; `true` is the default.
fn dynamic(mappings: &Json) -> String {
    let types = mappings.as_object().into_iter().flatten().map(|(_, of_type)| &of_type["dynamic"]);
    let found = std::iter::once(&mappings["dynamic"]).chain(types).find_map(|value| match value {
        Json::String(text) => Some(text.to_lowercase()),
        Json::Bool(value) => Some(value.to_string()),
        _ => None,
    });
    found.unwrap_or_else(|| "true".to_owned())
}

fn number(text: &str) -> Option<Value> {
    text.parse().ok().map(Value::Number)
}

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.to_lowercase()))
}

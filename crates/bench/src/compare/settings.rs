//! The differences in how results were produced: configuration, program, machine, target and load.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use load::result::Bundle;

/// The settings that differ between bundles: the path, and one value per bundle.
pub(crate) fn differing(bundles: &[&Bundle]) -> Vec<(String, Vec<String>)> {
    let all: Vec<BTreeMap<String, String>> = bundles.iter().map(|bundle| settings(bundle)).collect();
    let paths: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    paths
        .into_iter()
        .filter(|path| all.iter().any(|settings| settings.get(*path) != all[0].get(*path)))
        .map(|path| {
            let value = |settings: &BTreeMap<String, String>| {
                settings.get(path).cloned().unwrap_or_else(|| "(absent)".to_owned())
            };
            (path.clone(), all.iter().map(value).collect())
        })
        .collect()
}

/// All settings of a bundle, by dotted path.
fn settings(bundle: &Bundle) -> BTreeMap<String, String> {
    let result = &bundle.result;
    let mut flat = BTreeMap::new();
    flatten("scenario", &result.scenario.configuration, &mut flat);
    for (path, part) in [
        ("tool", serde_json::to_value(&result.tool)),
        ("machine", serde_json::to_value(&result.machine)),
        ("clocks", serde_json::to_value(&result.clocks)),
        ("target", serde_json::to_value(&result.target)),
    ] {
        flatten(path, &part.unwrap_or_default(), &mut flat);
    }
    flat.insert("seed".to_owned(), result.seed.to_string());
    for phase in &result.phases {
        let arrival = serde_json::to_value(&phase.arrival).unwrap_or_default();
        flatten(&format!("phase.{}", phase.name), &arrival, &mut flat);
        flat.insert(format!("phase.{}.connections", phase.name), phase.connections.to_string());
        flat.insert(format!("phase.{}.duration_s", phase.name), format!("{:.0}", phase.duration_s));
    }
    flat
}

/// Leaves of a JSON value by dotted path.
pub(crate) fn flatten(path: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, flat))
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            list.iter().enumerate().for_each(|(i, value)| flatten(&format!("{path}[{i}]"), value, flat));
        }
        Value::Null => {}
        Value::String(text) => {
            flat.insert(path.to_owned(), text.clone());
        }
        other => {
            flat.insert(path.to_owned(), other.to_string());
        }
    }
}

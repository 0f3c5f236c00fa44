//! Tests of what the probe reads from answers.

use std::collections::BTreeSet;

use serde_json::json;

use super::{indexes, nodes, shards};
use crate::probe::contract::Identity;
use crate::value::Value;

#[test]
fn before_version_6_4_the_defaults_are_those_of_the_documentation() {
    let server = |variant: &str, version: &str| Identity {
        product: "elasticsearch",
        title: String::new(),
        variant: variant.to_owned(),
        version: Some(version.to_owned()),
        role: None,
    };
    assert!(!indexes::shows_defaults(&server("elasticsearch", "5.5.3")));
    assert!(indexes::shows_defaults(&server("elasticsearch", "6.4.0")));
    assert!(indexes::shows_defaults(&server("opensearch", "2.19.1")));
    assert!(!indexes::settings_path(None, false).contains("include_defaults"));
    let settings =
        json!({ "logs": { "settings": { "index.refresh_interval": "5s", "index.number_of_shards": "1" } } });
    let read = |shows_defaults| indexes::read(&settings, None, false, shows_defaults).remove(0).settings;
    let old = read(false);
    assert_eq!(old["refresh_interval"], 5.0.into(), "the index itself comes before the defaults");
    assert_eq!(old["translog.durability"], "request".into());
    assert_eq!(old["translog.flush_threshold_size"], f64::from(512 << 20).into());
    assert!(!old.contains_key("merge.scheduler.max_thread_count"), "it follows from the processors");
    assert!(
        !read(true).contains_key("translog.durability"),
        "a server that shows defaults has none to guess"
    );
}

#[test]
fn settings_of_indexes_have_their_units() {
    let settings = json!({
        "logs": {
            "settings": { "index.number_of_shards": "2", "index.refresh_interval": "500ms" },
            "defaults": { "index.translog.durability": "REQUEST", "index.translog.flush_threshold_size": "1kb",
                          "index.refresh_interval": "1s" },
        },
        ".kibana": { "settings": {} },
    });
    let mappings = json!({ "logs": { "mappings": { "_doc": { "dynamic": "strict" } } } });
    let indexes = indexes::read(&settings, Some(&mappings), false, true);
    assert_eq!(indexes.len(), 1, "an index of the system is left out");
    let value = |name: &str| indexes[0].settings.get(name).cloned();
    assert_eq!(value("refresh_interval"), Some(0.5.into()), "the index itself comes before the defaults");
    assert_eq!(value("translog.durability"), Some("request".into()));
    assert_eq!(value("translog.flush_threshold_size"), Some(1_024.0.into()));
    assert_eq!(value("mapping.dynamic"), Some("strict".into()));
    assert_eq!(value("codec"), None);
    let without = indexes::read(&settings, None, true, true);
    assert!(without.len() == 2 && !without[1].settings.contains_key("mapping.dynamic"));
}

#[test]
fn a_field_with_the_name_dynamic_is_not_a_setting() {
    let settings = json!({ "a": { "settings": {} } });
    let mappings = json!({ "a": { "mappings": { "properties": { "dynamic": { "type": "long" } } } } });
    let indexes = indexes::read(&settings, Some(&mappings), false, true);
    assert_eq!(indexes[0].settings["mapping.dynamic"], Value::from("true"));
}

#[test]
fn nodes_have_their_own_memory() {
    let info = json!({ "nodes": {
        "a": { "name": "n1", "roles": ["data_hot"], "total_indexing_buffer": 64,
               "settings": { "bootstrap": { "memory_lock": "true" } } },
        "b": { "name": "n2", "roles": ["master"] },
    } });
    let stats = json!({ "nodes": { "a": {
        "os": { "mem": { "total_in_bytes": 1000 }, "cgroup": { "memory": { "limit_in_bytes": "800" } } },
        "process": { "max_file_descriptors": -1 },
    } } });
    let nodes = nodes::read(&info, &stats, Some(false), &|_| 3.0);
    assert_eq!(nodes.len(), 1, "a node without data has no rules");
    let settings = &nodes[0].settings;
    assert_eq!((nodes[0].name.as_str(), &settings["memory_bytes"]), ("n1", &Value::from(800.0)));
    assert_eq!(settings["bootstrap.memory_lock"], Value::from(true));
    assert_eq!(
        (&settings["indices.memory.index_buffer_size"], &settings["hot_shards"]),
        (&64.0.into(), &3.0.into())
    );
    assert!(!settings.contains_key("nofile"));
}

#[test]
fn counters_are_those_of_the_chosen_indexes() {
    let shard = |total: u64, primary: bool| {
        json!({
            "routing": { "primary": primary },
            "indexing": { "index_total": total, "index_time_in_millis": 10 },
            "refresh": { "total_time_in_millis": 5 },
        })
    };
    let stats = json!({ "nodes": { "a": {
        "jvm": { "uptime_in_millis": 2000, "gc": { "collectors": { "old": { "collection_time_in_millis": 4 } } } },
        "thread_pool": { "bulk": { "rejected": 2, "completed": 9 } },
        "indices": { "shards": {
            "logs": [{ "0": shard(7, true) }, { "1": shard(3, false) }],
            "other": [{ "0": shard(100, true) }],
        } },
    }, "b": { "jvm": { "uptime_in_millis": 1000 } } } });
    let names = BTreeSet::from(["logs"]);
    let counters = shards::counters(&stats, &names);
    let expected = [
        ("documents_indexed", 7.0),
        ("indexing_time_ms", 20.0),
        ("refresh_time_ms", 10.0),
        ("bulk_rejected", 2.0),
        ("shard_writes", 9.0),
        ("gc_old_ms", 2.0),
    ];
    assert_eq!(expected.map(|(name, _)| counters[name]), expected.map(|(_, value)| value));
    assert_eq!(shards::uptime_s(&stats), Some(2.0));
    let written = shards::written(&stats, &names);
    assert_eq!((shards::hot("a", &written, None), shards::hot("a", &written, Some(&written))), (2.0, 0.0));
}

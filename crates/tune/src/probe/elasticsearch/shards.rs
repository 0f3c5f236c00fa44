//! The counters of shards and nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::nodes::number;

/// The documents that each shard has indexed, by node, index and shard.
pub(super) type Written = BTreeMap<(String, String, String), f64>;

/// The sums over the shards of `indexes`, and the counters of the nodes.
pub(super) fn counters(stats: &Json, indexes: &BTreeSet<&str>) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    let mut add = |name: &str, value: &Json| {
        *sums.entry(name.to_owned()).or_default() += number(value).unwrap_or_default();
    };
    for (_, shard) in shards(stats, indexes) {
        let indexing = &shard["indexing"];
        if shard["routing"]["primary"] == Json::Bool(true) {
            add("documents_indexed", &indexing["index_total"]);
        }
        add("indexing_time_ms", &indexing["index_time_in_millis"]);
        add("indexing_throttled_ms", &indexing["throttle_time_in_millis"]);
        add("refresh_time_ms", &shard["refresh"]["total_time_in_millis"]);
        add("flushes", &shard["flush"]["total"]);
    }
    let nodes = stats["nodes"].as_object().into_iter().flatten();
    let mut count = 0.0;
    for (_, node) in nodes {
        count += 1.0;
        add("gc_old_ms", &node["jvm"]["gc"]["collectors"]["old"]["collection_time_in_millis"]);
        // The pool has the name `bulk` before version 6.3.
        let pool =
            ["write", "bulk"].iter().map(|name| &node["thread_pool"][*name]).find(|pool| pool.is_object());
        if let Some(pool) = pool {
            add("bulk_rejected", &pool["rejected"]);
            add("shard_writes", &pool["completed"]);
        }
    }
    if let Some(sum) = sums.get_mut("gc_old_ms") {
        *sum /= count;
    }
    sums
}

/// The longest time that a node runs, in seconds.
pub(super) fn uptime_s(stats: &Json) -> Option<f64> {
    let nodes = stats["nodes"].as_object()?;
    let uptimes = nodes.values().filter_map(|node| number(&node["jvm"]["uptime_in_millis"]));
    uptimes.reduce(f64::max).map(|ms| ms / 1_000.0)
}

/// The documents that each shard has indexed.
pub(super) fn written(stats: &Json, indexes: &BTreeSet<&str>) -> Written {
    shards(stats, indexes)
        .map(|(place, shard)| (place, number(&shard["indexing"]["index_total"]).unwrap_or_default()))
        .collect()
}

/// The shards of a node that have indexed documents since `before`, or since the node has started.
pub(super) fn hot(node: &str, now: &Written, before: Option<&Written>) -> f64 {
    let is_hot = |(place, total): &(&(String, String, String), &f64)| {
        let before = before.and_then(|before| before.get(*place)).copied().unwrap_or_default();
        place.0 == node && **total > before
    };
    now.iter().filter(is_hot).count() as f64
}

/// The shards of `indexes` with node, index and number.
fn shards<'a>(
    stats: &'a Json,
    indexes: &'a BTreeSet<&str>,
) -> impl Iterator<Item = ((String, String, String), &'a Json)> {
    let nodes = stats["nodes"].as_object().into_iter().flatten();
    nodes.flat_map(move |(node, of_node)| {
        let of_node = of_node["indices"]["shards"].as_object().into_iter().flatten();
        let own = of_node.filter(|(index, _)| indexes.contains(index.as_str()));
        own.flat_map(move |(index, list)| {
            // Each item of the list is an object with one shard.
            let items = list.as_array().into_iter().flatten().filter_map(Json::as_object).flatten();
            items.map(move |(number, shard)| ((node.clone(), index.clone(), number.clone()), shard))
        })
    })
}

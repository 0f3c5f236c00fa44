//! The settings of nodes.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::observation::Group;
use crate::value::Value;

/// Settings, roles and index buffers of all nodes.
pub(super) const INFO_PATH: &str = "/_nodes/settings,indices?filter_path=nodes.*.name,nodes.*.roles,\
     nodes.*.settings.bootstrap.memory_lock,nodes.*.total_indexing_buffer,nodes.*.total_indexing_buffer_in_bytes";

/// Memory, limits, pools and shards of all nodes.
pub(super) const STATS_PATH: &str = "/_nodes/stats/indices,os,process,jvm,thread_pool?level=shards&filter_path=\
     nodes.*.os.mem.total_in_bytes,nodes.*.os.swap.total_in_bytes,nodes.*.os.cgroup.memory.limit_in_bytes,\
     nodes.*.process.max_file_descriptors,nodes.*.jvm.uptime_in_millis,nodes.*.jvm.mem.heap_max_in_bytes,\
     nodes.*.jvm.gc.collectors.old.collection_time_in_millis,nodes.*.thread_pool.write,nodes.*.thread_pool.bulk,\
     nodes.*.indices.shards.*.*.routing.primary,nodes.*.indices.shards.*.*.indexing.index_total,\
     nodes.*.indices.shards.*.*.indexing.index_time_in_millis,nodes.*.indices.shards.*.*.indexing.throttle_time_in_millis,\
     nodes.*.indices.shards.*.*.refresh.total_time_in_millis,nodes.*.indices.shards.*.*.flush.total";

/// The settings that all nodes have unless their own say otherwise.
pub(super) const DEFAULTS_PATH: &str =
    "/_cluster/settings?include_defaults=true&filter_path=*.bootstrap.memory_lock";

/// The data nodes. `default_lock` is the default of `bootstrap.memory_lock`, if the cluster shows it; `hot_shards` counts the
/// shards of a node that are being written.
pub(super) fn read(
    info: &Json,
    stats: &Json,
    default_lock: Option<bool>,
    hot_shards: &dyn Fn(&str) -> f64,
) -> Vec<Group> {
    let group = |(id, node): (&String, &Json)| {
        let mut group = node_group(id, node, &stats["nodes"][id.as_str()], default_lock);
        group.settings.insert("hot_shards".to_owned(), Value::Number(hot_shards(id)));
        group
    };
    data_nodes(info).map(group).collect()
}

/// The nodes with a role of data, such as `data` or `data_hot`.
fn data_nodes(info: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let nodes = info["nodes"].as_object().into_iter().flatten();
    nodes.filter(|(_, node)| {
        let mut roles = node["roles"].as_array().into_iter().flatten().filter_map(Json::as_str);
        roles.any(|role| role == "data" || role.starts_with("data_"))
    })
}

fn node_group(id: &str, info: &Json, stats: &Json, default_lock: Option<bool>) -> Group {
    let lock = boolean(&info["settings"]["bootstrap"]["memory_lock"]).or(default_lock);
    let values = [
        ("heap_bytes", number(&stats["jvm"]["mem"]["heap_max_in_bytes"])),
        ("indices.memory.index_buffer_size", index_buffer(info)),
        ("nofile", number(&stats["process"]["max_file_descriptors"])),
        ("memory_bytes", memory(&stats["os"])),
        ("swap_bytes", number(&stats["os"]["swap"]["total_in_bytes"])),
    ];
    let mut settings: BTreeMap<String, Value> = values
        .into_iter()
        // A limit that the JVM cannot read is -1.
        .filter_map(|(name, value)| Some((name.to_owned(), Value::Number(value.filter(|it| *it >= 0.0)?))))
        .collect();
    settings.extend(lock.map(|lock| ("bootstrap.memory_lock".to_owned(), Value::Boolean(lock))));
    Group { name: info["name"].as_str().unwrap_or(id).to_owned(), settings }
}

/// The bytes of the buffer. The setting itself can be a share of the heap.
fn index_buffer(info: &Json) -> Option<f64> {
    number(&info["total_indexing_buffer_in_bytes"]).or_else(|| number(&info["total_indexing_buffer"]))
}

/// The memory of the machine, or the limit of its control group if it is smaller.
fn memory(os: &Json) -> Option<f64> {
    let total = number(&os["mem"]["total_in_bytes"])?;
    let limit = number(&os["cgroup"]["memory"]["limit_in_bytes"]);
    Some(limit.filter(|limit| *limit > 0.0).map_or(total, |limit| limit.min(total)))
}

/// A number, or a text that holds one.
pub(super) fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// True or false, or a text that holds it.
pub(super) fn boolean(value: &Json) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str()?.parse().ok())
}

//! Counters of Elasticsearch and OpenSearch: `GET /_nodes/stats`, summed over the nodes of a cluster. A name is the
//! path of a number in the answer, with dots (Elasticsearch reference, "Nodes stats API"; the same since version 5).

use std::collections::BTreeMap;
use std::time::Duration;

use clients::http::{HttpClient, HttpLimits};
use clients::tls::TlsConfig;
use load::sampling::ValueKind::{self, Counter, Gauge};
use load::sampling::{Readings, Source};
use serde_json::Value;

use crate::limits::HTTP_BODY_BYTES_MAX;

const LIMITS: HttpLimits =
    HttpLimits { timeout: Duration::from_secs(2), body_bytes_max: HTTP_BODY_BYTES_MAX };
/// The requested parts of the answer. The whole answer has several hundred numbers per node.
const METRICS: &str = "indices,jvm,process,thread_pool";

/// The numbers to keep. `*` stands for one name: a garbage collector, or one of [`POOLS`].
const KEPT: [(&str, ValueKind); 27] = [
    ("indices.docs.count", Gauge),
    ("indices.store.size_in_bytes", Gauge),
    ("indices.segments.count", Gauge),
    ("indices.translog.uncommitted_operations", Gauge),
    ("indices.indexing.index_total", Counter),
    ("indices.indexing.index_time_in_millis", Counter),
    ("indices.indexing.index_failed", Counter),
    ("indices.indexing.throttle_time_in_millis", Counter),
    ("indices.search.query_total", Counter),
    ("indices.search.query_time_in_millis", Counter),
    ("indices.search.fetch_total", Counter),
    ("indices.search.fetch_time_in_millis", Counter),
    ("indices.refresh.total", Counter),
    ("indices.refresh.total_time_in_millis", Counter),
    ("indices.flush.total", Counter),
    ("indices.flush.total_time_in_millis", Counter),
    ("indices.merges.current", Gauge),
    ("indices.merges.total", Counter),
    ("indices.merges.total_time_in_millis", Counter),
    ("jvm.mem.heap_used_in_bytes", Gauge),
    ("jvm.gc.collectors.*.collection_count", Counter),
    ("jvm.gc.collectors.*.collection_time_in_millis", Counter),
    ("process.cpu.total_in_millis", Counter),
    ("process.open_file_descriptors", Gauge),
    ("thread_pool.*.active", Gauge),
    ("thread_pool.*.queue", Gauge),
    ("thread_pool.*.rejected", Counter),
];

/// The thread pools of requests, by their names in version 6.8. A server has a dozen others.
const POOLS: [&str; 5] = ["bulk", "get", "index", "search", "write"];

/// The nodes of one cluster.
pub(crate) struct Elasticsearch {
    statistics: HttpClient,
}

impl Elasticsearch {
    /// `base` is like `http://127.0.0.1:9200`; `login` is the value of the header `Authorization`.
    pub(crate) fn new(base: &str, login: Option<String>) -> Self {
        let url = format!("{}/_nodes/stats/{METRICS}", base.trim_end_matches('/'));
        Self { statistics: HttpClient::new(url, LIMITS).with_header("Authorization", login) }
    }

    /// The same with TLS, for an address that begins with `https`.
    pub(crate) fn with_tls(self, tls: Option<TlsConfig>) -> Self {
        Self { statistics: self.statistics.with_tls(tls) }
    }
}

impl Source for Elasticsearch {
    fn prefix(&self) -> &str {
        "elasticsearch"
    }

    fn read(&mut self) -> Result<Readings, String> {
        let stats = self.statistics.json("");
        let stats = stats.map_err(|error| error.to_string())?;
        let missing = || format!("{}: no `nodes` in the answer", self.statistics.base());
        let nodes = stats["nodes"].as_object().ok_or_else(missing)?;
        Ok(added(nodes.values()))
    }
}

fn added<'a>(nodes: impl Iterator<Item = &'a Value>) -> Readings {
    let mut sums = BTreeMap::new();
    for node in nodes {
        add(node, &mut String::new(), &mut sums);
    }
    sums.into_iter().map(|(name, (kind, value))| (name, kind, value)).collect()
}

/// Adds the numbers of `value`, which is at `path`.
fn add(value: &Value, path: &mut String, sums: &mut BTreeMap<String, (ValueKind, f64)>) {
    if let Some(object) = value.as_object() {
        let above = path.len();
        for (name, below) in object {
            if above > 0 {
                path.push('.');
            }
            path.push_str(name);
            add(below, path, sums);
            path.truncate(above);
        }
    } else if let Some(number) = value.as_f64()
        && let Some((_, kind)) = KEPT.iter().find(|(pattern, _)| matches(pattern, path))
        && is_for_requests(path)
    {
        sums.entry(path.clone()).or_insert((*kind, 0.0)).1 += number;
    }
}

/// Whether a path is outside of the thread pools, or in one of [`POOLS`].
fn is_for_requests(path: &str) -> bool {
    let pool = path.strip_prefix("thread_pool.").and_then(|rest| rest.split('.').next());
    pool.is_none_or(|pool| POOLS.contains(&pool))
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut names) = (pattern.split('.'), path.split('.'));
    loop {
        match (wanted.next(), names.next()) {
            (None, None) => return true,
            (Some(wanted), Some(name)) if wanted == "*" || wanted == name => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_nodes_are_added_and_the_rest_is_left_out() {
        let node = |total: u64, queue: u64| {
            serde_json::json!({
                "name": "n", "timestamp": 1_700_000_000_000_u64,
                "indices": { "indexing": { "index_total": total, "is_throttled": false }, "docs": { "count": 5 } },
                "jvm": { "gc": { "collectors": { "young": { "collection_count": 2, "collection_time_in_millis": 30 } } } },
                "thread_pool": {
                    "write": { "threads": 2, "queue": queue, "rejected": 1 },
                    "warmer": { "threads": 2, "queue": queue, "rejected": 1 },
                },
            })
        };
        let nodes = [node(10, 3), node(7, 4)];
        let expected = [
            ("indices.docs.count", Gauge, 10.0),
            ("indices.indexing.index_total", Counter, 17.0),
            ("jvm.gc.collectors.young.collection_count", Counter, 4.0),
            ("jvm.gc.collectors.young.collection_time_in_millis", Counter, 60.0),
            ("thread_pool.write.queue", Gauge, 7.0),
            ("thread_pool.write.rejected", Counter, 2.0),
        ];
        let expected: Readings = expected.map(|(name, kind, value)| (name.to_owned(), kind, value)).into();
        assert_eq!(added(nodes.iter()), expected);
    }

    #[test]
    fn a_pattern_is_as_long_as_its_path() {
        assert!(matches("a.*.c", "a.b.c"));
        assert!(!matches("a.*.c", "a.b.c.d") && !matches("a.*", "a") && !matches("a.*.c", "a.b.x"));
    }

    #[test]
    fn an_address_without_such_a_server_is_named() {
        let mut source = Elasticsearch::new("http://127.0.0.1:1/", None);
        assert!(source.read().unwrap_err().contains("127.0.0.1:1/_nodes/stats/indices"));
    }
}

//! The settings and mappings of an index.

use serde_json::{Map, Value, json};

use super::corpus::CorpusName;
use super::options::DatasetOptions;

/// The fields of [`CorpusName::Geonames`] that are texts with a keyword beside, as `NAME.raw`.
const TEXTS: [&str; 12] = [
    "name",
    "asciiname",
    "alternatenames",
    "feature_class",
    "feature_code",
    "cc2",
    "admin1_code",
    "admin2_code",
    "admin3_code",
    "admin4_code",
    "dem",
    "timezone",
];

/// The mapping of a corpus. A field that it does not know is an error of the document.
pub(super) fn mapping(corpus: CorpusName) -> Value {
    let fields = match corpus {
        CorpusName::Geonames => geonames(),
        CorpusName::Logs => logs(),
    };
    json!({ "dynamic": "strict", "properties": fields })
}

fn geonames() -> Value {
    let text = || json!({ "type": "text", "fields": { "raw": { "type": "keyword" } } });
    let mut fields: Map<String, Value> = TEXTS.iter().map(|name| ((*name).to_owned(), text())).collect();
    let mut country = text();
    country["fielddata"] = json!(true);
    for (name, kind) in [
        ("country_code", country),
        ("geonameid", json!({ "type": "long" })),
        ("population", json!({ "type": "long" })),
        ("elevation", json!({ "type": "integer" })),
        ("location", json!({ "type": "geo_point" })),
    ] {
        fields.insert(name.to_owned(), kind);
    }
    Value::Object(fields)
}

fn logs() -> Value {
    let keyword = json!({ "type": "keyword" });
    json!({
        "@timestamp": { "type": "date", "format": "epoch_millis" },
        "clientip": { "type": "ip" },
        "method": keyword,
        "status": { "type": "integer" },
        "agent": keyword,
        "path": keyword,
        "bytes": { "type": "long" },
        "referrer": keyword,
        "trace_id": keyword,
        "cookie": keyword,
        "message": { "type": "text" },
    })
}

/// The settings of the index. Without the option, the server's refresh interval stays.
pub(super) fn settings(options: &DatasetOptions) -> Value {
    let mut index = json!({
        "number_of_shards": options.shards,
        "number_of_replicas": options.replicas,
        "requests.cache.enable": false,
        "translog.durability": options.translog_durability.word(),
        "translog.sync_interval": options.translog_sync_interval,
    });
    if let Some(interval) = &options.refresh_interval {
        index["refresh_interval"] = json!(interval);
    }
    json!({ "index": index })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::corpus::Corpus;
    use super::*;

    #[test]
    fn every_field_of_a_document_is_mapped() {
        for name in [CorpusName::Geonames, CorpusName::Logs] {
            let mapping = mapping(name);
            let known: BTreeSet<&String> = mapping["properties"].as_object().unwrap().keys().collect();
            let corpus = Corpus::new(name, 1);
            let mut used = BTreeSet::new();
            for index in 0..2_000 {
                let mut out = Vec::new();
                corpus.append(index, &mut out);
                let document: Map<String, Value> = serde_json::from_slice(&out).unwrap();
                used.extend(document.into_iter().map(|(name, _)| name));
            }
            assert_eq!(known, used.iter().collect(), "{name:?}");
        }
    }
}

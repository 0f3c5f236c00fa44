//! Which server it is, and what it wants to be asked for: mapping types ended with version 7.

use serde_json::Value;

/// The mapping type of servers before version 7.
const TYPE: &str = "doc";
/// The oldest version whose interface this driver speaks: `text` and `keyword` came with it.
const MAJOR_MIN: u32 = 5;

/// A server, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Name and version, as in "Elasticsearch 5.5.3".
    pub(super) product: String,
    has_types: bool,
}

impl Server {
    /// Reads the answer to `GET /`. The error states that it is another server, or too old.
    pub(super) fn read(answer: &Value) -> Result<Self, String> {
        let version = &answer["version"];
        let Some(number) = version["number"].as_str() else {
            return Err("it is neither Elasticsearch nor OpenSearch: GET / has no version.number".to_owned());
        };
        if version["distribution"].as_str() == Some("opensearch") {
            return Ok(Self { product: format!("OpenSearch {number}"), has_types: false });
        }
        let major = number.split('.').next().and_then(|major| major.parse::<u32>().ok());
        match major {
            Some(major) if major >= MAJOR_MIN => {
                Ok(Self { product: format!("Elasticsearch {number}"), has_types: major < 7 })
            }
            _ => Err(format!(
                "it is version {number}; this driver needs Elasticsearch 5 or later, or OpenSearch"
            )),
        }
    }

    /// The path of bulk requests.
    pub(super) fn bulk_path(&self, index: &str) -> String {
        if self.has_types { format!("/{index}/{TYPE}/_bulk") } else { format!("/{index}/_bulk") }
    }

    /// The value of `mappings` for the creation of an index.
    pub(super) fn mappings(&self, mut mapping: Value) -> Value {
        if !self.has_types {
            return mapping;
        }
        // Version 5 would otherwise copy all fields into one more.
        if self.product.starts_with("Elasticsearch 5.") {
            mapping["_all"] = serde_json::json!({ "enabled": false });
        }
        serde_json::json!({ TYPE: mapping })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(version: &Value) -> Result<Server, String> {
        Server::read(&json!({ "name": "n1", "version": version }))
    }

    #[test]
    fn types_end_with_version_7() {
        for (version, product, path) in [
            (json!({ "number": "5.5.3" }), "Elasticsearch 5.5.3", "/i/doc/_bulk"),
            (json!({ "number": "6.8.23" }), "Elasticsearch 6.8.23", "/i/doc/_bulk"),
            (json!({ "number": "7.17.0" }), "Elasticsearch 7.17.0", "/i/_bulk"),
            (json!({ "number": "8.15.0" }), "Elasticsearch 8.15.0", "/i/_bulk"),
            (json!({ "number": "2.19.1", "distribution": "opensearch" }), "OpenSearch 2.19.1", "/i/_bulk"),
        ] {
            let server = server(&version).unwrap();
            assert_eq!((server.product.as_str(), server.bulk_path("i").as_str()), (product, path));
            let mappings = server.mappings(json!({ "dynamic": "strict" }));
            assert_eq!(mappings["doc"].is_object(), path.contains("doc"), "{mappings}");
            assert_eq!(mappings["doc"]["_all"].is_object(), product.contains(" 5."), "{mappings}");
        }
    }

    #[test]
    fn other_servers_and_old_ones_are_refused() {
        assert!(server(&json!({ "number": "2.4.6" })).unwrap_err().contains("Elasticsearch 5 or later"));
        assert!(Server::read(&json!({ "hello": 1 })).unwrap_err().contains("neither Elasticsearch"));
        assert!(Server::read(&Value::Null).is_err());
    }
}

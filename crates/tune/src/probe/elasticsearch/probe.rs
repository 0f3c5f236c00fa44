//! The probe.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{indexes, nodes, shards};
use crate::host::HostRoot;
use crate::observation::Group;
use crate::probe::http::{HttpAnswer, HttpClient, HttpError};
use crate::probe::interface::{Hidden, Identity, Probe, ProbeError, Sample};
use crate::probe::local;
use crate::endpoint::Endpoint;
use crate::value::Value;

/// Names that only the client or the user knows.
const NOT_ON_THE_SERVER: [(&str, &str); 4] = [
    ("bulk_documents", "it is a setting of the client"),
    ("client_ids", "it is a setting of the client"),
    ("loading", "only the user knows it"),
    ("is_log", "only the user knows it"),
];

/// A server that is looked at.
#[derive(Debug)]
struct ElasticsearchProbe {
    http: HttpClient,
    host: String,
    index: Option<String>,
    identity: Identity,
    written: Option<shards::Written>,
}

/// Connects to a server of either variant.
pub(in crate::probe) fn connect(endpoint: &Endpoint) -> Result<Box<dyn Probe>, ProbeError> {
    let mut http = HttpClient::new(&endpoint.host, endpoint.port);
    if let Some((user, password)) = &endpoint.login {
        http = http.with_password(user, password);
    }
    let answer = http.get("/").map_err(|error| ProbeError(error.to_string()))?;
    if let 401 | 403 = answer.status {
        return Err(refused(&HttpError::Status(answer), "monitor of the cluster"));
    }
    let identity = identity(&answer)?;
    let (host, index) = (endpoint.host.clone(), endpoint.path.clone());
    Ok(Box::new(ElasticsearchProbe { http, host, index, identity, written: None }))
}

/// What the server is, by the answer to `GET /`.
fn identity(answer: &HttpAnswer) -> Result<Identity, ProbeError> {
    let json: Json = serde_json::from_str(&answer.body).unwrap_or_default();
    let version = &json["version"];
    let (Some(number), Some(cluster)) = (version["number"].as_str(), json["cluster_name"].as_str()) else {
        let what = format!(
            "{} is neither Elasticsearch nor OpenSearch: it has answered with {}. Name the HTTP port of a node. tacho:// is \
             the target of a Tachograph server",
            answer.url,
            answer.kind()
        );
        return Err(ProbeError(what));
    };
    let is_opensearch = version["distribution"] == "opensearch";
    let (variant, product) =
        if is_opensearch { ("opensearch", "OpenSearch") } else { ("elasticsearch", "Elasticsearch") };
    Ok(Identity {
        product: "elasticsearch",
        title: format!("{product}, cluster {cluster}"),
        variant: variant.to_owned(),
        version: Some(number.to_owned()),
        role: None,
    })
}

/// An error that names the privilege which the request needs.
fn refused(error: &HttpError, privilege: &str) -> ProbeError {
    ProbeError(match error.status() {
        Some(401) => format!(
            "the server wants another user or password: write http://USER:PASSWORD@HOST:PORT, with %40 for an @ in them ({error})"
        ),
        Some(403) => format!("the user lacks a privilege: {privilege} ({error})"),
        _ => error.to_string(),
    })
}

impl Probe for ElasticsearchProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut hidden: Vec<Hidden> = NOT_ON_THE_SERVER.iter().map(|(name, why)| Hidden::new(name, *why)).collect();
        let stats = self.json(nodes::STATS_PATH, "monitor of the cluster")?;
        let info = self.json(nodes::INFO_PATH, "monitor of the cluster")?;
        let indexes = self.indexes(&mut hidden)?;
        let names: BTreeSet<&str> = indexes.iter().map(|index| index.name.as_str()).collect();
        let written = shards::written(&stats, &names);
        let hot = |node: &str| shards::hot(node, &written, self.written.as_ref());
        let data_nodes = nodes::read(&info, &stats, self.default_lock(&mut hidden), &hot);
        let counters = shards::counters(&stats, &names);
        let mut facts = local::of_host(&self.host, &HostRoot::new("/"));
        // Each node has its own memory.
        facts.retain(|name, _| ["rotational", "vm.max_map_count"].contains(&name.as_str()));
        facts.insert("data_nodes".to_owned(), Value::Number(data_nodes.len() as f64));
        let settings = facts.remove("vm.max_map_count").map(|value| ("vm.max_map_count".to_owned(), value));
        self.written = Some(written);
        Ok(Sample {
            settings: settings.into_iter().collect(),
            facts,
            counters,
            groups: BTreeMap::from([("index".to_owned(), indexes), ("node".to_owned(), data_nodes)]),
            uptime_s: shards::uptime_s(&stats),
            hidden,
        })
    }
}

impl ElasticsearchProbe {
    fn json(&self, path: &str, privilege: &str) -> Result<Json, ProbeError> {
        self.http.json(path).map_err(|error| refused(&error, privilege))
    }

    /// The indexes. A user without the privilege for settings, or for mappings, gets advice without them.
    fn indexes(&self, hidden: &mut Vec<Hidden>) -> Result<Vec<Group>, ProbeError> {
        let index = self.index.as_deref();
        let settings = match self.http.json(&indexes::settings_path(index)) {
            Err(HttpError::Status(answer)) if answer.status == 404 => {
                let index = index.unwrap_or_default();
                return Err(ProbeError(format!("{}: there is no index `{index}`", self.http.base())));
            }
            Err(HttpError::Status(answer)) => {
                let why = refused(&HttpError::Status(answer), "view_index_metadata of the indexes");
                hidden.push(Hidden::new("the settings of indexes", why.to_string()));
                Json::Null
            }
            settings => settings.map_err(|error| ProbeError(error.to_string()))?,
        };
        let mappings = self.http.json(&indexes::mapping_path(index));
        if let Err(error) = &mappings {
            let why = refused(error, "view_index_metadata of the indexes");
            hidden.push(Hidden::new("mapping.dynamic", why.to_string()));
        }
        Ok(indexes::read(&settings, mappings.ok().as_ref(), index.is_some()))
    }

    /// The default of `bootstrap.memory_lock`. Managed services do not show settings of the cluster.
    fn default_lock(&self, hidden: &mut Vec<Hidden>) -> Option<bool> {
        match self.http.json(nodes::DEFAULTS_PATH) {
            Ok(json) => nodes::boolean(&json["defaults"]["bootstrap"]["memory_lock"]),
            Err(error) => {
                let why = refused(&error, "monitor of the cluster");
                hidden.push(Hidden::new("bootstrap.memory_lock", why.to_string()));
                None
            }
        }
    }
}

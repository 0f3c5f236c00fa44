//! The probe.

use std::collections::{BTreeMap, BTreeSet};

use clients::http::{Body, HttpAnswer, HttpClient, HttpError, HttpRequest};
use serde_json::Value as Json;

use super::{indexes, nodes, shards};
use crate::endpoint::Endpoint;
use crate::observation::{Group, Hidden};
use crate::probe::contract::{Identity, Probe, Sample, Start};
use crate::probe::error::{ProbeError, StatementError};
use crate::probe::host::{HostFiles as _, HostRoot};
use crate::probe::http::{self, Wanted, probe_error};
use crate::probe::local;
use crate::statement::Statement;
use crate::value::Value;

/// Names that only the client or the user knows.
const NOT_ON_THE_SERVER: [(&str, &str); 4] = [
    ("bulk_documents", "it is a setting of the client"),
    ("client_ids", "it is a setting of the client"),
    ("loading", "only the user knows it"),
    ("is_log", "only the user knows it"),
];

/// The moments at which the nodes have started.
const STARTS: &str = "/_nodes/jvm?filter_path=nodes.*.jvm.start_time_in_millis";

/// Versions, nodes and counters.
const CLUSTER: Wanted = Wanted {
    what: "the cluster",
    remedy: "A role with the cluster privilege `monitor` allows it (cluster_monitor in OpenSearch)",
};
/// Settings and mappings.
const INDEXES: Wanted = Wanted {
    what: "the settings of indexes",
    remedy: "A role with the index privilege `view_index_metadata` allows it (indices_monitor in OpenSearch)",
};

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
    let login = endpoint.login.as_ref().map(|(user, password)| http::basic_login(user, password));
    let http = http::client(&endpoint.host, endpoint.port).with_header("Authorization", login);
    let answer = http.get("/").map_err(|error| probe_error(&error, http.base(), CLUSTER))?;
    if let 401 | 403 = answer.status {
        return Err(probe_error(&HttpError::Status(Box::new(answer)), http.base(), CLUSTER));
    }
    let identity = identity(&answer)?;
    let (host, index) = (endpoint.host.clone(), endpoint.path.clone());
    Ok(Box::new(ElasticsearchProbe { http, host, index, identity, written: None }))
}

/// What the server is, by the answer to `GET /`.
fn identity(answer: &HttpAnswer) -> Result<Identity, ProbeError> {
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let version = &json["version"];
    let (Some(number), Some(cluster)) = (version["number"].as_str(), json["cluster_name"].as_str()) else {
        return Err(ProbeError::OtherProduct {
            target: answer.url.clone(),
            expected: "Elasticsearch or OpenSearch",
            reason: format!("it has answered with {}", answer.kind()),
        });
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

impl Probe for ElasticsearchProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut hidden: Vec<Hidden> =
            NOT_ON_THE_SERVER.iter().map(|(name, why)| Hidden::new(*name, *why)).collect();
        let stats = self.json(nodes::STATS_PATH)?;
        let info = self.json(nodes::INFO_PATH)?;
        let indexes = self.indexes(&mut hidden)?;
        let names: BTreeSet<&str> = indexes.iter().flatten().map(|index| index.name.as_str()).collect();
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
        let mut groups = BTreeMap::from([("node".to_owned(), data_nodes)]);
        groups.extend(indexes.map(|indexes| ("index".to_owned(), indexes)));
        Ok(Sample {
            settings: settings.into_iter().collect(),
            facts,
            counters,
            groups,
            uptime_s: shards::uptime_s(&stats),
            hidden,
            ..Sample::default()
        })
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        match statement {
            Statement::Put { path, body } => {
                let answer = self.http.send(&HttpRequest::new("PUT", path, Body::Json(body)));
                let answer = answer.map_err(|error| StatementError::Lost(error.to_string()))?;
                match (answer.status, answer.success()) {
                    (_, Ok(_)) => Ok(()),
                    (401 | 403, Err(error)) => Err(StatementError::Permission(error.to_string())),
                    (_, Err(error)) => Err(StatementError::Refused(error.to_string())),
                }
            }
            Statement::Write { path, text } if local::is_local(&self.host) => {
                HostRoot::new("/").write(path, text).map_err(|error| StatementError::of_file(&error))
            }
            Statement::Write { .. } => Err(StatementError::OtherMachine),
            other => Err(StatementError::Other(other.clone())),
        }
    }

    /// The starts of all nodes: a node that starts again is a disturbance too.
    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        Ok(Some(Start::Id(self.json(STARTS)?.to_string())))
    }
}

impl ElasticsearchProbe {
    fn json(&self, path: &str) -> Result<Json, ProbeError> {
        self.http.json(path).map_err(|error| probe_error(&error, self.http.base(), CLUSTER))
    }

    /// The reason for which a value is hidden.
    fn why(&self, error: &HttpError, wanted: Wanted) -> String {
        probe_error(error, self.http.base(), wanted).to_string()
    }

    /// The indexes, if the user may see them.
    fn indexes(&self, hidden: &mut Vec<Hidden>) -> Result<Option<Vec<Group>>, ProbeError> {
        let index = self.index.as_deref();
        let shows_defaults = indexes::shows_defaults(&self.identity);
        let settings = match self.http.json(&indexes::settings_path(index, shows_defaults)) {
            Ok(settings) => settings,
            Err(error) if matches!(&error, HttpError::Status(answer) if answer.status == 403) => {
                let why = self.why(&error, INDEXES);
                hidden.extend(indexes::names().map(|name| Hidden::new(name, why.clone())));
                return Ok(None);
            }
            Err(error) => return Err(probe_error(&error, self.http.base(), INDEXES)),
        };
        let mappings = self.http.json(&indexes::mapping_path(index));
        let mappings =
            mappings.map_err(|error| hidden.push(Hidden::new("mapping.dynamic", self.why(&error, INDEXES))));
        Ok(Some(indexes::read(&settings, mappings.ok().as_ref(), index.is_some(), shows_defaults)))
    }

    /// The default of `bootstrap.memory_lock`. Managed services do not show settings of the cluster.
    fn default_lock(&self, hidden: &mut Vec<Hidden>) -> Option<bool> {
        match self.http.json(nodes::DEFAULTS_PATH) {
            Ok(json) => nodes::boolean(&json["defaults"]["bootstrap"]["memory_lock"]),
            Err(error) => {
                hidden.push(Hidden::new("bootstrap.memory_lock", self.why(&error, CLUSTER)));
                None
            }
        }
    }
}

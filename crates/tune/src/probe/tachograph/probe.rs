//! The probe.

use std::collections::BTreeMap;

use clients::http::{HttpAnswer, HttpClient, HttpError, RestClient, RestError};
use serde_json::Value as Json;

use super::metrics;
use crate::endpoint::Endpoint;
use crate::observation::Hidden;
use crate::probe::contract::{Identity, Probe, Sample, Start};
use crate::probe::error::ProbeError;
use crate::probe::host::HostRoot;
use crate::probe::http::{self, LIMITS, Wanted, probe_error};
use crate::probe::local;
use crate::value::Value;

/// Counters of rules and the metrics that hold them.
const COUNTERS: [(&str, &str); 2] = [("syncs", "sync_latency_seconds_count"), ("messages", "messages_total")];
/// The counter of refused connections, and its metric, which begins with the first refusal.
const REFUSED: (&str, &str) = ("connections_refused", "refusals_total:connections_max");
/// Facts of rules that are metrics.
const FACTS: [&str; 4] = ["connections", "memtable_bytes", "sql_memory_bytes", "sql_waiting"];

/// State and metrics.
const STATUS: Wanted =
    Wanted { what: "/api/status and /metrics", remedy: "A proxy before the server may refuse them" };

/// A server that is looked at.
#[derive(Debug)]
struct TachographProbe {
    http: HttpClient,
    host: String,
    identity: Identity,
}

/// Connects to the HTTP port. A login is checked if there is one; nothing that the probe reads needs it.
pub(in crate::probe) fn connect(endpoint: &Endpoint) -> Result<Box<dyn Probe>, ProbeError> {
    if let Some((user, password)) = &endpoint.login {
        let client = RestClient::new(&http::base(&endpoint.host, endpoint.port), LIMITS);
        client.log_in(user, password).map_err(|error| login_error(&error, client.base()))?;
    }
    let http = http::client(&endpoint.host, endpoint.port);
    let answer = http.get("/api/status").map_err(|error| probe_error(&error, http.base(), STATUS))?;
    let status: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let (Some(version), true) = (status["version"].as_str(), status["store"].is_object()) else {
        return Err(ProbeError::OtherProduct {
            target: http.base().to_owned(),
            expected: "a Tachograph server",
            reason: format!("/api/status is {}. Name the HTTP port, 8080 by default", answer.kind()),
        });
    };
    let identity = Identity {
        product: "tachograph",
        title: format!("Tachograph at {}", http.base()),
        variant: "tachograph".to_owned(),
        version: Some(version.to_owned()),
        role: None,
    };
    Ok(Box::new(TachographProbe { http, host: endpoint.host.clone(), identity }))
}

fn login_error(error: &RestError, target: &str) -> ProbeError {
    let (target, reason) = (target.to_owned(), error.to_string());
    match error {
        RestError::Transport { source, .. } => {
            ProbeError::Connect { target, reason: format!("{reason}: {source}") }
        }
        RestError::Tls { .. } => ProbeError::Connect { target, reason },
        RestError::Status { status: 401, .. } => ProbeError::Login { target, reason },
        RestError::Status { .. } => ProbeError::Protocol { target, what: "the answer to the login", reason },
        RestError::Answer { .. } => {
            ProbeError::OtherProduct { target, expected: "a Tachograph server", reason }
        }
    }
}

impl Probe for TachographProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let failed = |error: HttpError| probe_error(&error, self.http.base(), STATUS);
        let status = self.http.json("/api/status").map_err(failed)?;
        let page = self.http.get("/metrics").and_then(HttpAnswer::success).map_err(failed)?;
        let metrics = metrics::read(&page.text());
        let mut facts = machine(&self.host);
        let fact = |name: &str| Some((name.to_owned(), Value::Number(*metrics.get(name)?)));
        facts.extend(FACTS.iter().filter_map(|name| fact(name)));
        let counter = |(name, metric): &(&str, &str)| Some(((*name).to_owned(), *metrics.get(*metric)?));
        let refused = (REFUSED.0.to_owned(), metrics.get(REFUSED.1).copied().unwrap_or_default());
        Ok(Sample {
            settings: settings(&status["settings"]),
            hidden: hidden(&status, !facts.contains_key("memory_bytes")),
            facts,
            counters: COUNTERS.iter().filter_map(counter).chain([refused]).collect(),
            groups: BTreeMap::new(),
            uptime_s: status["uptime_s"].as_f64(),
            ..Sample::default()
        })
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        let status =
            self.http.json("/api/status").map_err(|error| probe_error(&error, self.http.base(), STATUS))?;
        Ok(status["uptime_s"].as_f64().map(Start::before_s))
    }
}

/// Memory and processors, if the server runs on this machine.
fn machine(host: &str) -> BTreeMap<String, Value> {
    let mut values = local::of_host(host, &HostRoot::new("/"));
    values.retain(|name, _| ["memory_bytes", "cores"].contains(&name.as_str()));
    values
}

fn settings(json: &Json) -> BTreeMap<String, Value> {
    let value = |value: &Json| match value {
        Json::Number(number) => number.as_f64().map(Value::Number),
        Json::String(text) => Some(Value::Text(text.clone())),
        _ => None,
    };
    let settings = json.as_object().into_iter().flatten();
    settings.filter_map(|(name, json)| Some((name.clone(), value(json)?))).collect()
}

fn hidden(status: &Json, is_elsewhere: bool) -> Vec<Hidden> {
    let mut hidden = vec![Hidden::new(
        "free_disk_share",
        "the server does not show it: `tacho status --data DIR` on its machine does",
    )];
    if !status["settings"].is_object() {
        let names = ["store.memtable_bytes_max", "store.commit_interval_us", "store.ttl_default"];
        let others = ["query.memory_bytes_total_max", "query.concurrent_max", "nofile.hard"];
        let why = "this version does not show its settings in /api/status";
        hidden.extend(names.into_iter().chain(others).map(|name| Hidden::new(name, why)));
    }
    if is_elsewhere {
        let why = "the server runs on another machine: run `tacho tune` there, with the address 127.0.0.1";
        hidden.extend(["memory_bytes", "cores"].map(|name| Hidden::new(name, why)));
    }
    hidden
}

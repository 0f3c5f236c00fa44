//! Scenarios of driver `http`.
//!
//! `[dataset]`, phases and mixes: `protocol` (`h1`, `h2`), `connection` (`keep-alive`, `close`), `keys`, `distribution`,
//! `requests`, `order`, `setup`.
//! `[dataset]` only: `data_bytes`, `data_compressed` and `data_seed` of `__data__`; `nginx_status`, the address of nginx' stub_status, and
//! `elasticsearch_stats`, that of a node of Elasticsearch or OpenSearch. Operations: `request`, `headers`, `body`, `status`, `expect_bytes`, `expect_body`,
//! `expect_json`, `expect_present`, `extract`.
//! `target.url` is http://user:password@host:port/path; the path is before those of requests.

use std::net::SocketAddr;
use std::sync::Arc;

use clients::target_url::{ASKED, HTTP, TargetUrl};
use clients::tls::{TlsClient, TlsConfig};
use load::engine::{SegmentOutcome, event};
use load::progress::Progress;
use load::result::{Check, Target};
use load::sampling::{Source, server_pid};
use load::scenario::{Mix, Phase, Scenario};
use load::{Error, Result};

use crate::sources::{Elasticsearch, Nginx, PollCount, StubStatus};

use super::options::{ConnectionOption, DataOption, GroupOptions, OperationOptions, StatusOption};
use super::{Data, Expect, GroupConfig, Http, Operation, Request, Tally, Version, probe};
use crate::Context;
use crate::driver::{
    Capabilities, Counts, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_EVENTS,
    TargetKind, Verdict,
};
use crate::plan::{plan, target_url};

/// Process names of servers of this protocol.
const PROCESS_NAMES: [&str; 10] =
    ["nginx", "tacho", "haproxy", "httpd", "apache2", "caddy", "envoy", "traefik", "lighttpd", "openresty"];

/// The name of a count that processes exchange.
const WRITTEN: &str = "requests";
const REPEATED: &str = "requests written once more";
const CONNECTIONS: &str = "connections";

/// The requests of all processes in a phase.
struct Total {
    written: u64,
    repeated: u64,
    connections: u64,
}

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "http",
    new: |scenario| Ok(Box::new(HttpDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// An address that is asked besides the load, and its TLS.
type Page = (String, Option<TlsConfig>);

/// The driver of one scenario.
pub(super) struct HttpDriver {
    scenario: Scenario,
    url: TargetUrl,
    address: Option<SocketAddr>,
    /// TLS of the connections, known since `open`.
    tls: Option<TlsClient>,
    nginx_status: Option<Page>,
    elasticsearch_stats: Option<Page>,
    data: Data,
    /// Requests for the status page of nginx. nginx counts them as well.
    polls: Arc<PollCount>,
    /// The status page and the number of requests for it before the phase.
    status_before: Option<(StubStatus, (u64, u64))>,
    /// The tallies of the latest phase.
    tallies: Vec<Tally>,
}

impl HttpDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let url = target_url(scenario, &HTTP)?;
        let address = |name: &str| -> std::result::Result<Option<Page>, String> {
            match scenario.dataset.get(name).and_then(toml::Value::as_str) {
                // The result contains the data set unchanged, so a URL with a password is refused.
                Some(url) => {
                    let failed = |what: &dyn std::fmt::Display| format!("[dataset] {name}: {what}");
                    let url = TargetUrl::parse(url, &ASKED).map_err(|what| failed(&what))?;
                    let tls = url.tls_config().map_err(|error| failed(&error))?;
                    Ok(Some((url.base(), tls)))
                }
                None => Ok(None),
            }
        };
        GroupOptions::check_dataset(&scenario.dataset)?;
        let driver = Self {
            nginx_status: address("nginx_status")?,
            elasticsearch_stats: address("elasticsearch_stats")?,
            data: DataOption::read(&scenario.dataset)?,
            scenario: scenario.clone(),
            url,
            address: None,
            tls: None,
            polls: Arc::default(),
            status_before: None,
            tallies: Vec::new(),
        };
        scenario.check_phases(|phase| driver.http(phase))?;
        Ok(driver)
    }

    fn http(&self, phase: &Phase) -> std::result::Result<Http, String> {
        let groups = phase.mixes.iter().map(|mix| self.group(phase, mix));
        let groups = groups.collect::<std::result::Result<Vec<_>, _>>()?;
        // The header that ends a connection is the same for all requests of a phase.
        let close = groups.iter().any(|group| group.close);
        if close && !groups.iter().all(|group| group.close) {
            return Err(
                "its mixes have `connection` in common: put the others into a phase of their own".to_owned()
            );
        }
        let operations = self.scenario.operations.iter().map(|operation| self.operation(operation, close));
        let operations = operations.collect::<std::result::Result<Vec<_>, _>>()?;
        let http = Http::new(&operations, groups, self.scenario.head.seed)?;
        http.with_login([self.url.user.clone(), self.url.password()])
    }

    fn group(&self, phase: &Phase, mix: &Mix) -> std::result::Result<GroupConfig, String> {
        let own = GroupOptions::read(&self.scenario.dataset, mix)?;
        if own.protocol == Version::Two && self.url.tls_options().is_some() {
            return Err(
                "`protocol = \"h2\"` is for http://: this driver negotiates no HTTP/2 over TLS".to_owned()
            );
        }
        if own.requests.is_none() && phase.duration.is_none() {
            return Err("it has neither `duration` nor `requests` and would never end".to_owned());
        }
        let class = |name: &String| match self.scenario.operation(name) {
            Some(_) => Ok(self.scenario.class_of(name)),
            None => Err(format!("`setup`: there is no operation `{name}`")),
        };
        let setup = own.setup.iter().map(class).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(GroupConfig {
            connections: mix.connections,
            operations: self.scenario.weights(mix),
            version: own.protocol,
            window: mix.window,
            close: own.connection == ConnectionOption::Close,
            order: own.order,
            setup,
            requests: own.requests.map(|requests| self.scenario.scaled(requests)),
            keys: (own.keys[0], own.keys[1]),
            distribution: own.distribution,
        })
    }

    fn operation(
        &self,
        operation: &load::scenario::Operation,
        close: bool,
    ) -> std::result::Result<Operation, String> {
        let place = operation.place();
        let own: OperationOptions = operation.options()?;
        let data = self.data;
        own.check_data(data).map_err(|error| format!("{place}: {error}"))?;
        let json = own.json().map_err(|error| format!("{place}: {error}"))?;
        let (method, path) = own.request.split_once(' ').unwrap_or(("GET", &own.request));
        let mut headers: Vec<(String, String)> = own.headers.into_iter().collect();
        let named = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if let Some(login) = self.url.basic_login()
            && !headers.iter().any(named)
            && !self.logs_in()
        {
            headers.push(("Authorization".to_owned(), login));
        }
        let base = self.url.path.trim_end_matches('/');
        let target = if base.is_empty() { path.to_owned() } else { format!("/{base}{path}") };
        let request = Request {
            method: method.to_owned(),
            target,
            host: self.url.host_port(),
            headers,
            body: own.body,
            data,
            close,
        };
        request.check().map_err(|error| format!("{place}: {error}"))?;
        let statuses = match own.status {
            StatusOption::One(status) => vec![status],
            StatusOption::Several(statuses) => statuses,
        };
        let expect = Expect { statuses, bytes: own.expect_bytes, body: own.expect_body, json, data };
        Ok(Operation { request, expect })
    }

    /// Whether a request logs in with the password of `target.url`. Then no request has it in `Authorization`.
    fn logs_in(&self) -> bool {
        let own = |operation: &load::scenario::Operation| operation.options::<OperationOptions>().ok();
        let mut bodies = self.scenario.operations.iter().filter_map(own).filter_map(|own| own.body);
        bodies.any(|body| body.contains("__password__"))
    }

    fn nginx(&self) -> Option<Nginx> {
        let page = self.nginx_status.as_ref();
        page.map(|(url, tls)| Nginx::new(url, Arc::clone(&self.polls)).with_tls(tls.clone()))
    }

    fn status(&self) -> Result<Option<(StubStatus, (u64, u64))>> {
        let Some(nginx) = self.nginx() else { return Ok(None) };
        let status = nginx.status().map_err(Error::Options)?;
        Ok(Some((status, self.polls.so_far())))
    }

    fn speaks_h1(&self) -> bool {
        let of_phase = |phase: &Phase| {
            phase
                .mixes
                .iter()
                .filter_map(|mix| self.group(phase, mix).ok())
                .any(|g| g.version == Version::One)
        };
        self.scenario.phases.iter().any(of_phase)
    }

    /// Compares the requests that the server counted with the answers.
    fn request_check(&mut self, phase: &str, total: &Total) -> Result<(Vec<Check>, Vec<String>)> {
        let (Some((status_before, asked_before)), Some((after, asked))) =
            (self.status_before.take(), self.status()?)
        else {
            return Ok((Vec::new(), Vec::new()));
        };
        let requests =
            after.requests.saturating_sub(status_before.requests).saturating_sub(asked.0 - asked_before.0);
        // The server may have read a repeated request the first time as well. The same holds for an unanswered request
        // of the status page.
        let least = total.written - total.repeated;
        let most = total.written + (asked.1 - asked_before.1);
        let check = Check {
            what: format!("requests that nginx counted ({phase})"),
            expected: if least == most { least.to_string() } else { format!("{least} to {most}") },
            found: requests.to_string(),
            passed: (least..=most).contains(&requests),
        };
        let dropped = after.accepts.saturating_sub(status_before.accepts)
            - after.handled.saturating_sub(status_before.handled);
        let finding = format!(
            "{phase}: nginx accepted {} connections (those that ask for its status among them) and dropped {dropped}.",
            after.accepts.saturating_sub(status_before.accepts)
        );
        Ok((vec![check], vec![finding]))
    }
}

impl Driver for HttpDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_events(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, Some(SLICE_MS_EVENTS))
    }

    fn open(&mut self, _context: &Context, _progress: &Progress) -> Result<Opened> {
        let address = self.url.resolve()?;
        let tls = self.url.tls_client()?;
        let product = match self.speaks_h1() {
            true => {
                let (host, path) = (self.url.host_port(), format!("/{}", self.url.path));
                probe::server(address, tls.as_ref(), &host, &path)?
            }
            false => None,
        };
        self.status()?;
        (self.address, self.tls) = (Some(address), tls);
        let tls = self.url.verification();
        let target = Target { address: address.to_string(), product, tls, ..Target::default() };
        Ok(Opened { target, server_pid: server_pid(address, &PROCESS_NAMES), ..Opened::default() })
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let nginx = self.nginx().map(|nginx| Box::new(nginx) as Box<dyn Source>);
        let elasticsearch = self.elasticsearch_stats.as_ref().map(|(base, tls)| {
            let statistics = Elasticsearch::new(base, self.url.basic_login()).with_tls(tls.clone());
            Box::new(statistics) as Box<dyn Source>
        });
        nginx.into_iter().chain(elasticsearch).collect()
    }

    fn prepare(&mut self, _phase: &Phase) -> Result<()> {
        self.status_before = self.status()?;
        Ok(())
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let driver = self.http(phase).map_err(Error::Options)?;
        let address = self.address.expect(NOT_OPEN);
        let plan = plan(phase, &self.scenario, address, part).over(self.tls.clone());
        let outcome = event::run(&driver, &plan, shared, on_event)?;
        self.tallies = outcome.sessions.iter().map(|session| session.tally).collect();
        Ok(outcome.segments)
    }

    fn local_counts(&mut self, _: &[SegmentOutcome]) -> Counts {
        let tallies = std::mem::take(&mut self.tallies).into_iter();
        let Tally { written, answered: _, repeated, connections } =
            tallies.fold(Tally::default(), |sum, one| sum + one);
        [(WRITTEN, written), (REPEATED, repeated), (CONNECTIONS, connections)]
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let count = |name: &str| end.all_counts.get(name).copied().unwrap_or(0);
        let total =
            Total { written: count(WRITTEN), repeated: count(REPEATED), connections: count(CONNECTIONS) };
        let (checks, mut findings) = self.request_check(&end.phase.name, &total)?;
        findings.push(format!(
            "{}: {} requests over {} connections, {} of them once more because the server had ended the connection before it \
             read them.",
            end.phase.name, total.written, total.connections, total.repeated
        ));
        Ok(Verdict { checks, findings })
    }
}

//! Scenarios of driver `es`.
//!
//! `[dataset]`: the documents and the index ([`DatasetOptions`]). Operations: `kind` and its options
//! ([`OperationOptions`]). Phases and mixes: `requests`. A phase with bulk requests creates the index and finishes it.
//! `target.url` is http://user:password@host:port/index.

use std::net::SocketAddr;

use clients::target_url::{ES, TargetUrl, without_password};
use clients::tls::TlsClient;
use load::engine::{SegmentOutcome, event};
use load::progress::Progress;
use load::protocol::OperationChoice;
use load::result::{RunResult, Target};
use load::sampling::{Source, server_pid};
use load::scenario::{Mix, Phase, Scenario};
use load::{Error, Result};

use crate::sources::Elasticsearch;

use super::admin::Admin;
use super::checks::{self, Loaded};
use super::corpus::{Corpus, CorpusName, Geonames, TermCounts};
use super::mapping::{mapping, settings};
use super::options::{DatasetOptions, GroupOptions, IfExists, OperationOptions};
use super::protocol::{Es, Operation, Tally};
use super::queries::QueryWriter;
use super::server::Server;
use crate::Context;
use crate::command_line::{left_behind, load_command, shell_word, tls_flags};
use crate::driver::{
    Capabilities, Counts, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_EVENTS,
    TargetKind, Verdict,
};
use crate::limits::HTTP_BODIES_BYTES_MAX;
use crate::plan::{plan, target_url};
use crate::request::RequestHead;

/// Process names of servers of this protocol.
const PROCESS_NAMES: [&str; 4] = ["java", "elasticsearch", "opensearch", "tacho"];

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "es",
    new: |scenario| Ok(Box::new(EsDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: true,
    dataset_keys: true,
};

/// The driver of one scenario.
struct EsDriver {
    scenario: Scenario,
    url: TargetUrl,
    options: DatasetOptions,
    /// By class.
    operations: Vec<OperationOptions>,
    documents: u64,
    index: String,
    /// Address, client and product of the open server.
    opened: Option<(SocketAddr, Admin, Server)>,
    /// TLS of the connections, known since `open`.
    tls: Option<TlsClient>,
    /// The hits of queries, once they are counted.
    counts: Option<TermCounts>,
    /// The documents of this process in the latest phase.
    tally: Tally,
}

impl EsDriver {
    fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let url = target_url(scenario, &ES)?;
        let options = DatasetOptions::read(scenario)?;
        let operations = scenario.operations.iter().map(OperationOptions::read);
        let index = if url.path.is_empty() { options.corpus.index().to_owned() } else { url.path.clone() };
        check_index(&index)?;
        let driver = Self {
            documents: options.documents(scenario),
            operations: operations.collect::<std::result::Result<Vec<_>, _>>()?,
            scenario: scenario.clone(),
            url,
            options,
            index,
            opened: None,
            tls: None,
            counts: None,
            tally: Tally::default(),
        };
        scenario.check_phases(|phase| driver.check(phase))?;
        Ok(driver)
    }

    fn check(&self, phase: &Phase) -> std::result::Result<(), String> {
        let loads = self.loads(phase);
        for mix in &phase.mixes {
            let own = GroupOptions::read(mix)?;
            if mix.window > 1 {
                return Err("`window` must be 1: a connection carries one request at a time".to_owned());
            }
            if self.kinds(mix).any(|kind| (kind == OperationOptions::Bulk {}) != loads) {
                return Err(
                    "it loads and searches: the hits of a search are known only when the load is over, in \
                            another phase"
                        .to_owned(),
                );
            }
            if loads && own.requests.is_some() {
                return Err("`requests` is for searches; a load ends with its documents".to_owned());
            }
            if !loads && own.requests.is_none() && phase.duration.is_none() {
                return Err("it has neither `duration` nor `requests` and would never end".to_owned());
            }
        }
        if !loads && self.options.corpus != CorpusName::Geonames {
            return Err("searches are for the corpus geonames".to_owned());
        }
        self.choice(phase)?;
        if loads { self.check_bodies(phase) } else { Ok(()) }
    }

    /// Limits the memory for requests that wait for the server.
    fn check_bodies(&self, phase: &Phase) -> std::result::Result<(), String> {
        let each = u64::from(self.options.bulk_size) * self.options.corpus.document_bytes();
        let all = each.saturating_mul(phase.connections().into());
        if all > HTTP_BODIES_BYTES_MAX {
            return Err(format!(
                "{} connections with bulk requests of {each} bytes are {all} bytes of memory; use at most \
                 {HTTP_BODIES_BYTES_MAX}: fewer connections or a smaller bulk_size",
                phase.connections()
            ));
        }
        Ok(())
    }

    fn kinds<'a>(&'a self, mix: &'a Mix) -> impl Iterator<Item = OperationOptions> + 'a {
        mix.operations.iter().map(|name| self.operations[usize::from(self.scenario.class_of(name))])
    }

    /// Whether a phase indexes documents.
    fn loads(&self, phase: &Phase) -> bool {
        phase.mixes.iter().flat_map(|mix| self.kinds(mix)).any(|kind| kind == OperationOptions::Bulk {})
    }

    fn choice(&self, phase: &Phase) -> std::result::Result<OperationChoice, String> {
        OperationChoice::new(&self.scenario.groups(phase))
    }

    fn opened(&self) -> &(SocketAddr, Admin, Server) {
        self.opened.as_ref().expect(NOT_OPEN)
    }

    /// The URL of the index, without user and password.
    /// Scheme, host and port.
    fn base(&self) -> String {
        format!("{}://{}", self.url.scheme, self.url.authority())
    }

    fn index_url(&self) -> String {
        format!("{}/{}", self.base(), self.index)
    }

    /// Creates the index of a load.
    fn create(&self) -> Result<()> {
        let (_, admin, server) = self.opened();
        if admin.exists()? {
            if self.options.if_exists == IfExists::Refuse {
                return Err(Error::Options(format!(
                    "the index {} exists. Delete it (curl -X DELETE {}), load another one, or replace it: --set \
                     dataset.if_exists=replace",
                    self.index,
                    shell_word(&self.index_url()),
                )));
            }
            admin.delete()?;
        }
        admin.create(&Admin::creation(settings(&self.options), server.mappings(mapping(self.options.corpus))))
    }

    /// Checks that the index has the documents of the scenario.
    fn check_loaded(&self) -> Result<()> {
        let found = self.opened().1.count()?;
        if found == Some(self.documents) {
            return Ok(());
        }
        let loads: Vec<&str> = self
            .scenario
            .phases
            .iter()
            .filter(|phase| self.loads(phase))
            .map(|it| it.name.as_str())
            .collect();
        let found = found.map_or("does not exist".to_owned(), |found| format!("has {found} documents"));
        let how = match loads[..] {
            [] => "Load it with the scenario es-geonames-search".to_owned(),
            _ => format!(
                "Load it first: `{}`",
                load_command(&self.scenario, &loads, &without_password(&self.scenario.target.url))
            ),
        };
        Err(Error::Options(format!(
            "the index {} {found}, and {} searches in {}. {how}",
            self.index, self.scenario.head.name, self.documents
        )))
    }

    /// The operations of a phase, by class. Only those of its mixes are prepared.
    fn operations(&mut self, phase: &Phase, head: &RequestHead) -> Result<Vec<Operation>> {
        if self.loads(phase) {
            return Ok(self.operations.iter().map(|_| Operation::Bulk).collect());
        }
        let corpus = Geonames::new(self.options.data_seed);
        let counts = self.counts.take().unwrap_or_else(|| corpus.count(self.documents));
        let (index, seed) = (self.index.as_str(), self.scenario.head.seed);
        let writer = QueryWriter { head, index, corpus: &corpus, counts: &counts, seed };
        let used = |class: usize| {
            let name = &self.scenario.operations[class].name;
            phase.mixes.iter().any(|mix| mix.operations.contains(name))
        };
        let prepared = self.operations.iter().enumerate().map(|(class, kind)| {
            let name = &self.scenario.operations[class].name;
            let search = if used(class) { writer.search(*kind) } else { Ok(None) };
            let search = search.map_err(|what| Error::Options(format!("operation `{name}`: {what}")))?;
            Ok(search.map_or(Operation::Bulk, Operation::Search))
        });
        let prepared = prepared.collect::<Result<Vec<_>>>();
        self.counts = Some(counts);
        prepared
    }

    fn requests(&self, phase: &Phase) -> Vec<(u32, Option<u64>)> {
        let of_mix = |mix: &Mix| {
            let own = GroupOptions::read(mix).ok().and_then(|own| own.requests);
            (mix.connections, own.map(|requests| self.scenario.scaled(requests)))
        };
        phase.mixes.iter().map(of_mix).collect()
    }
}

/// Refuses names that the servers refuse.
fn check_index(index: &str) -> std::result::Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let begins = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if index.starts_with(begins) && index.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "target.url: `{index}` is not an index of this driver: use lower-case letters, digits, `-`, `_` and `.`, a letter or digit first"
    ))
}

impl Driver for EsDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_events(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let slice_ms = (!self.loads(phase)).then_some(SLICE_MS_EVENTS);
        PhaseCapabilities::new(phase, &self.scenario, slice_ms)
    }

    fn open(&mut self, _: &Context, _: &Progress) -> Result<Opened> {
        let address = self.url.resolve()?;
        let config = self.url.tls_config()?;
        let tls = self.url.tls_client()?;
        let admin = Admin::new(&self.base(), &self.index, self.url.basic_login(), config);
        let server = admin.server()?;
        let product = Some(server.product.clone());
        self.opened = Some((address, admin, server));
        self.tls = tls;
        let tls = self.url.verification();
        let target = Target { address: self.index_url(), product, tls, ..Target::default() };
        Ok(Opened { target, server_pid: server_pid(address, &PROCESS_NAMES), ..Opened::default() })
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        // The TLS files were read before.
        let tls = self.url.tls_config().ok().flatten();
        vec![Box::new(Elasticsearch::new(&self.base(), self.url.basic_login()).with_tls(tls))]
    }

    fn prepare(&mut self, phase: &Phase) -> Result<()> {
        if self.loads(phase) { self.create() } else { self.check_loaded() }
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let head = RequestHead { host: self.url.authority(), login: self.url.basic_login() };
        let operations = self.operations(phase, &head)?;
        let (address, _, server) = self.opened();
        let corpus = Corpus::new(self.options.corpus, self.options.data_seed);
        let es = Es {
            corpus: &corpus,
            documents: self.documents,
            bulk_size: self.options.bulk_size,
            head,
            bulk_path: server.bulk_path(&self.index),
            operations,
            choice: self.choice(phase).map_err(Error::Options)?,
            requests: self.requests(phase),
            seed: self.scenario.head.seed,
        };
        let plan = plan(phase, &self.scenario, *address, part).over(self.tls.clone());
        let outcome = event::run(&es, &plan, shared, on_event)?;
        self.tally = outcome.sessions.iter().fold(Tally::default(), |sum, session| sum + session.tally);
        Ok(outcome.segments)
    }

    fn local_counts(&mut self, _: &[SegmentOutcome]) -> Counts {
        checks::counts_of(std::mem::take(&mut self.tally))
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let PhaseEnd { phase, segments, all_counts, .. } = end;
        if !self.loads(phase) {
            return Ok(Verdict::default());
        }
        let (_, admin, _) = self.opened();
        let finishing = admin.finish(self.options.force_merge, self.options.max_num_segments)?;
        let count = admin.count()?.unwrap_or(0);
        let loaded =
            Loaded { tally: checks::tally_of(all_counts), count, numbers: admin.numbers()?, finishing };
        let (checks, findings) = (loaded.checks(&phase.name), loaded.findings(&phase.name, segments));
        Ok(Verdict { checks, findings })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let ran = |phase: &&Phase| result.phases.iter().any(|known| known.name == phase.name);
        if !self.scenario.phases.iter().filter(ran).any(|phase| self.loads(phase)) {
            return Vec::new();
        }
        let trust = tls_flags(self.url.tls_options());
        let command = format!("curl{trust} -X DELETE {}", shell_word(&self.index_url()));
        vec![left_behind(&format!("the documents of the index {}", self.index), &command)]
    }
}

#[cfg(test)]
mod tests;

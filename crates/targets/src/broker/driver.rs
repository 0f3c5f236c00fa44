//! Scenarios of driver `broker`: publishers and subscribers of an MQTT broker.
//!
//! `[dataset]`, phases and mixes: `role` (`publish`, `subscribe`), `topic` (a topic name in which `{device}`, `{topic}` and
//! `{subscription}` may appear), `topics` (their number), `payload_bytes`, `qos`, `messages` (of each publisher),
//! `subscriptions` (of each subscriber), `clean_start`, `session_expiry_s`, `resume`, `version`, `token_prefix`,
//! `device_prefix`, `devices`, `keep_alive_s`. A mix has one operation; connections that are opened again have the
//! operation of their connect before it.
//!
//! `[target]` is that of driver `mqtt`. Without `url` the driver starts a server of this program that opens all topics to
//! all devices.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clients::target_url::MQTT;
use clients::tls::TlsClient;
use load::engine::{AfterReopen, Connect, FailureRule, Load, Segment, SegmentOutcome, event};
use load::limits::HANDSHAKES_MAX;
use load::progress::Progress;
use load::result::RunResult;
use load::sampling::Source;
use load::scenario::{Phase, Scenario, TARGET_KEYS, typed};
use load::{Error, Result};
use wire::mqtt::QoS;

use super::options::{Group, PhaseClients, Role};
use super::protocol::{Clients, Config, Session};
use super::tally::{Deliveries, Published, Received};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, TargetKind, Verdict,
};
use crate::mqtt::{Fleet, Platform, TargetOptions, leftover_finding, opened_broker};
use crate::plan::{plan, target_url};

/// Settings of a server that the driver starts: the topics of scenarios are open to all devices.
const OPEN_TOPICS: [(&str, &str); 2] =
    [("TACHO_MQTT_PUBLISH_TOPICS", "#"), ("TACHO_MQTT_SUBSCRIBE_TOPICS", "#")];
/// The driver gives up sessions that come back after this many consecutive failures.
const GIVE_UP: FailureRule = FailureRule { last: 100, failures: 100 };

/// The number of runs of this process so far.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "broker",
    new: |scenario| Ok(Box::new(BrokerDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct BrokerDriver {
    scenario: Scenario,
    target: TargetOptions,
    address: Option<SocketAddr>,
    /// TLS to a running broker; `None` without TLS.
    tls: Option<TlsClient>,
    platform: Option<Platform>,
    /// Distinguishes messages and client identifiers of this run from others.
    run: u32,
    /// The number of the next message of each publisher.
    next: Vec<u64>,
    /// The number of the first message of each publisher that no subscriber was there for.
    undelivered: Vec<u64>,
    latest: Option<PhaseTally>,
}

/// What the clients of the latest phase did.
struct PhaseTally {
    connect_time: Duration,
    published: Vec<Published>,
    received: Vec<Received>,
    first: Vec<u64>,
}

impl BrokerDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let has_target = !scenario.target.url.is_empty();
        if has_target {
            target_url(scenario, &MQTT)?;
        }
        let mut target: TargetOptions = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        target.check(has_target)?;
        // Nothing is stored that could be read back.
        target.verify = Some(false);
        for phase in &scenario.phases {
            PhaseClients::read(scenario, phase)?;
        }
        // Two alternating runs of one process use one broker at the same time.
        let run = RUNS.fetch_add(1, Ordering::Relaxed) ^ std::process::id() << 8;
        Ok(Self {
            scenario: scenario.clone(),
            target,
            address: None,
            tls: None,
            platform: None,
            run,
            next: Vec::new(),
            undelivered: Vec::new(),
            latest: None,
        })
    }

    fn starts_server(&self) -> bool {
        self.scenario.target.url.is_empty()
    }

    fn of_phase(&self, phase: &Phase) -> Result<PhaseClients> {
        PhaseClients::read(&self.scenario, phase).map_err(Error::Options)
    }

    /// The devices of all phases.
    fn fleet(&self) -> Result<Fleet> {
        let all: Vec<PhaseClients> =
            self.scenario.phases.iter().map(|phase| self.of_phase(phase)).collect::<Result<_>>()?;
        let first = &all.first().expect("BUG: a scenario has a phase").options;
        let connected = all.iter().map(PhaseClients::devices).max().unwrap_or(0);
        Ok(Fleet {
            device_prefix: first.device_prefix.clone(),
            token_prefix: first.token_prefix.clone(),
            devices: first.devices.unwrap_or(connected).max(connected),
            connected,
        })
    }

    /// The configuration of the clients of a phase.
    fn config(&mut self, clients: &PhaseClients) -> Result<Config> {
        let publishers = clients.with(Role::Publish).map_or(0, |group| group.connections as usize);
        let known = self.next.len().max(publishers);
        self.next.resize(known, 0);
        self.undelivered.resize(known, 0);
        let resumes = clients.with(Role::Subscribe).is_some_and(|group| group.resume);
        Ok(Config {
            version: clients.version().map_err(Error::Options)?.on_the_wire(),
            groups: clients.groups.clone(),
            topics: clients.topics.clone(),
            payload_bytes: clients.options.payload_bytes,
            token_prefix: clients.options.token_prefix.clone(),
            client_prefix: format!("bench-{:x}-", self.run),
            keep_alive_s: clients.options.keep_alive_s,
            run: self.run,
            next: self.next.clone(),
            // Without a session that continues nothing waits from before.
            first: if resumes { self.undelivered.clone() } else { self.next.clone() },
        })
    }
}

/// The segments of a phase. Sessions that come back do so once, and stay.
fn segments(phase: &Phase, scenario: &Scenario, clients: &PhaseClients) -> Vec<Segment> {
    let mut segments = crate::plan::segments(phase, scenario);
    let loads = segments.iter_mut().flat_map(|segment| segment.loads.iter_mut().zip(&clients.groups));
    for (load, group) in loads {
        if let Load::Reopen { then, .. } = load
            && group.resume
        {
            *then = AfterReopen::Stay(GIVE_UP);
        }
    }
    segments
}

impl Driver for BrokerDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            starts_server: self.starts_server(),
            one_process: Some("one process knows every message and when it was due: leave out --workers"),
            ..Capabilities::of_events(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let mut capabilities = PhaseCapabilities::new(phase, &self.scenario, None);
        if let Ok(clients) = self.of_phase(phase) {
            capabilities.segments = segments(phase, &self.scenario, &clients);
        }
        capabilities
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let fleet = self.fleet()?;
        let started = self.starts_server();
        let mut tls = None;
        let address = if started {
            let (address, platform) =
                Platform::start((&self.target, &fleet), &OPEN_TOPICS, context, progress)?;
            self.platform = Some(platform);
            address
        } else {
            let url = target_url(&self.scenario, &MQTT).map_err(Error::Options)?;
            let address = url.resolve()?;
            (self.tls, tls) = (url.tls_client()?, url.verification());
            self.platform = Platform::running(&url, (&self.target, &fleet), progress)?;
            address
        };
        self.address = Some(address);
        Ok(opened_broker(address, tls, self.platform.as_ref()))
    }

    fn conclusions(&self, _: &RunResult) -> Vec<String> {
        if self.starts_server() {
            return Vec::new();
        }
        let fleet = self.fleet().ok();
        fleet.and_then(|fleet| leftover_finding(&self.scenario, &self.target, &fleet)).into_iter().collect()
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        // Only Tachograph has this address.
        let platform = self.platform.iter();
        platform.map(|platform| Box::new(platform.metrics()) as Box<dyn Source>).collect()
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let clients = self.of_phase(phase)?;
        let config = self.config(&clients)?;
        let address = self.address.expect(NOT_OPEN);
        let first = config.first.clone();
        let mut plan = plan(phase, &self.scenario, address, part).over(self.tls.clone());
        plan.segments = segments(phase, &self.scenario, &clients);
        if clients.groups.iter().any(|group| group.resume) {
            // A SYN that a full backlog drops comes again a second later, and would hide the rate of the deliveries.
            plan.connect = Connect { by_load: true, at_once: HANDSHAKES_MAX, ..plan.connect };
        }
        let protocol = Clients::new(config);
        let outcome = event::run(&protocol, &plan, shared, on_event)?;
        let qos = clients.with(Role::Publish).map(|group| group.qos);
        let published: Vec<Published> =
            outcome.sessions.iter().filter_map(|session| session.published(qos?)).collect();
        for (index, publisher) in published.iter().enumerate() {
            self.next[index] = publisher.next;
        }
        let received = outcome.sessions.into_iter().filter_map(Session::into_received).collect();
        if clients.with(Role::Subscribe).is_some() {
            self.undelivered.clone_from(&self.next);
        }
        self.latest = Some(PhaseTally { connect_time: outcome.connect_time, published, received, first });
        Ok(outcome.segments)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let PhaseEnd { phase, segments, .. } = *end;
        let clients = self.of_phase(phase)?;
        let Some(PhaseTally { connect_time, mut published, received, first }) = self.latest.take() else {
            return Ok(Verdict::default());
        };
        let mut verdict = Verdict::default();
        if !clients.groups.iter().any(|group| group.resume) {
            verdict.findings.push(opened(phase, connect_time));
        }
        if let (Some(group), Some(segment)) = (clients.with(Role::Publish), segments.first()) {
            verdict.findings.push(sent(phase, group, &published, segment));
        }
        // Sessions that come back get what publishers of an earlier phase sent.
        let earlier = self.next.iter().map(|next| Published { next: *next, ..Published::default() });
        published.extend(earlier.skip(published.len()));
        if let (Some(group), Some(segment)) = (clients.with(Role::Subscribe), segments.first()) {
            let deliveries = Deliveries::of(&received, &published, &first);
            if deliveries.expected + deliveries.foreign + deliveries.repeated > 0 {
                let qos = clients.with(Role::Publish).map_or(group.qos, |of| of.qos.min(group.qos));
                verdict.checks = deliveries.checks(&phase.name, qos == QoS::AtLeastOnce);
                verdict.findings.push(got(phase, group, &deliveries, segment));
            }
        }
        Ok(verdict)
    }

    fn close(&mut self) -> Result<()> {
        self.platform.take().map_or(Ok(()), Platform::stop)
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

fn opened(phase: &Phase, connect_time: Duration) -> String {
    let (count, seconds) = (phase.connections(), connect_time.as_secs_f64());
    let rate = per_second(count.into(), connect_time);
    format!("{}: {count} connections were opened in {seconds:.2} s ({rate:.0}/s).", phase.name)
}

fn sent(phase: &Phase, group: &Group, published: &[Published], segment: &SegmentOutcome) -> String {
    let (sent, unacknowledged) =
        published.iter().fold((0, 0), |(sent, not), of| (sent + of.sent, not + of.unacknowledged));
    let counts = &segment.recorder.classes()[usize::from(group.class)].counts;
    let rate = per_second(counts.completed_within_window, segment.measured);
    format!(
        "{}: {} publishers sent {sent} messages, {} of them were acknowledged or need no ack ({rate:.0}/s).",
        phase.name,
        published.len(),
        sent - unacknowledged
    )
}

fn got(phase: &Phase, group: &Group, deliveries: &Deliveries, segment: &SegmentOutcome) -> String {
    let Deliveries { expected, received, repeated, first_loss, .. } = deliveries;
    let counts = &segment.recorder.classes()[usize::from(group.class)].counts;
    let rate = per_second(counts.completed_within_window, segment.measured);
    let loss = first_loss.as_deref().map(|what| format!(" First loss: {what}."));
    format!(
        "{}: {} subscribers got {received} of {expected} deliveries ({rate:.0}/s), {repeated} came more than once.{}",
        phase.name,
        group.connections,
        loss.unwrap_or_default()
    )
}

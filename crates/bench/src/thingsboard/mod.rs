//! The load of the ThingsBoard article: a fleet publishes telemetry over MQTT; latency is publish to PUBACK; what was
//! acknowledged is read back.

mod options;
pub(crate) mod verify;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::engine::Event;
use crate::error::{Error, Result};
use crate::generator::{self, Load, Outcome, Plan, Shared};
use crate::http::Client;
use crate::limits::DRAIN_TIMEOUT_S;
use crate::machine::{Machine, utc_now};
use crate::open_files;
use crate::options::Context;
use crate::payload::{SEQUENCE_KEY, Template};
use crate::process::Sampled;
use crate::progress::Progress;
use crate::report::{Facts, Report, TargetFacts, Verification, default_directory, judge};
use crate::sampling::Sampler;
use crate::server::{ADMIN, Place, Server};

pub use options::Options;

/// Runs the load and writes the result bundle. The report may be INVALID; that is a result, not an error.
pub fn run(options: &Options, context: &Context) -> Result<(Report, PathBuf)> {
    options.check()?;
    open_files::provide(options.connections(), 1)?;
    let out = options.out.clone().unwrap_or_else(|| default_directory("thingsboard"));
    let progress = Progress::new(options.quiet);
    let mut target = UnderTest::open(options, context, &out, &progress)?;
    let measured = measure(options, &target, &progress);
    if measured.is_err()
        && let Some(server) = &mut target.server
        && let Some(status) = server.ended()?
    {
        return Err(server.failed(format!("ended during the run ({status})")));
    }
    let measured = measured?;
    let facts = target.close()?;
    let report = report(options, context, facts, measured);
    let directory = report.write_bundle(&out)?;
    Ok((report, directory))
}

/// The server under test, ours or another.
struct UnderTest {
    mqtt: SocketAddr,
    client: Option<Client>,
    sampled: Option<Sampled>,
    server: Option<Server>,
    facts: TargetFacts,
    /// Removed when the run is over.
    _data: Option<tempfile::TempDir>,
}

impl UnderTest {
    fn open(options: &Options, context: &Context, out: &Path, progress: &Progress) -> Result<Self> {
        match options.target.mqtt_address()? {
            Some(mqtt) => Self::running(options, mqtt),
            None => Self::started(options, context, out, progress),
        }
    }

    fn running(options: &Options, mqtt: SocketAddr) -> Result<Self> {
        let target = &options.target;
        let client = match (&target.password, target.no_provision && target.no_verify) {
            (Some(password), false) => Some(Client::login(&target.http_base(mqtt), &target.user, password)?),
            _ => None,
        };
        let sampled = target.server_pid.map(Sampled::new).transpose()?;
        Ok(Self::new(mqtt, client, sampled, None, None))
    }

    fn started(options: &Options, context: &Context, out: &Path, progress: &Progress) -> Result<Self> {
        let (data, guard) = match &options.target.data {
            Some(data) => (data.clone(), None),
            None => {
                // Beside the result, because /tmp may be memory, where a sync costs nothing and proves nothing.
                let guard = temporary_beside(out)?;
                (guard.path().to_owned(), Some(guard))
            }
        };
        progress.step(format!(
            "starting {} serve --data {}",
            context.server_binary.display(),
            data.display()
        ));
        let place = Place::new(&context.server_binary, &data)?;
        let server = Server::start(&place)?;
        let client = Client::login(&place.http_url(), ADMIN, &place.admin_password()?)?;
        let sampled = server.sampled();
        Ok(Self::new(place.mqtt, Some(client), Some(sampled), Some(server), guard))
    }

    fn new(
        mqtt: SocketAddr,
        client: Option<Client>,
        sampled: Option<Sampled>,
        server: Option<Server>,
        data: Option<tempfile::TempDir>,
    ) -> Self {
        let status = client.as_ref().map_or(Value::Null, Client::status);
        let durability = status["durability"].as_str().unwrap_or("unknown").to_owned();
        let facts =
            TargetFacts { mqtt: mqtt.to_string(), started_by_run: server.is_some(), durability, status };
        Self { mqtt, client, sampled, server, facts, _data: data }
    }

    fn close(self) -> Result<TargetFacts> {
        self.server.map(Server::stop).transpose()?;
        Ok(self.facts)
    }
}

/// A temporary directory on the file system of `out`.
pub(crate) fn temporary_beside(out: &Path) -> Result<tempfile::TempDir> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(Error::file(parent))?;
    tempfile::Builder::new().prefix("data-").tempdir_in(parent).map_err(Error::file(parent))
}

struct Measured {
    started: String,
    outcome: Outcome,
    cost: crate::report::Cost,
    series: Vec<crate::report::SeriesLine>,
    verification: Option<Verification>,
    verification_error: Option<String>,
}

fn measure(options: &Options, target: &UnderTest, progress: &Progress) -> Result<Measured> {
    let provisioned = provision(options, target, progress)?;
    if let Some(text) = target.sampled.as_ref().and_then(|s| open_files::server_cap(s, options.connections()))
    {
        return Err(Error::Options(text));
    }
    let plan = plan(options, target.mqtt, provisioned.floor_ts_ms);
    let shared = Shared::default();
    let mut sampler = Sampler::new(&plan, &shared, target.sampled);
    let started = utc_now();
    let outcome = generator::run(&plan, &shared, |event| {
        sampler.on_event(&event);
        show(&event, &plan, progress);
    })?;
    let (verification, verification_error) = if options.target.no_verify || options.idle {
        (None, None)
    } else {
        match read_back(options, target, &provisioned, &outcome, progress) {
            Ok(verification) => (Some(verification), None),
            Err(error) => (None, Some(error.to_string())),
        }
    };
    let cost = sampler.cost(plan.connections);
    Ok(Measured { started, outcome, cost, series: sampler.series, verification, verification_error })
}

#[derive(Debug, Default)]
struct Provisioned {
    ids: Option<Vec<String>>,
    floor_ts_ms: u64,
}

/// Creates the devices. Where some existed before, the run's timestamps begin after their newest point: earlier runs
/// may have run ahead of the clock, and points must not be counted twice.
fn provision(options: &Options, target: &UnderTest, progress: &Progress) -> Result<Provisioned> {
    let Some(client) = &target.client else { return Ok(Provisioned::default()) };
    let mut existing = options.target.no_provision;
    if !options.target.no_provision {
        progress.step(format!("provisioning {} devices", options.devices));
        let did = client.provision(options.devices, &options.device_prefix, &options.token_prefix)?;
        progress.step(format!("{} devices created, {} existed", did.created, did.existing));
        existing = did.existing > 0;
    }
    if options.target.no_verify || options.idle {
        return Ok(Provisioned::default());
    }
    let ids = client.device_ids(&options.device_prefix, options.connections())?;
    let mut floor_ts_ms = 0;
    if existing {
        progress.step("looking for points of earlier runs".to_owned());
        for id in &ids {
            floor_ts_ms = floor_ts_ms.max(client.newest_ts_ms(id, SEQUENCE_KEY)? + 1);
        }
    }
    Ok(Provisioned { ids: Some(ids), floor_ts_ms })
}

fn plan(options: &Options, mqtt: SocketAddr, floor_ts_ms: u64) -> Plan {
    Plan {
        target: mqtt,
        connections: options.connections(),
        threads: options.threads,
        protocol: options.protocol,
        token_prefix: options.token_prefix.clone(),
        keep_alive_s: options.keep_alive_s,
        tick_us: options.tick_us(),
        payload: Template::new(options.payload_bytes),
        load: options.load(),
        warmup: options.warmup,
        duration: options.duration,
        drain: std::time::Duration::from_secs(DRAIN_TIMEOUT_S),
        floor_ts_ms,
    }
}

fn show(event: &Event, plan: &Plan, progress: &Progress) {
    match event {
        Event::Connecting(opened) => {
            progress.fleeting(|| format!("{opened} of {} connections open", plan.connections));
        }
        Event::Started { .. } => {
            progress.step(format!("{} connections open, the load begins", plan.connections))
        }
        Event::Second(second) => progress.second(second, plan.warmup + plan.duration),
        Event::Tick => {}
    }
}

fn read_back(
    options: &Options,
    target: &UnderTest,
    provisioned: &Provisioned,
    outcome: &Outcome,
    progress: &Progress,
) -> Result<Verification> {
    let (Some(client), Some(ids)) = (&target.client, &provisioned.ids) else {
        return Err(Error::Options("there is no login to read back with".to_owned()));
    };
    progress.step(format!("reading back what {} devices stored", ids.len()));
    verify::verify(&verify::Job {
        client,
        ids,
        tallies: &outcome.tallies,
        keys: &Template::new(options.payload_bytes).keys(),
        base_ts_ms: outcome.base_ts_ms,
    })
}

fn report(options: &Options, context: &Context, target: TargetFacts, measured: Measured) -> Report {
    let Measured { started, outcome, cost, series, verification, verification_error } = measured;
    let recorder = outcome.recorder;
    let open_loop = matches!(options.load(), Load::Open { .. });
    let lag = recorder.clocks.lag.summary();
    let verdict = judge(&Facts {
        open_loop,
        idle: options.idle,
        counts: &recorder.counts,
        lag_p99_us: lag.p99_us,
        generator_cpu_percent_per_thread: cost.generator_cpu_percent.map(|p| p / f64::from(options.threads)),
        verification: verification.as_ref(),
        verification_error: verification_error.as_deref(),
    });
    let measured_s = options.duration.as_secs_f64();
    Report {
        scenario: "thingsboard".to_owned(),
        load: options.describe(),
        verdict,
        started,
        command_line: context.command_line.clone(),
        commit: context.commit.clone(),
        options: serde_json::to_value(options).expect("BUG: options have only text keys"),
        machine: Machine::here(),
        target,
        protocol: options.protocol,
        connections: options.connections(),
        payload_bytes: options.payload_bytes,
        connect_per_s: f64::from(options.connections()) / outcome.connect_time.as_secs_f64(),
        measured_s,
        acked_per_s: recorder.counts.completed_within_window as f64 / measured_s,
        latency: recorder.clocks.response.summary(),
        service: recorder.clocks.service.summary(),
        lag,
        open_loop,
        tick_us: if open_loop { options.tick_us() } else { 0 },
        cost,
        verification,
        series,
        counts: recorder.counts,
        latency_histogram: recorder.clocks.response,
        service_histogram: recorder.clocks.service,
        lag_histogram: recorder.clocks.lag,
    }
}

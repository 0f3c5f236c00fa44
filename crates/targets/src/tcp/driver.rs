//! Scenarios of driver `tcp`: the three limits of a load balancer, or of any server that accepts connections.
//!
//! A phase has a `test`: `maxconn` (opens connections at `rate`, holds them for `hold`, then sends a request on one of
//! each `sample`), `cps` (opens connections at `rate` and closes them as `close` says) or `qps` (requests at `rate` on
//! open connections). With `arrival = "closed"` the last two continue as soon as a connection is closed or answered.
//! `[dataset]` and phases: `application` (`http`, `echo`, `none`), `path`, `sources`, `connect_timeout`, `close`
//! (`fin`, `rst`, `after-request`), `hold`, `keep_alive` (`tcp`, `application`, `none`), `keep_alive_every`, `sample`,
//! `give_up_last`, `give_up_failures`. `--scale` scales connections and rates.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use clients::target_url::{TCP, TargetUrl};
use load::engine::{Event, Plan, SegmentOutcome, event};
use load::process::SampledProcess;
use load::progress::Progress;
use load::result::{self, OperationCounts, RunResult, Target};
use load::sampling::{is_local, listener_pid};
use load::scenario::{Phase, Scenario};
use load::{Error, Result};

use super::Tcp;
use super::ports::PortLimits;
use super::sentences::Attempts;
use super::test::{Test, TestKind};
use super::{sentences, test};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseRun, SLICE_MS_EVENTS, TargetKind,
};
use crate::plan::{plan, target_url};

/// The longest wait for the first connection and its answer.
const FIRST_TIMEOUT: Duration = Duration::from_secs(10);

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "tcp",
    new: |scenario| Ok(Box::new(TcpDriver::new(scenario)?)),
    target_keys: false,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct TcpDriver {
    scenario: Scenario,
    url: TargetUrl,
    address: Option<SocketAddr>,
    server_pid: Option<u32>,
}

impl TcpDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let url = target_url(scenario, &TCP)?;
        scenario.phases.iter().try_for_each(|phase| Test::of(scenario, phase).map(|_| ()))?;
        Ok(Self { scenario: scenario.clone(), url, address: None, server_pid: None })
    }

    fn test(&self, phase: &Phase) -> Test {
        Test::of(&self.scenario, phase).expect("BUG: every phase was read when the driver was made")
    }

    /// The plan of a phase; its connections are checked against the ports of this machine.
    fn plan(&self, phase: &Phase, address: SocketAddr, part: (u32, u32)) -> Result<Plan> {
        let test = self.test(phase);
        let limits = PortLimits::here();
        let needs = test.needs(address.ip().is_loopback());
        let wrong = |what: String| Error::Options(format!("phase `{}`: {what}", phase.name));
        test.check_application().map_err(wrong)?;
        let sources = test.sources().addresses(address.ip(), needs.sources(&limits)).map_err(wrong)?;
        needs.check(&limits, sources.len()).map_err(wrong)?;
        Ok(Plan {
            sources,
            groups: vec![test.connections],
            connect: test.connect(),
            segments: test.segments(phase, &self.scenario),
            ..plan(phase, &self.scenario, address, part)
        })
    }

    /// The memory of the processes and the kernel. With several generators, the first process reads what they share.
    fn memory_now(&self, part: (u32, u32)) -> Vec<(&'static str, Option<u64>)> {
        let rss = |pid: u32| SampledProcess::new(pid).ok()?.rss_bytes();
        let mut all = vec![(sentences::GENERATOR_GREW, rss(std::process::id()))];
        if part.0 == 0 {
            all.push((sentences::TARGET_GREW, self.server_pid.and_then(rss)));
            all.push((sentences::KERNEL_GREW, slab_bytes()));
        }
        all
    }

    fn conclusion(&self, phase: &Phase, result: &RunResult) -> Vec<String> {
        let test = self.test(phase);
        let named = |suffix: &str| {
            let name = format!("{}{suffix}", phase.name);
            result.phases.iter().find(|known| known.name == name)
        };
        let connects = |of: &result::Phase| {
            of.operations.iter().find(|known| known.name == test::CONNECT).map(|known| known.counts.clone())
        };
        match test.kind {
            TestKind::Qps => Vec::new(),
            TestKind::Cps => {
                let Some(cps) = named("") else { return Vec::new() };
                let connects = connects(cps).unwrap_or_default();
                let attempts = Attempts::of(connects.completed, &cps.total.counts);
                // The plan contains the requests as well, one for each connection that was established.
                let due = cps.total.counts.planned.saturating_sub(cps.total.counts.sent - connects.sent);
                let rate = test.rate().map(|rate| (rate, due));
                vec![sentences::per_second(&phase.name, rate, &connects, &attempts, cps.duration_s)]
            }
            TestKind::Maxconn => {
                let Some(open) = named("-open") else { return Vec::new() };
                let established = connects(open).unwrap_or_default().completed;
                let attempts = Attempts::of(established, &open.total.counts);
                let hold = named("-hold");
                let held = hold.map(|hold| {
                    let gone = lost(&open.total.counts) + lost(&hold.total.counts);
                    (established.saturating_sub(gone), hold.duration_s)
                });
                let probe =
                    named("-probe").map(|probe| (probe.total.counts.planned, probe.total.counts.completed));
                let asked = test.connections.into();
                let mut all = vec![sentences::connections(&phase.name, asked, &attempts, held, probe)];
                all.extend(
                    hold.and_then(|hold| sentences::memory(&phase.name, &hold.total.counts, established)),
                );
                all
            }
        }
    }
}

fn lost(counts: &OperationCounts) -> u64 {
    let losses = counts.errors.iter().filter(|(what, _)| what.starts_with("connection lost"));
    losses.map(|(_, count)| count).sum()
}

/// The memory of the kernel's objects on this machine, including sockets.
fn slab_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Slab:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1_024)
}

impl Driver for TcpDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of_events(&self.scenario)
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let test = self.test(phase);
        PhaseCapabilities {
            connections: test.connections,
            segments: test.segments(phase, &self.scenario),
            slice_ms: (test.kind != TestKind::Maxconn).then_some(SLICE_MS_EVENTS),
            figures_each_second: true,
        }
    }

    fn limits(&self, phases: &[&Phase]) -> Result<()> {
        let address = self.url.resolve()?;
        phases.iter().try_for_each(|phase| self.plan(phase, address, (0, 1)).map(|_| ()))
    }

    fn open(&mut self, _context: &Context, _progress: &Progress) -> Result<Opened> {
        let address = self.url.resolve()?;
        let request =
            self.scenario.phases.iter().map(|phase| self.test(phase).application(&self.url.host_port()));
        let product = first_answer(address, &request.map(|a| a.request()).max().unwrap_or_default())?;
        self.address = Some(address);
        self.server_pid = is_local(address.ip()).then(|| listener_pid(address.port())).flatten();
        let limits = PortLimits::here();
        let settings = [
            ("net.ipv4.ip_local_port_range", format!("{} {}", limits.range.0, limits.range.1)),
            ("net.ipv4.tcp_tw_reuse", limits.reuse.to_string()),
        ];
        let settings = settings.map(|(name, value)| (format!("generator: {name}"), value)).into();
        let target = Target { address: address.to_string(), product, settings, ..Target::default() };
        Ok(Opened { target, server_pid: self.server_pid, ..Opened::default() })
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let address = self.address.expect(NOT_OPEN);
        let plan = self.plan(phase, address, part)?;
        let test = self.test(phase);
        if test.kind == TestKind::Qps
            && let Some(http) = test.http(&self.scenario, &self.url.host_port()).map_err(Error::Options)?
        {
            // A web server closes a connection after a number of requests. The HTTP driver opens it again.
            return Ok(event::run(&http, &plan, shared, on_event)?.segments);
        }
        let tcp = Tcp::new(test.config(&self.scenario, &self.url.host_port()));
        let before = self.memory_now(part);
        let (mut holding, mut last) = (false, Vec::new());
        let mut outcome = event::run(&tcp, &plan, shared, |event| {
            match event {
                Event::Started { segment, .. } => holding = test.kind == TestKind::Maxconn && segment == 1,
                Event::Second(_) if holding => last = self.memory_now(part),
                _ => {}
            }
            on_event(event);
        })?;
        for ((name, before), (_, after)) in before.into_iter().zip(last) {
            if let (Some(before), Some(after), Some(hold)) = (before, after, outcome.segments.get_mut(1)) {
                hold.recorder.extra(0, name, after.saturating_sub(before));
            }
        }
        Ok(outcome.segments)
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        self.scenario.phases.iter().flat_map(|phase| self.conclusion(phase, result)).collect()
    }
}

/// Connects once and sends the request of the phases. Returns the product name, if the server gives one as a web server
/// does.
fn first_answer(address: SocketAddr, request: &[u8]) -> Result<Option<String>> {
    let mut stream = TcpStream::connect_timeout(&address, FIRST_TIMEOUT).map_err(|error| {
        Error::Options(format!(
            "the target {address} does not accept a connection: {error}. Start it, or name another with --target URL"
        ))
    })?;
    if !request.starts_with(b"GET ") {
        return Ok(None);
    }
    let failed = |error: std::io::Error| {
        Error::Options(format!(
            "the target {address} accepts a connection but does not answer HTTP on it: {error}. \
             Where no HTTP is spoken, use --set dataset.application=none or echo"
        ))
    };
    stream.set_read_timeout(Some(FIRST_TIMEOUT)).map_err(failed)?;
    stream.write_all(request).map_err(failed)?;
    let mut buffer = [0; 4_096];
    let count = stream.read(&mut buffer).map_err(failed)?;
    let text = String::from_utf8_lossy(&buffer[..count]);
    let header = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("server").then(|| value.trim().to_owned())
    });
    Ok(header)
}

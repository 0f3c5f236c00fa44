//! Scenarios of driver `commands`: users command devices, which report telemetry.
//!
//! `[dataset]`: `command` (`rpc`, `attributes`), `payload_bytes`, `version`, `token_prefix`, `device_prefix`,
//! `keep_alive_s`. A phase has a mix with `role = "device"`, whose operations are that of telemetry and that of an attribute that
//! arrives, and a mix with `role = "user"`, whose operation is the request.
//!
//! `[target]` is that of driver `mqtt`. The driver needs the REST interface of the server: it starts one, or is given a password.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use load::engine::{SegmentOutcome, event};
use load::payload::Template;
use load::progress::Progress;
use load::result::RunResult;
use load::sampling::Source;
use load::scenario::{Phase, Scenario, TARGET_KEYS, typed};
use load::{Error, Result};

use super::command::Command;
use super::device::{DeviceConfig, QOS};
use super::options::PhaseClients;
use super::protocol::{Clients, Session};
use super::user::UserConfig;
use crate::Context;
use crate::broker::{Deliveries, Published, Received};
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, TargetKind, Verdict,
};
use crate::mqtt::{
    Fleet, Platform, PublishTemplate, RestPlatform, TargetOptions, leftover_finding, opened_broker,
};
use crate::plan::plan;

/// The number of phases of this process so far.
static PHASES: AtomicU32 = AtomicU32::new(0);

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "commands",
    new: |scenario| Ok(Box::new(CommandsDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct CommandsDriver {
    scenario: Scenario,
    target: TargetOptions,
    opened: Option<OpenedServer>,
    latest: Option<(Vec<Received>, Vec<Published>)>,
}

struct OpenedServer {
    platform: Platform,
    mqtt: SocketAddr,
    http: SocketAddr,
    ids: Vec<String>,
    bearer: String,
}

impl CommandsDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let has_target = !scenario.target.url.is_empty();
        RestPlatform::check(scenario)?;
        let mut target: TargetOptions = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        target.check(has_target)?;
        // The commands are checked, and telemetry is only the load beside them.
        target.verify = Some(false);
        for phase in &scenario.phases {
            PhaseClients::read(scenario, phase)?;
        }
        Ok(Self { scenario: scenario.clone(), target, opened: None, latest: None })
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
        let connected = all.iter().map(|clients| clients.devices.connections).max().unwrap_or(0);
        Ok(Fleet {
            device_prefix: first.device_prefix.clone(),
            token_prefix: first.token_prefix.clone(),
            devices: connected,
            connected,
        })
    }

    /// The clients of a phase.
    fn clients(&self, clients: &PhaseClients, server: &OpenedServer) -> Result<Clients> {
        let version = clients.version().map_err(Error::Options)?;
        let command = clients.options.command;
        let phase = PHASES.fetch_add(1, Ordering::Relaxed);
        let run = phase ^ std::process::id() << 8;
        let devices = clients.devices.connections as usize;
        let users = UserConfig {
            command,
            run,
            users: clients.users.connections,
            ids: server.ids[..devices].to_vec(),
            host: server.http.to_string(),
            bearer: server.bearer.clone(),
        };
        let telemetry = Template::new(clients.options.payload_bytes);
        let devices = DeviceConfig {
            command,
            run,
            version: version.on_the_wire(),
            telemetry: PublishTemplate::new(version, QOS, telemetry),
            token_prefix: clients.options.token_prefix.clone(),
            client_prefix: format!("bench-{run:x}-"),
            keep_alive_s: clients.options.keep_alive_s,
            publish: clients.devices.class,
            push: clients.devices.push,
        };
        Ok(Clients::new(clients.groups.clone(), users, devices))
    }
}

impl Driver for CommandsDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            starts_server: self.starts_server(),
            one_process: Some("one process knows every command and when it was due: leave out --workers"),
            ..Capabilities::of_events(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, None)
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let fleet = self.fleet()?;
        let RestPlatform { platform, mqtt, http } =
            RestPlatform::open(&self.scenario, (&self.target, &fleet), &[], context, progress)?;
        let (ids, bearer) = platform.devices(&fleet)?;
        let opened = opened_broker(mqtt, None, Some(&platform));
        self.opened = Some(OpenedServer { platform, mqtt, http, ids, bearer });
        Ok(opened)
    }

    fn conclusions(&self, _: &RunResult) -> Vec<String> {
        if self.starts_server() {
            return Vec::new();
        }
        let fleet = self.fleet().ok();
        fleet.and_then(|fleet| leftover_finding(&self.scenario, &self.target, &fleet)).into_iter().collect()
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let opened = self.opened.iter();
        opened.map(|it| Box::new(it.platform.metrics()) as Box<dyn Source>).collect()
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let clients = self.of_phase(phase)?;
        let server = self.opened.as_ref().expect(NOT_OPEN);
        let protocol = self.clients(&clients, server)?;
        let mut plan = plan(phase, &self.scenario, server.mqtt, part);
        let users = clients.groups.iter().position(|group| *group == clients.users);
        plan.elsewhere = users.map(|group| (group, server.http)).into_iter().collect();
        let outcome = event::run(&protocol, &plan, shared, on_event)?;
        let mut received = Vec::new();
        let mut published = vec![Published::default(); clients.devices.connections as usize];
        for session in outcome.sessions {
            match session {
                Session::Device(device) => {
                    let sequences = vec![(received.len() as u32, device.commands)];
                    received.push(Received { sequences, foreign: device.foreign });
                }
                Session::User(user, _) => {
                    for (device, of) in user.published(clients.users.connections) {
                        published[device as usize] = of;
                    }
                }
            }
        }
        self.latest = Some((received, published));
        Ok(outcome.segments)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let clients = self.of_phase(end.phase)?;
        let Some((received, published)) = self.latest.take() else { return Ok(Verdict::default()) };
        let name = &end.phase.name;
        let deliveries = Deliveries::of(&received, &published, &vec![0; published.len()]);
        // Nobody reconnects, so nothing has a reason to come twice.
        let checks = deliveries.checks(name, false);
        let Deliveries { expected, received, first_loss, .. } = deliveries;
        let what = match clients.options.command {
            Command::Rpc => "calls, and each answer was compared with what was asked",
            Command::Attributes => "changes of attributes",
        };
        let loss = first_loss.as_deref().map(|what| format!(" First loss: {what}."));
        let findings = vec![
            format!(
                "{name}: {} devices got {received} of {expected} {what}.{}",
                clients.devices.connections,
                loss.unwrap_or_default()
            ),
            format!("{name}: the telemetry of the devices was acknowledged and not read back."),
        ];
        Ok(Verdict { checks, findings })
    }

    fn close(&mut self) -> Result<()> {
        self.opened.take().map_or(Ok(()), |opened| opened.platform.stop())
    }
}

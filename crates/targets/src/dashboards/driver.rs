//! Scenarios of driver `dashboards`: applications of a server with ThingsBoard's interface, while devices report telemetry.
//!
//! `[dataset]`: `application` (`live`, `page`, `create`, `alarms`), its own keys (`options.rs`), `version`, `token_prefix`,
//! `device_prefix`, `keep_alive_s`. A mix has a `role`: `device`, `socket` or `client`.
//!
//! `[target]` is that of driver `mqtt`. The driver needs the REST interface of the server: it starts one, or is given a password.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use load::engine::{Event, Outcome, Plan, SegmentOutcome, event};
use load::open_files;
use load::progress::Progress;
use load::result::RunResult;
use load::sampling::Source;
use load::scenario::{Phase, Scenario, TARGET_KEYS, typed};
use load::{Error, Result};

use super::answers::parse_id;
use super::creator::CreatorConfig;
use super::device::{DeviceConfig, DeviceState};
use super::live::LiveConfig;
use super::message::MessageTemplate;
use super::newest_messages::NewestMessages;
use super::options::{Application, Group, PhaseClients, Role};
use super::page::PageConfig;
use super::protocol::{Clients, Session, Sockets};
use super::rules;
use super::stalled_dashboards::UnreadSockets;
use super::verdict::{AlarmTally, CreateTally, LiveTally, PageTally, ingest};
use super::watch::{Looks, Watch};
use crate::Context;
use crate::command_line::left_behind;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, TargetKind, Verdict,
};
use crate::mqtt::{Fleet, Platform, RestPlatform, TargetOptions, leftover_finding, opened_broker};
use crate::plan::plan;
use crate::request::RequestHead;

/// Settings of a server that the driver starts for sockets that follow devices: by default its HTTP door takes 768 connections of
/// one address.
const MANY_SOCKETS: [(&str, &str); 1] = [("TACHO_HTTP_CONNECTIONS_MAX", "4096")];

/// The number of drivers of this process so far.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "dashboards",
    new: |scenario| Ok(Box::new(DashboardsDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct DashboardsDriver {
    scenario: Scenario,
    target: TargetOptions,
    application: Application,
    opened: Option<OpenedServer>,
    /// Distinguishes messages and alarms of this run from others.
    run: u32,
    /// The devices, by number, after the latest phase.
    devices: Vec<DeviceState>,
    /// Messages of earlier phases that may have raised an alarm.
    raised: BTreeSet<(u32, u64)>,
    latest: Option<Tally>,
}

struct OpenedServer {
    platform: Platform,
    mqtt: SocketAddr,
    http: SocketAddr,
    /// The ids of the devices, by number.
    ids: Vec<String>,
}

/// What the clients of the latest phase did.
enum Tally {
    Live(LiveTally),
    Page(PageTally),
    Create(CreateTally),
    Alarms(AlarmTally),
}

impl DashboardsDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        RestPlatform::check(scenario)?;
        let has_target = !scenario.target.url.is_empty();
        let mut target: TargetOptions = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        target.check(has_target)?;
        // The applications are checked, and telemetry is read back as far as they show it.
        target.verify = Some(false);
        let all = scenario.phases.iter().map(|phase| PhaseClients::read(scenario, phase));
        let all: Vec<PhaseClients> = all.collect::<std::result::Result<_, _>>()?;
        let of_run = |clients: &PhaseClients| {
            let options = &clients.options;
            let prefixes = (options.device_prefix.clone(), options.token_prefix.clone());
            (options.application, options.profiles(), prefixes)
        };
        if let Some(other) = all.windows(2).position(|two| of_run(&two[0]) != of_run(&two[1])) {
            return Err(format!(
                "{} has another application, device_prefix, token_prefix or number of profiles than the phase before: set them in \
                 [dataset]",
                scenario.phases[other + 1].place()
            ));
        }
        let application = all[0].options.application;
        if matches!(application, Application::Create | Application::Alarms) {
            target.refuse_provision()?;
        }
        Ok(Self {
            scenario: scenario.clone(),
            target,
            application,
            opened: None,
            run: RUNS.fetch_add(1, Ordering::Relaxed) ^ std::process::id() << 8,
            devices: Vec::new(),
            raised: BTreeSet::new(),
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
        let devices = all.iter().map(|clients| clients.count(Role::Device)).max().unwrap_or(0);
        Ok(Fleet {
            device_prefix: first.device_prefix.clone(),
            token_prefix: first.token_prefix.clone(),
            devices,
            connected: devices,
        })
    }

    fn alarm_type(&self) -> String {
        format!("bench {:x}", self.run)
    }

    /// The beginning of the names of the devices that clients create in a phase.
    fn created_prefix(&self, phase: &str) -> String {
        let index = self.scenario.phases.iter().position(|known| known.name == phase).unwrap_or(0);
        format!("bench-{:x}-{index}-", self.run)
    }

    fn server(&self) -> &OpenedServer {
        self.opened.as_ref().expect(NOT_OPEN)
    }

    fn device_config(&self, clients: &PhaseClients) -> Result<Option<DeviceConfig>> {
        let Some(group) = clients.with(Role::Device) else { return Ok(None) };
        let version = clients.options.version().map_err(Error::Options)?;
        Ok(Some(DeviceConfig {
            run: self.run,
            version: version.on_the_wire(),
            message: MessageTemplate::new(version),
            token_prefix: clients.options.token_prefix.clone(),
            client_prefix: format!("bench-{:x}-", self.run),
            keep_alive_s: clients.options.keep_alive_s,
            publish: group.class,
            raise_every: clients.options.raise_every(),
            before: self.devices[..group.connections as usize].to_vec(),
        }))
    }

    fn sockets(&self, clients: &PhaseClients) -> Result<Option<Sockets>> {
        let Some(group) = clients.with(Role::Socket) else { return Ok(None) };
        let server = self.server();
        let (host, token) = (server.http.to_string(), token(&server.platform));
        if self.application == Application::Live {
            return Ok(Some(Sockets::Live(LiveConfig {
                subscription: clients.options.subscription(),
                run: self.run,
                host,
                token,
                ids: server.ids.clone(),
                deliver: group.class,
            })));
        }
        let written: Vec<_> = self.devices.iter().map(|device| device.newest).collect();
        let silent = written.iter().filter(|newest| newest.is_none()).count();
        if silent > 0 {
            return Err(Error::Options(format!(
                "{silent} of {} devices have sent nothing that a page could show: run the phase that writes as well, with at least one \
                 message for each device",
                written.len()
            )));
        }
        let by_id = (0..).zip(&server.ids).filter_map(|(number, id)| Some((parse_id(id)?, number)));
        Ok(Some(Sockets::Page(PageConfig {
            host,
            token,
            device_prefix: clients.options.device_prefix.clone(),
            page_size: clients.options.page_size(),
            by_id: by_id.collect(),
            written,
            class: group.class,
        })))
    }

    fn creators(&self, clients: &PhaseClients, phase: &Phase) -> Option<CreatorConfig> {
        let group = clients.with(Role::Client)?;
        let server = self.server();
        let login = Some(server.platform.client().bearer());
        let head = RequestHead { host: server.http.to_string(), login };
        Some(CreatorConfig { head, prefix: self.created_prefix(&phase.name), class: group.class })
    }

    /// The devices of a phase, with the sockets that follow them.
    fn followed(&self, clients: &PhaseClients, sockets: u32) -> NewestMessages {
        let devices = &self.devices[..clients.count(Role::Device) as usize];
        let known = |device: &DeviceState| (device.newest.map_or(0, |newest| newest.number + 1), device.next);
        let devices: Vec<(u64, u64)> = devices.iter().map(known).collect();
        NewestMessages::new(&devices, sockets, clients.options.devices_each())
    }

    /// The plan of a phase: devices connect to the broker, and all others to the HTTP interface.
    fn plan(&self, clients: &PhaseClients, phase: &Phase, part: (u32, u32)) -> Plan {
        let server = self.server();
        let groups = clients.groups.iter().enumerate();
        let elsewhere = groups.filter(|(_, group)| group.role != Role::Device);
        Plan {
            elsewhere: elsewhere.map(|(index, _)| (index, server.http)).collect(),
            ..plan(phase, &self.scenario, server.mqtt, part)
        }
    }

    /// The search for alarms in a phase with rules.
    fn watch(&self, group: Option<Group>, plan: &Plan) -> Option<Watch> {
        let group = group.filter(|_| self.application == Application::Alarms)?;
        let window = plan.segments[0].window();
        Some(Watch::new(
            self.server().ids.clone(),
            self.alarm_type(),
            group.arriving,
            window,
            plan.classes.len(),
        ))
    }
}

/// The session token of the login.
fn token(platform: &Platform) -> String {
    let bearer = platform.client().bearer();
    bearer.strip_prefix("Bearer ").unwrap_or(&bearer).to_owned()
}

/// Carries out a plan while threads look for alarms, and adds what they find.
fn run_watched(
    protocol: &Clients<'_>,
    plan: &Plan,
    (watch, watchers): (&Watch, u32),
    platform: &Platform,
    run: PhaseRun<'_>,
) -> Result<(Outcome<Session>, Looks)> {
    let PhaseRun { shared, on_event, .. } = run;
    let mut seconds = 0;
    let (outcome, (recorder, mut last, looks)) = thread::scope(|scope| {
        for _ in 0..watchers {
            let client = platform.client().clone();
            scope.spawn(move || watch.run(&client));
        }
        let outcome = event::run(protocol, plan, shared, |mut event| {
            match &mut event {
                Event::Started { at, .. } => watch.begin(*at),
                Event::Second(second) => {
                    watch.add_to(second);
                    seconds = second.index + 1;
                }
                _ => {}
            }
            on_event(event);
        });
        (outcome, watch.end())
    });
    let mut outcome = outcome?;
    if last.total().completed + last.total().failed > 0 {
        last.index = seconds;
        on_event(Event::Second(Box::new(last)));
    }
    if let Some(segment) = outcome.segments.first_mut() {
        segment.recorder.merge(&recorder);
    }
    Ok((outcome, looks))
}

impl Driver for DashboardsDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            starts_server: self.starts_server(),
            one_process: Some("one process knows every message and when it was due: leave out --workers"),
            ..Capabilities::of_events(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, None)
    }

    fn limits(&self, phases: &[&Phase]) -> Result<()> {
        for phase in phases {
            let clients = self.of_phase(phase)?;
            let others = clients.options.unread_sockets() + clients.options.watchers();
            open_files::provide(phase.connections() + others, 1)?;
        }
        Ok(())
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let fleet = self.fleet()?;
        let creates = match self.application {
            Application::Live | Application::Page => fleet.clone(),
            Application::Create | Application::Alarms => Fleet { devices: 0, connected: 0, ..fleet.clone() },
        };
        let settings: &[_] = if self.application == Application::Live { &MANY_SOCKETS } else { &[] };
        let RestPlatform { platform, mqtt, http } =
            RestPlatform::open(&self.scenario, (&self.target, &creates), settings, context, progress)?;
        let ids = match self.application {
            Application::Live | Application::Page => platform.devices(&fleet)?.0,
            Application::Create => Vec::new(),
            Application::Alarms => {
                let profiles = self.of_phase(&self.scenario.phases[0])?.options.profiles();
                rules::provision(platform.client(), &fleet, profiles, &self.alarm_type(), progress)?
            }
        };
        self.devices = vec![DeviceState::default(); fleet.devices as usize];
        let opened = opened_broker(mqtt, None, Some(&platform));
        self.opened = Some(OpenedServer { platform, mqtt, http, ids });
        Ok(opened)
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let mut findings = Vec::new();
        if self.application == Application::Live {
            let with_sockets = |name: &str| {
                let phase = self.scenario.phases.iter().find(|phase| phase.name == name);
                let clients = phase.and_then(|phase| self.of_phase(phase).ok());
                clients.is_some_and(|clients| clients.with(Role::Socket).is_some())
            };
            let class =
                self.of_phase(&self.scenario.phases[0]).ok().and_then(|clients| clients.with(Role::Device));
            let publish =
                class.and_then(|group| self.scenario.classes().get(usize::from(group.class)).cloned());
            findings.extend(ingest(result, with_sockets, &publish.unwrap_or_default()));
        }
        if !self.starts_server() {
            findings.extend(self.left_behind());
        }
        findings
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let opened = self.opened.iter();
        opened.map(|it| Box::new(it.platform.metrics()) as Box<dyn Source>).collect()
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let phase = run.phase;
        let clients = self.of_phase(phase)?;
        let sockets = if self.application == Application::Live { clients.count(Role::Socket) } else { 0 };
        let followed = self.followed(&clients, sockets);
        let plan = self.plan(&clients, phase, run.part);
        let watch = self.watch(clients.with(Role::Device), &plan);
        let protocol = Clients {
            groups: clients.groups.clone(),
            devices: self.device_config(&clients)?,
            sockets: self.sockets(&clients)?,
            creators: self.creators(&clients, phase),
            followed: &followed,
            watch: watch.as_ref(),
        };
        let unread = match &protocol.sockets {
            Some(Sockets::Live(config)) => {
                let count = clients.options.unread_sockets();
                let followed = self.followed(&clients, sockets + count);
                UnreadSockets::open((sockets, count), self.server().http, config, &followed)?
            }
            _ => UnreadSockets::default(),
        };
        let (outcome, looks) = match &watch {
            Some(watch) => {
                let watchers = clients.options.watchers();
                run_watched(&protocol, &plan, (watch, watchers), &self.server().platform, run)?
            }
            None => (event::run(&protocol, &plan, run.shared, run.on_event)?, Looks::default()),
        };
        let tally = self.tally(&clients, phase, &protocol, &outcome.sessions, looks);
        self.latest = tally.map(|tally| match tally {
            Tally::Live(live) => {
                Tally::Live(LiveTally { unread: (clients.options.unread_sockets(), unread.closed()), ..live })
            }
            other => other,
        });
        for session in &outcome.sessions {
            if let Session::Device(device) = session {
                self.devices[device.number() as usize] = device.state;
            }
        }
        Ok(outcome.segments)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let (name, Some(segment)) = (&end.phase.name, end.segments.first()) else {
            return Ok(Verdict::default());
        };
        match self.latest.take() {
            None => Ok(Verdict::default()),
            Some(Tally::Live(live)) => Ok(live.verdict(name, segment)),
            Some(Tally::Page(page)) => Ok(page.verdict(name, self.devices.len())),
            Some(Tally::Create(create)) => {
                let counted = self.server().platform.client().device_count(&create.prefix)?;
                Ok(create.verdict(name, counted, segment))
            }
            Some(Tally::Alarms(alarms)) => {
                let server = self.server();
                let found = rules::read_back(server.platform.client(), &server.ids, &self.alarm_type())?;
                let verdict = alarms.verdict(name, &found, &self.raised);
                self.raised.extend(alarms.raised.into_iter().chain(alarms.unknown));
                Ok(verdict)
            }
        }
    }

    fn close(&mut self) -> Result<()> {
        self.opened.take().map_or(Ok(()), |opened| opened.platform.stop())
    }
}

impl DashboardsDriver {
    /// What the clients of a phase did; `None` if there is nothing to check after it.
    fn tally(
        &self,
        clients: &PhaseClients,
        phase: &Phase,
        protocol: &Clients<'_>,
        sessions: &[Session],
        looks: Looks,
    ) -> Option<Tally> {
        let followed = protocol.followed;
        match self.application {
            Application::Live => {
                let group = clients.with(Role::Socket)?;
                let counts = sessions.iter().filter_map(|session| match session {
                    Session::Live(live) => Some(live.counts),
                    _ => None,
                });
                Some(Tally::Live(LiveTally {
                    sockets: group.connections,
                    each: followed.each(),
                    counts: counts.sum(),
                    different: followed.differences().count() as u64,
                    first: followed.differences().next(),
                    unread: (0, 0),
                    class: group.class,
                }))
            }
            Application::Page => {
                clients.with(Role::Socket)?;
                let mut tally = PageTally::default();
                for session in sessions {
                    if let Session::Page(page) = session {
                        tally.compared += page.compared;
                        tally.wrong += page.wrong;
                    }
                }
                Some(Tally::Page(tally))
            }
            Application::Create => {
                let class = clients.with(Role::Client)?.class;
                let prefix = self.created_prefix(&phase.name);
                let mut tally = CreateTally { prefix, class, ..CreateTally::default() };
                for session in sessions {
                    if let Session::Creator(creator) = session {
                        tally.asked += creator.asked;
                        tally.created += creator.created;
                    }
                }
                Some(Tally::Create(tally))
            }
            Application::Alarms => {
                let (config, profiles) = (protocol.devices.as_ref()?, clients.options.profiles());
                let mut tally = AlarmTally { looks, profiles, ..AlarmTally::default() };
                for session in sessions {
                    if let Session::Device(device) = session {
                        let of = |number: u64| (device.number(), number);
                        tally.raised.extend(device.raised.iter().copied().map(of));
                        tally.unknown.extend(device.unknown(config).map(of));
                    }
                }
                Some(Tally::Alarms(tally))
            }
        }
    }

    /// What stays on a running server, with the way to remove it.
    fn left_behind(&self) -> Vec<String> {
        let Ok(fleet) = self.fleet() else { return Vec::new() };
        match self.application {
            Application::Create => {
                let what = format!("the devices whose names begin with `bench-{:x}-`", self.run);
                vec![left_behind(&what, "`tacho device delete NAME` for each of them")]
            }
            Application::Alarms => {
                let what = format!(
                    "the device profiles `{}profile-0` and following, with their rules",
                    fleet.device_prefix
                );
                let how = "DELETE /api/deviceProfile/{id} for each of them, after their devices";
                leftover_finding(&self.scenario, &self.target, &fleet)
                    .into_iter()
                    .chain([left_behind(&what, how)])
                    .collect()
            }
            Application::Live | Application::Page => {
                leftover_finding(&self.scenario, &self.target, &fleet).into_iter().collect()
            }
        }
    }
}

//! Scenarios of driver `ledger`: devices write numbered points while the runner kills the server again and again.
//! Afterwards every acknowledged point must be readable exactly once, and no point may be invented.
//!
//! A phase has `connections` (devices), `window` (messages in flight of each), `rate` (most messages per second of
//! all), `kills` and `version`. It ends with its last kill. Its operations are `publish` and `restart`. `[target]` has
//! `data`, an empty directory, which is kept. Without it the driver uses a temporary directory and keeps it only if the
//! promise was broken or the server failed.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use load::engine::event::now_ms;
use load::engine::{Ended, Event, Load, SegmentOutcome};
use load::limits::IN_FLIGHT_MAX;
use load::progress::Progress;
use load::recorder::{Recorder, Window};
use load::result::Check;
use load::scenario::{Arrival, Phase, Scenario, TARGET_KEYS, typed};
use load::{Error, Result};
use parking_lot::Mutex;
use serde::Deserialize;
use toml::Table;

use super::{CLASSES, Ledger, LedgerCheck, Options, Timing};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, TargetKind, Verdict,
    own_server,
};
use crate::limits::LEDGER_DEVICES_MAX;
use crate::mqtt::Version;
use crate::server::DataDirectory;

const TICK: Duration = Duration::from_millis(50);
/// The mean time between the start of a server and its kill.
const LIFE: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetOptions {
    data: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseOptions {
    kills: u32,
    #[serde(default = "v311")]
    version: String,
}

fn v311() -> String {
    "3.1.1".to_owned()
}

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "ledger",
    new: |scenario| Ok(Box::new(LedgerDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: true,
    dataset_keys: false,
};

/// The driver of one scenario.
pub(super) struct LedgerDriver {
    scenario: Scenario,
    phase: String,
    options: Options,
    data: Option<PathBuf>,
    ledger: Option<Ledger>,
    /// Declared after the server, so that it is dropped after it.
    data_directory: Option<DataDirectory>,
    /// The error with which the server ended or refused to start.
    failure: Option<Error>,
}

impl LedgerDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        if !scenario.target.url.is_empty() {
            return Err(
                "the ledger kills its server and starts one of its own: leave out the target".to_owned()
            );
        }
        if !scenario.operations.is_empty() {
            return Err("the operations of a ledger are its own: leave out [[operation]]".to_owned());
        }
        let target: TargetOptions = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        let [phase] = &scenario.phases[..] else {
            return Err("a ledger has one [[phase]]".to_owned());
        };
        let options = options(phase).map_err(|what| format!("{}: {what}", phase.place()))?;
        Ok(Self {
            scenario: scenario.clone(),
            phase: phase.name.clone(),
            options,
            data: target.data,
            ledger: None,
            data_directory: None,
            failure: None,
        })
    }

    fn check(&self, what: &str, expected: u64, found: u64) -> Check {
        Check::equal(format!("{what} ({})", self.phase), expected, found)
    }

    fn checks(&self, when: &str, found: &LedgerCheck) -> [Check; 4] {
        let check = |what: &str, count: u64| self.check(&format!("{what}, {when}"), 0, count);
        [
            check("acknowledged points that are not readable", found.lost),
            check("readable points that were never sent", found.invented),
            check("points readable more than once", found.duplicated),
            check("points readable with another value", found.wrong),
        ]
    }
}

fn options(phase: &Phase) -> std::result::Result<Options, String> {
    let [mix] = &phase.mixes[..] else { return Err("all devices of a ledger do the same".to_owned()) };
    let own: PhaseOptions = mix.options(&Table::new(), "its options")?;
    if mix.arrival != Arrival::Closed {
        return Err("devices of a ledger wait for answers: arrival = \"closed\"".to_owned());
    }
    if phase.duration.is_some() || !phase.warmup.is_zero() {
        return Err("it ends with its last kill: leave out `duration` and `warmup`".to_owned());
    }
    let rate = mix.rate.filter(|rate| *rate > 0.0 && rate.is_finite());
    let rate = rate.ok_or("`rate`, the most messages per second over all devices, must be above zero")?;
    if own.kills == 0 {
        return Err("`kills` must be above zero".to_owned());
    }
    if phase.connections() > LEDGER_DEVICES_MAX {
        return Err(format!(
            "connections = {}; use at most {LEDGER_DEVICES_MAX}, each has a thread",
            phase.connections()
        ));
    }
    if mix.window > IN_FLIGHT_MAX {
        return Err(format!("window = {}; use at most {IN_FLIGHT_MAX}", mix.window));
    }
    let version: Version = own.version.parse()?;
    Ok(Options { devices: phase.connections(), window: mix.window, rate, version, kills: own.kills })
}

impl Driver for LedgerDriver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: CLASSES.map(str::to_owned).to_vec(),
            one_process: Some("one process kills the server and knows every point: leave out --workers"),
            ..Capabilities::of_threads(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        let mut capabilities = PhaseCapabilities::new(phase, &self.scenario, None);
        // With this load the segment has no arrival that could be checked: devices wait for answers while the server is
        // killed and restarted.
        let killer = Load::Closed { window: 1, pause: LIFE };
        capabilities.segments.iter_mut().for_each(|segment| segment.loads.push(killer));
        capabilities
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        if let Some(data) = &self.data
            && std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some())
        {
            return Err(Error::Options(format!(
                "target.data {} is not empty; the ledger must know every point in it",
                data.display()
            )));
        }
        let data_directory = DataDirectory::new(self.data.as_deref())?;
        let binary = context.server_binary.display();
        progress.step(format!("starting {binary} serve --data {}", data_directory.path().display()));
        let (binary, seed) = (&context.server_binary, self.scenario.head.seed);
        let ledger = Ledger::start(binary, data_directory.path(), seed, self.options.clone())?;
        let (address, durability) = ledger.describe()?;
        let server_process = Some(ledger.server_process());
        (self.ledger, self.data_directory) = (Some(ledger), Some(data_directory));
        Ok(Opened { target: own_server(address, durability), server_process, ..Opened::default() })
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { shared, on_event, .. } = run;
        let ledger = self.ledger.as_mut().expect(NOT_OPEN);
        let window = Window { from_ns: 0, until_ns: u64::MAX };
        let recorder = Mutex::new(Recorder::new(window, CLASSES.len()));
        let (at, started_ms) = (Instant::now(), now_ms());
        let timing = Timing { at, recorder: &recorder, shared };
        on_event(Event::Started { segment: 0, at });
        let mut second = 0;
        let ended = thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            // The receiver may have stopped listening.
            let killing = scope.spawn(move || ledger.kill_all(timing, &|text| drop(tell.send(text))));
            loop {
                match told.recv_timeout(TICK) {
                    Ok(text) => on_event(Event::Note(text)),
                    Err(RecvTimeoutError::Timeout) => on_event(Event::Tick),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                while at.elapsed().as_secs() > second {
                    let taken = recorder.lock().take_second(second);
                    on_event(Event::Second(Box::new(taken)));
                    second += 1;
                }
            }
            killing.join().expect("BUG: the thread that kills the server panicked")
        });
        let measured = at.elapsed();
        let last = recorder.lock().take_second(second);
        on_event(Event::Second(Box::new(last)));
        self.failure = ended.err();
        let ended = if shared.is_stopped() { Ended::Stopped } else { Ended::Finished };
        let recorder = recorder.into_inner();
        Ok(vec![SegmentOutcome { recorder, started_ms, measured, ended, first_loss_s: None }])
    }

    fn verify(&mut self, _: &PhaseEnd<'_>) -> Result<Verdict> {
        let mut found: Vec<(&str, LedgerCheck)> = Vec::new();
        if self.failure.is_none() {
            self.failure = self.check_at_end(&mut found).err();
        }
        let kills = self.ledger.as_ref().map_or(0, |ledger| ledger.kills().len());
        let check = self.check("kills", self.options.kills.into(), kills as u64);
        let mut verdict = self.verdict(found);
        verdict.checks.insert(0, check);
        Ok(verdict)
    }

    fn stopped(&mut self) -> Verdict {
        // A stopped run still reports the losses that were found before.
        self.verdict(Vec::new())
    }

    fn close(&mut self) -> Result<()> {
        self.ledger = None;
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl LedgerDriver {
    /// Sums up the checks after the kills and after the end. If the promise was broken, the driver keeps the data
    /// directory.
    fn verdict(&mut self, mut found: Vec<(&str, LedgerCheck)>) -> Verdict {
        let ledger = self.ledger.as_ref().expect(NOT_OPEN);
        found.insert(0, ("after a kill", ledger.after_kills().clone()));
        let checks = found.iter().flat_map(|(when, judgement)| self.checks(when, judgement)).collect();
        let mut findings = vec![said(&self.phase, ledger)];
        findings.extend(found.iter().flat_map(|(when, judgement)| {
            judgement.examples.iter().map(move |example| format!("{when}: {example}."))
        }));
        let is_broken = found.iter().any(|(_, judgement)| !judgement.kept());
        if is_broken || self.failure.is_some() {
            findings.extend(self.keep_evidence());
        }
        Verdict { checks, findings }
    }

    /// Checks all points after the last kill, and again after an orderly stop. `found` keeps the results if a later
    /// step fails.
    fn check_at_end(&mut self, found: &mut Vec<(&str, LedgerCheck)>) -> Result<()> {
        let ledger = self.ledger.as_mut().expect(NOT_OPEN);
        found.push(("at the end", ledger.check_all()?));
        ledger.stop_and_start()?;
        found.push(("after an orderly stop", ledger.check_all()?));
        ledger.stop()
    }

    /// Keeps the data directory for an investigation. The result does not name the path, because it lies in the working
    /// directory.
    fn keep_evidence(&mut self) -> Option<String> {
        let data_directory = self.data_directory.as_mut()?;
        data_directory.keep();
        let name = data_directory.path().file_name()?.to_string_lossy().into_owned();
        Some(format!("The data directory {name} is kept: it shows what the server made of the points."))
    }
}

fn said(phase: &str, ledger: &Ledger) -> String {
    let kills = ledger.kills();
    let startup = kills.iter().filter(|kill| kill.during_startup).count();
    let resent = kills.iter().filter(|kill| kill.resent).count();
    let spent = ledger.cpu_us_per_point().map(|us| {
        format!(
            " While devices wrote it took {us:.1} us of CPU for each of them; the time per operation of the whole phase has starting \
             again and reading back in it."
        )
    });
    format!(
        "{phase}: the server was killed {} times with SIGKILL, {startup} of them during start-up; {} points were acknowledged; devices \
         sent again what was in flight at the kill before in {resent} of its lives.{} SIGKILL leaves the operating \
         system's page cache: this shows recovery, not what a power cut leaves.",
        kills.len(),
        ledger.acked(),
        spent.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load("ledger", &sets).unwrap();
        LedgerDriver::new(&scenario).err().unwrap_or_default()
    }

    #[test]
    fn what_a_ledger_cannot_be_is_refused_with_what_to_do() {
        assert_eq!(refused(&[]), "");
        for (set, expected) in [
            ("target.url=mqtt://h", "starts one of its own"),
            ("phase.run.kills=0", "above zero"),
            ("phase.run.rate=0", "above zero"),
            ("phase.run.arrival=poisson", "arrival = \"closed\""),
            ("phase.run.duration=5s", "ends with its last kill"),
            ("phase.run.connections=100000", "at most"),
            ("phase.run.version='6'", "3.1.1"),
            ("phase.run.kils=1", "did you mean `kills`"),
        ] {
            let error = refused(&[set]);
            assert!(error.contains(expected), "{set}: {error}");
        }
    }

    #[test]
    fn a_used_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x"), "").unwrap();
        let sets = [format!("target.data='{}'", directory.path().display())];
        let scenario = Scenario::load("ledger", &sets).unwrap();
        let mut driver = LedgerDriver::new(&scenario).unwrap();
        let error = driver.open(&Context::default(), &Progress::new(true)).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
    }
}

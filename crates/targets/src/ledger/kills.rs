//! Checks the promise of acknowledgements: writes numbered points, kills the server at random moments, restarts it on
//! the same directory, reads everything back and compares it with a ledger.
//!
//! SIGKILL keeps the page cache of the operating system, so this tests recovery, not a power cut.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::engine::event::now_ms;
use load::recorder::Operation;
use load::server_process::ServerProcess;
use load::{Error, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::writer::{KEY, PUBLISH, Setup, Writer};
use crate::devices::Client;
use crate::mqtt::Version;
use crate::server::{ADMIN, Server, ServerInstance};

use super::points::LedgerCheck;
use super::writer::Timing;

/// The names of the classes: a message until its PUBACK, and a restart after a kill until the server is ready.
pub const CLASSES: [&str; 2] = ["publish", "restart"];
const RESTART: u16 = PUBLISH + 1;
const DEVICE_PREFIX: &str = "ledger-";
const TOKEN_PREFIX: &str = "ledger-tok";
/// The delay of a kill after the server is ready.
const AFTER_READY_MS: std::ops::Range<u64> = 50..2_000;
/// The delay of a kill during start-up, after the start of the process.
const AFTER_SPAWN_MS: std::ops::Range<u64> = 1..150;
/// One kill in this many happens during start-up.
const STARTUP_ONE_IN: u32 = 5;
/// The distance around the written points within which invented points are looked for.
const DAY_MS: u64 = 86_400_000;

/// The parameters of the writes and the kills.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of devices, each with its own connection.
    pub devices: u32,
    /// The number of messages in flight per connection.
    pub window: usize,
    /// The largest number of messages per second of all devices. It limits the points to read back.
    pub rate: f64,
    /// MQTT version.
    pub version: Version,
    /// The number of kills.
    pub kills: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// Whether the server was killed before it was ready.
    pub during_startup: bool,
    /// The delay after ready, or after the start of the process.
    pub delay_ms: u64,
    /// Whether points in flight at the previous kill were sent again.
    pub resent: bool,
    /// The number of points sent for the first time before this kill.
    pub sent: u64,
    /// The number of points acknowledged before this kill, including repetitions.
    pub acked: u64,
}

impl std::fmt::Display for Kill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.during_startup {
            return write!(f, "{} ms into start-up", self.delay_ms);
        }
        write!(f, "{} ms after ready, {} points sent, {} acked", self.delay_ms, self.sent, self.acked)
    }
}

/// A server on its own directory, and the devices with their ledgers.
pub struct Ledger {
    options: Options,
    instance: ServerInstance,
    setup: Setup,
    server: Option<Server>,
    writers: Vec<Writer>,
    ids: Vec<String>,
    rng: Xoshiro256PlusPlus,
    base_ts_ms: u64,
    /// For each device, the first number that no check has covered.
    unchecked_from: Vec<u64>,
    kills: Vec<Kill>,
    after_kills: LedgerCheck,
    /// CPU time of the server while devices wrote; `None` once it could not be read.
    writing_cpu: Option<Duration>,
}

impl Ledger {
    /// Starts the server on an empty directory and creates the devices.
    pub(crate) fn start(binary: &Path, data: &Path, seed: u64, options: Options) -> Result<Self> {
        let instance = ServerInstance::new(binary, data)?;
        let server = Server::start(&instance)?;
        let base_ts_ms = now_ms();
        let mut ledger = Self {
            setup: Setup {
                target: instance.mqtt,
                version: options.version,
                token_prefix: TOKEN_PREFIX.to_owned(),
                window: options.window,
                rate: options.rate / f64::from(options.devices),
            },
            server: Some(server),
            writers: (0..options.devices).map(|device| Writer::new(device, base_ts_ms)).collect(),
            ids: Vec::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            base_ts_ms,
            unchecked_from: vec![0; options.devices as usize],
            kills: Vec::new(),
            after_kills: LedgerCheck::default(),
            writing_cpu: Some(Duration::ZERO),
            options,
            instance,
        };
        let client = ledger.login()?;
        client.provision(ledger.options.devices, DEVICE_PREFIX, TOKEN_PREFIX)?;
        ledger.ids = client.device_ids(DEVICE_PREFIX, ledger.options.devices)?;
        Ok(ledger)
    }

    /// The broker's address and its durability class.
    pub(crate) fn describe(&self) -> Result<(String, String)> {
        let durability = self.login()?.status()["durability"].as_str().unwrap_or("unknown").to_owned();
        Ok((self.instance.mqtt.to_string(), durability))
    }

    /// The kills so far.
    pub fn kills(&self) -> &[Kill] {
        &self.kills
    }

    /// The number of points acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.writers.iter().map(|writer| writer.points.acked()).sum()
    }

    /// The processes of the server.
    pub(crate) fn server_process(&self) -> ServerProcess {
        self.instance.process.clone()
    }

    /// CPU time of the server per acknowledged point while devices wrote, microseconds. It excludes starts of the
    /// server and reading back.
    pub(crate) fn cpu_us_per_point(&self) -> Option<f64> {
        let acked: u64 = self.kills.iter().map(|kill| kill.acked).sum();
        (acked > 0).then_some(self.writing_cpu?.as_secs_f64() * 1e6 / acked as f64)
    }

    /// The sum of the checks after each kill. Each covers the points written since the previous kill.
    pub fn after_kills(&self) -> &LedgerCheck {
        &self.after_kills
    }

    /// Kills and restarts the server as often as configured, and leaves it running. `tell` gets the progress. The error
    /// is that of a server that ended or refused by itself.
    pub(crate) fn kill_all(&mut self, timing: Timing<'_>, tell: &dyn Fn(String)) -> Result<()> {
        while self.kills.len() < self.options.kills as usize && !timing.shared.is_stopped() {
            let kill = match self.server.take() {
                Some(server) => self.kill_under_load(server, timing)?,
                None if self.rng.random_ratio(1, STARTUP_ONE_IN) => self.kill_during_startup()?,
                None => {
                    self.restart(timing)?;
                    continue;
                }
            };
            tell(format!("kill {} of {}: {kill}", self.kills.len() + 1, self.options.kills));
            self.kills.push(kill);
        }
        if self.server.is_none() { self.restart(timing) } else { Ok(()) }
    }

    /// Checks all points.
    pub(crate) fn check_all(&self) -> Result<LedgerCheck> {
        self.check(|_| 0)
    }

    /// Stops the server in order and starts it again. An orderly stop must keep as much as a kill.
    pub(crate) fn stop_and_start(&mut self) -> Result<()> {
        self.stop()?;
        self.server = Some(Server::start(&self.instance)?);
        Ok(())
    }

    /// Stops the server in order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Server::stop)
    }

    fn login(&self) -> Result<Client> {
        Client::login(&self.instance.http_url(), ADMIN, &self.instance.admin_password()?)
    }

    /// Starts the server again and checks the points since the last check.
    fn restart(&mut self, timing: Timing<'_>) -> Result<()> {
        let began_ns = timing.now_ns();
        self.server = Some(Server::start(&self.instance)?);
        let start = Operation { class: RESTART, intended_ns: began_ns, sent_ns: began_ns };
        let mut recorder = timing.recorder.lock();
        recorder.planned(began_ns);
        recorder.sent(&start, 0);
        recorder.completed(&start, timing.now_ns(), 0);
        drop(recorder);
        let found = self.check(|device| self.unchecked_from[device])?;
        self.after_kills.add(found);
        self.unchecked_from = self.writers.iter().map(|writer| writer.points.sent()).collect();
        Ok(())
    }

    fn kill_under_load(&mut self, server: Server, timing: Timing<'_>) -> Result<Kill> {
        let delay_ms = self.rng.random_range(AFTER_READY_MS);
        let resent = self.rng.random();
        let (sent_before, acked_before) = (self.sent(), self.acked());
        let cpu_before = self.instance.process.cpu();
        let stop = AtomicBool::new(false);
        let (setup, writers) = (&self.setup, &mut self.writers);
        thread::scope(|scope| {
            let handles: Vec<_> = writers
                .iter_mut()
                .map(|writer| scope.spawn(|| writer.run(setup, resent, &stop, timing)))
                .collect();
            thread::sleep(Duration::from_millis(delay_ms));
            let gone = handles.iter().filter(|handle| handle.is_finished()).count();
            let killed = end(server, gone);
            stop.store(true, Ordering::Relaxed);
            for handle in handles {
                handle.join().expect("BUG: a writer panicked").map_err(Error::io("a ledger writer"))?;
            }
            killed
        })?;
        let (sent, acked) = (self.sent() - sent_before, self.acked() - acked_before);
        let cpu =
            self.instance.process.cpu().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        self.writing_cpu = self.writing_cpu.zip(cpu).map(|(sum, cpu)| sum + cpu);
        Ok(Kill { during_startup: false, delay_ms, resent, sent, acked })
    }

    fn kill_during_startup(&mut self) -> Result<Kill> {
        let delay_ms = self.rng.random_range(AFTER_SPAWN_MS);
        let server = Server::spawn(&self.instance)?;
        thread::sleep(Duration::from_millis(delay_ms));
        end(server, 0)?;
        Ok(Kill { during_startup: true, delay_ms, resent: false, sent: 0, acked: 0 })
    }

    /// Reads back the points of each device from the given number on, and checks them.
    fn check(&self, from: impl Fn(usize) -> u64) -> Result<LedgerCheck> {
        let client = self.login()?;
        let mut total = LedgerCheck::default();
        for (device, writer) in self.writers.iter().enumerate() {
            let from = from(device);
            let start_ms = if from == 0 { self.base_ts_ms - DAY_MS } else { writer.points.ts_ms(from) };
            let end_ms = writer.points.ts_ms(writer.points.sent()) + DAY_MS;
            let mut history = client.history(&self.ids[device], &[KEY], start_ms, end_ms)?;
            total.add(writer.points.check(from, &history.remove(KEY).unwrap_or_default()));
        }
        Ok(total)
    }

    fn sent(&self) -> u64 {
        self.writers.iter().map(|writer| writer.points.sent()).sum()
    }
}

/// Kills the server. If it ended before, or closed connections, it has failed by itself.
fn end(mut server: Server, connections_gone: usize) -> Result<()> {
    if let Some(status) = server.ended()? {
        return Err(server.failed(format!("ended by itself ({status}) before it was killed")));
    }
    if connections_gone > 0 {
        return Err(server.failed(format!("ended {connections_gone} connections before it was killed")));
    }
    server.kill()
}

//! Does an acknowledgement mean what it says? Write numbered points, kill the server at random moments, restart it on
//! the same directory, read everything back and compare with the ledger.

mod book;
mod options;
mod report;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::engine::event::now_ms;
use crate::error::{Error, Result};
use crate::http::Client;
use crate::options::Context;
use crate::progress::Progress;
use crate::report::{default_directory, temporary_beside, write_result};
use crate::server::{ADMIN, Place, Server};
use writer::{KEY, Setup, Writer};

pub use book::{Book, Judgement};
pub use options::Options;
pub use report::{Kill, Report};

const DEVICE_PREFIX: &str = "ledger-";
const TOKEN_PREFIX: &str = "ledger-tok";
/// Kills after ready happen this long after it.
const AFTER_READY_MS: std::ops::Range<u64> = 50..2_000;
/// Kills during start-up happen this long after the process was started.
const AFTER_SPAWN_MS: std::ops::Range<u64> = 1..150;
/// One kill in so many happens during start-up.
const STARTUP_ONE_IN: u32 = 5;
/// How far around the written points invented ones are looked for.
const DAY_MS: u64 = 86_400_000;

/// Runs the ledger and writes the result bundle. A broken promise is a result, not an error: see [`Report::kept`].
pub fn run(options: &Options, context: &Context) -> Result<(Report, PathBuf)> {
    options.check()?;
    let out = options.out.clone().unwrap_or_else(|| default_directory("ledger"));
    let temporary = if options.data.is_none() { Some(temporary_beside(&out)?) } else { None };
    let data = match (&options.data, &temporary) {
        (Some(data), _) => data.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => unreachable!("BUG: without --data there is a temporary directory"),
    };
    let mut run = Run::new(options, context, &data)?;
    let report = run.all().and_then(|report| write_result(&report, &out).map(|()| report));
    if let Some(temporary) = temporary
        && !report.as_ref().is_ok_and(Report::kept)
    {
        // What went wrong must be there to be looked at.
        let _ = temporary.keep();
    }
    Ok((report?, out))
}

struct Run<'a> {
    options: &'a Options,
    context: &'a Context,
    data: &'a Path,
    place: Place,
    setup: Setup,
    writers: Vec<Writer>,
    ids: Vec<String>,
    rng: Xoshiro256PlusPlus,
    progress: Progress,
    base_ts_ms: u64,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options, context: &'a Context, data: &'a Path) -> Result<Self> {
        let place = Place::new(&context.server_binary, data)?;
        let base_ts_ms = now_ms();
        Ok(Self {
            setup: Setup {
                target: place.mqtt,
                protocol: options.protocol,
                token_prefix: TOKEN_PREFIX.to_owned(),
                window: options.window.into(),
                rate: options.rate / f64::from(options.devices),
            },
            writers: (0..options.devices).map(|device| Writer::new(device, base_ts_ms)).collect(),
            ids: Vec::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            progress: Progress::new(options.quiet),
            options,
            context,
            data,
            place,
            base_ts_ms,
        })
    }

    fn all(&mut self) -> Result<Report> {
        let mut kills = Vec::new();
        let mut server = Some(Server::start(&self.place)?);
        self.provision()?;
        while kills.len() < self.options.kills as usize {
            let kill = match server.take() {
                Some(server) => self.kill_under_load(server)?,
                None if self.rng.random_ratio(1, STARTUP_ONE_IN) => self.kill_during_startup()?,
                None => {
                    server = Some(self.restart(&mut kills)?);
                    continue;
                }
            };
            self.progress.step(format!("kill {} of {}: {kill}", kills.len() + 1, self.options.kills));
            kills.push(kill);
        }
        let server = self.restart(&mut kills)?;
        let at_end = self.check(|_| 0)?;
        server.stop()?;
        // An orderly end must keep as much as a kill.
        let server = Server::start(&self.place)?;
        let after_stop = self.check(|_| 0)?;
        server.stop()?;
        Ok(Report::new(self.options, self.context, self.data, kills, at_end, after_stop))
    }

    fn login(&self) -> Result<Client> {
        Client::login(&self.place.http_url(), ADMIN, &self.place.admin_password()?)
    }

    fn provision(&mut self) -> Result<()> {
        let client = self.login()?;
        client.provision(self.options.devices, DEVICE_PREFIX, TOKEN_PREFIX)?;
        self.ids = client.device_ids(DEVICE_PREFIX, self.options.devices)?;
        Ok(())
    }

    /// Starts the server again and checks what was written since the last check.
    fn restart(&mut self, kills: &mut [Kill]) -> Result<Server> {
        let began = Instant::now();
        let server = Server::start(&self.place)?;
        let ready = began.elapsed();
        let Some(last) = kills.iter_mut().rev().find(|kill| !kill.during_startup) else { return Ok(server) };
        let from = last.first_numbers.clone();
        last.check = Some(self.check(|device| from[device])?);
        last.restart_ms = Some(u64::try_from(ready.as_millis()).unwrap_or(u64::MAX));
        Ok(server)
    }

    fn kill_under_load(&mut self, server: Server) -> Result<Kill> {
        let delay_ms = self.rng.random_range(AFTER_READY_MS);
        let resend = self.rng.random();
        let sent_before: u64 = self.sent();
        let acked_before: u64 = self.acked();
        let first_numbers = self.writers.iter().map(|writer| writer.book.sent()).collect();
        let stop = AtomicBool::new(false);
        let (setup, writers) = (&self.setup, &mut self.writers);
        thread::scope(|scope| {
            let handles: Vec<_> =
                writers.iter_mut().map(|writer| scope.spawn(|| writer.run(setup, resend, &stop))).collect();
            thread::sleep(Duration::from_millis(delay_ms));
            let gone = handles.iter().filter(|handle| handle.is_finished()).count();
            let killed = end(server, gone);
            stop.store(true, Ordering::Relaxed);
            for handle in handles {
                handle.join().expect("BUG: a writer panicked").map_err(Error::io("a ledger writer"))?;
            }
            killed
        })?;
        Ok(Kill {
            during_startup: false,
            delay_ms,
            resent: resend,
            sent: self.sent() - sent_before,
            acked: self.acked() - acked_before,
            first_numbers,
            restart_ms: None,
            check: None,
        })
    }

    fn kill_during_startup(&mut self) -> Result<Kill> {
        let delay_ms = self.rng.random_range(AFTER_SPAWN_MS);
        let server = Server::spawn(&self.place)?;
        thread::sleep(Duration::from_millis(delay_ms));
        end(server, 0)?;
        Ok(Kill { during_startup: true, delay_ms, ..Kill::default() })
    }

    /// Reads back the points from the given number of each device on.
    fn check(&self, from: impl Fn(usize) -> u64) -> Result<Judgement> {
        let client = self.login()?;
        let mut total = Judgement::default();
        for (device, writer) in self.writers.iter().enumerate() {
            let from = from(device);
            let start_ms = if from == 0 { self.base_ts_ms - DAY_MS } else { writer.book.ts_ms(from) };
            let end_ms = writer.book.ts_ms(writer.book.sent()) + DAY_MS;
            let mut history = client.history(&self.ids[device], &[KEY], start_ms, end_ms)?;
            total.add(writer.book.judge(from, &history.remove(KEY).unwrap_or_default()));
        }
        Ok(total)
    }

    fn sent(&self) -> u64 {
        self.writers.iter().map(|writer| writer.book.sent()).sum()
    }

    fn acked(&self) -> u64 {
        self.writers.iter().map(|writer| writer.book.acked()).sum()
    }
}

/// Kills the server. One that ended before that, or that closed connections, has failed by itself.
fn end(mut server: Server, connections_gone: usize) -> Result<()> {
    if let Some(status) = server.ended()? {
        return Err(server.failed(format!("ended by itself ({status}) before it was killed")));
    }
    if connections_gone > 0 {
        return Err(server.failed(format!("ended {connections_gone} connections before it was killed")));
    }
    server.kill()
}

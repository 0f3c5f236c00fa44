//! Reads over HTTP, one client, warm: what does a dashboard wait for an answer?
//!
//! A server is started on a fresh directory and filled through its device door; then each question is asked again and
//! again, at rest and while points are being written. Every answer is checked to hold as many values as it must.

mod fill;
mod options;
mod questions;
mod report;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::{Error, Result};
use crate::http::Client;
use crate::options::Context;
use crate::progress::Progress;
use crate::report::{default_directory, temporary_beside, write_result};
use crate::server::{ADMIN, Place, Server};

pub use options::Options;
pub use report::{Report, Timing};

use questions::Question;

/// Largest latency that is told apart, in microseconds.
const LATENCY_MAX_US: u64 = 60_000_000;

/// Runs the questions and writes the result.
pub fn run(options: &Options, context: &Context) -> Result<(Report, PathBuf)> {
    options.check()?;
    let out = options.out.clone().unwrap_or_else(|| default_directory("reads"));
    let progress = Progress::new(options.quiet);
    let data = temporary_beside(&out)?;
    let place = Place::new(&context.server_binary, data.path())?;
    let server = Server::start(&place)?;
    let client = Client::login(&place.http_url(), ADMIN, &place.admin_password()?)?;
    progress.step(format!("filling {} devices", options.devices));
    let filled = fill::fill(options, &client)?;
    progress.step(format!("{} rows written", filled.rows));
    let questions = questions::all(options, &filled);
    let mut timings = Vec::new();
    for question in &questions {
        progress.step(format!("{}, at rest", question.name));
        timings.push(ask(question, options, &client, &server)?);
    }
    let written = while_writing(options, &client, &filled, || {
        for (question, timing) in questions.iter().zip(&mut timings) {
            progress.step(format!("{}, while writing", question.name));
            timing.writing = Some(ask(question, options, &client, &server)?.rest);
        }
        Ok(())
    })?;
    server.stop()?;
    let report = Report::new(options, context, filled.rows, written, timings);
    write_result(&report, &out)?;
    Ok((report, out))
}

/// Asks again and again; the first answers, which warm caches, do not count.
fn ask(question: &Question, options: &Options, client: &Client, server: &Server) -> Result<Timing> {
    let mut histogram =
        Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("BUG: the bounds are constants");
    let begin = Instant::now();
    let cpu_now = || server.sampled().cpu().unwrap_or_default();
    let mut cpu = cpu_now();
    let mut bytes = 0;
    let mut warm = None;
    while warm.is_none_or(|warm: Instant| warm.elapsed() < options.duration) {
        let asked = Instant::now();
        let answer = question.ask(client)?;
        let latency = asked.elapsed();
        question.check(&answer)?;
        match warm {
            Some(_) => histogram.saturating_record(latency.as_micros().max(1) as u64),
            None if begin.elapsed() < options.warmup => {}
            None => {
                warm = Some(Instant::now());
                cpu = cpu_now();
            }
        }
        bytes = answer.len();
    }
    let cpu = cpu_now().saturating_sub(cpu);
    Ok(Timing::new(question.name, &question.what, &histogram, bytes, cpu))
}

/// Does `reads` while points are written at the rate asked for, and returns that which was reached.
fn while_writing(
    options: &Options,
    client: &Client,
    filled: &fill::Filled,
    reads: impl FnOnce() -> Result<()>,
) -> Result<f64> {
    let (stop, points) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let written = fill::write_on(options, client, filled, round)?;
                points.fetch_add(written, Ordering::Relaxed);
                round += 1;
                let due = Duration::from_secs_f64(points.load(Ordering::Relaxed) as f64 / options.write_rate);
                std::thread::sleep(due.saturating_sub(begin.elapsed()));
            }
            Ok::<(), Error>(())
        });
        let read = reads();
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("BUG: the writer panicked")?;
        read
    })?;
    Ok(points.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

//! The result of the reads.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::Options;
use crate::machine::{Machine, utc_now};
use crate::options::Context;

/// How long answers took, in microseconds.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Latency {
    /// Answers.
    pub answers: u64,
    /// Half of them were faster.
    pub p50_us: u64,
    /// 99 of 100 were faster.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
    /// CPU time of the server per answer; writes of the time count too.
    pub server_cpu_us: f64,
}

/// A question and how long its answers took.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Timing {
    /// Name of the question.
    pub question: &'static str,
    /// The question.
    pub what: String,
    /// Bytes of an answer's body.
    pub answer_bytes: usize,
    /// While nothing else happened.
    pub rest: Latency,
    /// While points were written.
    pub writing: Option<Latency>,
}

impl Timing {
    pub(super) fn new(
        question: &'static str,
        what: &str,
        latency: &Histogram<u64>,
        bytes: usize,
        cpu: Duration,
    ) -> Self {
        let rest = Latency {
            answers: latency.len(),
            p50_us: latency.value_at_quantile(0.5),
            p99_us: latency.value_at_quantile(0.99),
            max_us: latency.max(),
            server_cpu_us: cpu.as_secs_f64() * 1e6 / latency.len().max(1) as f64,
        };
        Self { question, what: what.to_owned(), answer_bytes: bytes, rest, writing: None }
    }
}

/// Everything about one run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Report {
    /// `reads`.
    pub scenario: &'static str,
    /// End, UTC.
    pub ended: String,
    /// How the run was asked for.
    pub command_line: Vec<String>,
    /// Source commit.
    pub commit: Option<String>,
    /// The options, defaults filled in.
    pub options: serde_json::Value,
    /// The machine.
    pub machine: Machine,
    /// Rows stored before the first question.
    pub rows: u64,
    /// Points written per second during the second half.
    pub written_per_s: f64,
    /// The questions.
    pub timings: Vec<Timing>,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        context: &Context,
        rows: u64,
        written_per_s: f64,
        timings: Vec<Timing>,
    ) -> Self {
        Self {
            scenario: "reads",
            ended: utc_now(),
            command_line: context.command_line.clone(),
            commit: context.commit.clone(),
            options: serde_json::to_value(options).expect("BUG: options have only text keys"),
            machine: Machine::here(),
            rows,
            written_per_s,
            timings,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, rate) = (self.rows, self.written_per_s);
        writeln!(
            f,
            "{rows} rows, one client over HTTP; every answer was counted; then again while {rate:.0} points/s are written"
        )?;
        writeln!(
            f,
            "  {:<22} {:>9} {:>9} {:>9} {:>9} {:>9}   {:>9} {:>9}",
            "milliseconds", "p50", "p99", "max", "CPU", "bytes", "p50 (w)", "p99 (w)"
        )?;
        let ms = |us: u64| us as f64 / 1_000.0;
        for timing in &self.timings {
            let rest = &timing.rest;
            write!(
                f,
                "  {:<22} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9}",
                timing.question,
                ms(rest.p50_us),
                ms(rest.p99_us),
                ms(rest.max_us),
                rest.server_cpu_us / 1_000.0,
                timing.answer_bytes
            )?;
            if let Some(writing) = &timing.writing {
                write!(f, "   {:>9.3} {:>9.3}", ms(writing.p50_us), ms(writing.p99_us))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! The result of a load run: figures, what they cost, and whether they are worth anything.

mod bundle;
pub mod html;
mod table;

pub use bundle::default_directory;
pub(crate) use bundle::write_result;

use crate::generator::Protocol;
use crate::machine::Machine;
use crate::recorder::{Counts, Latency, Quantiles};

/// Least share of the planned messages that must have been sent.
pub const SENT_SHARE_MIN: f64 = 0.99;
/// Largest p99 of the generator's own lateness, microseconds.
pub const LAG_P99_US_MAX: u64 = 5_000;

/// Whether the figures may be quoted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// All gates passed.
    pub valid: bool,
    /// Gates that did not.
    pub reasons: Vec<String>,
    /// What a reader should know although no gate failed.
    pub notes: Vec<String>,
}

/// One line of the per-second series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesLine {
    /// Seconds since the start of the load.
    pub second: u64,
    /// Messages sent in it.
    pub sent: u64,
    /// Messages acknowledged in it.
    pub acked: u64,
    /// Failures in it.
    pub errors: u64,
    /// Latency of what was acknowledged in it, microseconds.
    pub p50_us: u64,
    /// Latency of what was acknowledged in it, microseconds.
    pub p99_us: u64,
    /// Latency of what was acknowledged in it, microseconds.
    pub max_us: u64,
    /// Generator lag of what was sent in it, microseconds.
    pub lag_p99_us: u64,
    /// Resident memory of the server at its end, bytes; 0 when not sampled.
    pub server_rss_bytes: u64,
}

/// What a message costs and how much memory the server holds. `None` where nothing could be sampled.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// CPU time of the generator per acknowledged message, microseconds, kernel included.
    pub generator_cpu_us_per_message: Option<f64>,
    /// CPU time of the generator, percent of one core.
    pub generator_cpu_percent: Option<f64>,
    /// CPU time of the server per acknowledged message, microseconds, kernel included.
    pub server_cpu_us_per_message: Option<f64>,
    /// CPU time of the server, percent of one core.
    pub server_cpu_percent: Option<f64>,
    /// Memory of the server before the first connection, bytes.
    pub server_rss_before_bytes: Option<u64>,
    /// Memory of the server with all connections open and no load yet, bytes.
    pub server_rss_connected_bytes: Option<u64>,
    /// Largest memory of the server seen during the load, bytes.
    pub server_rss_max_bytes: Option<u64>,
    /// Memory per connection before the load, bytes.
    pub server_rss_per_connection_bytes: Option<f64>,
}

/// What reading back brought.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Verification {
    /// Devices whose points were counted.
    pub devices: u64,
    /// Acknowledged messages.
    pub acked: u64,
    /// Messages handed to the kernel.
    pub sent: u64,
    /// Points the server has.
    pub stored: u64,
    /// Acknowledged messages that are not stored.
    pub missing: u64,
    /// Stored points beyond what was sent.
    pub surplus: u64,
    /// Devices whose values were compared one by one.
    pub sampled_devices: u64,
    /// Rows compared.
    pub sampled_rows: u64,
    /// Rows with a wrong, missing or repeated value.
    pub wrong_rows: u64,
    /// The first thing that was wrong.
    pub first_difference: Option<String>,
    /// Duration of the verification, seconds.
    pub took_s: f64,
}

/// The server as far as it says.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct TargetFacts {
    /// MQTT address.
    pub mqtt: String,
    /// Whether this run started the server.
    pub started_by_run: bool,
    /// Its durability class, `unknown` when it does not say.
    pub durability: String,
    /// Its answer to `GET /api/status`.
    pub status: serde_json::Value,
}

/// Everything about one load run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// One line that says what was done.
    pub load: String,
    /// Whether the figures may be quoted.
    pub verdict: Verdict,
    /// Begin, UTC.
    pub started: String,
    /// How the run was asked for.
    pub command_line: Vec<String>,
    /// Source commit.
    pub commit: Option<String>,
    /// The options, defaults filled in.
    pub options: serde_json::Value,
    /// The machine.
    pub machine: Machine,
    /// The server.
    pub target: TargetFacts,
    /// Protocol version.
    pub protocol: Protocol,
    /// Connections.
    pub connections: u32,
    /// Size of a payload, bytes.
    pub payload_bytes: usize,
    /// Connections opened per second.
    pub connect_per_s: f64,
    /// Length of the measured part, seconds.
    pub measured_s: f64,
    /// Counters.
    pub counts: Counts,
    /// Messages acknowledged per second of the measured part.
    pub acked_per_s: f64,
    /// Acknowledged minus intended send time (closed load: minus actual send time).
    pub latency: Quantiles,
    /// Acknowledged minus actual send time.
    pub service: Quantiles,
    /// Actual minus intended send time.
    pub lag: Quantiles,
    /// Whether messages followed a schedule.
    pub open_loop: bool,
    /// The generator looked at its sockets at most this often, microseconds; part of every latency.
    pub tick_us: u32,
    /// What it cost.
    pub cost: Cost,
    /// What reading back brought; `None` when it was not asked for.
    pub verification: Option<Verification>,
    /// Seconds of the run.
    #[serde(skip)]
    pub series: Vec<SeriesLine>,
    /// The histogram behind `latency`.
    #[serde(skip)]
    pub latency_histogram: Latency,
    /// The histogram behind `service`.
    #[serde(skip)]
    pub service_histogram: Latency,
    /// The histogram behind `lag`.
    #[serde(skip)]
    pub lag_histogram: Latency,
}

/// What the gates look at.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Whether messages followed a schedule.
    pub open_loop: bool,
    /// Whether messages were to be sent at all.
    pub idle: bool,
    /// Counters.
    pub counts: &'a Counts,
    /// 99th percentile of the generator lag.
    pub lag_p99_us: u64,
    /// CPU time of the generator, percent of one core, over its threads.
    pub generator_cpu_percent_per_thread: Option<f64>,
    /// What reading back brought.
    pub verification: Option<&'a Verification>,
    /// Why reading back failed, if it did.
    pub verification_error: Option<&'a str>,
}

/// Judges a run. Rules are fixed beforehand; no figure decides which of them count.
pub fn judge(facts: &Facts<'_>) -> Verdict {
    let mut reasons = Vec::new();
    let mut notes = Vec::new();
    let counts = facts.counts;
    if facts.open_loop {
        let share = counts.measured_sent as f64 / counts.measured_planned.max(1) as f64;
        if share < SENT_SHARE_MIN {
            reasons.push(format!(
                "only {:.2} % of the planned messages were sent; at least {:.0} % must be",
                share * 100.0,
                SENT_SHARE_MIN * 100.0
            ));
        }
        if facts.lag_p99_us > LAG_P99_US_MAX {
            reasons.push(format!(
                "the generator itself was late: p99 of its lag is {:.1} ms, {:.0} ms are allowed; give it more CPU or more threads, \
                 or lower the rate",
                facts.lag_p99_us as f64 / 1e3,
                LAG_P99_US_MAX as f64 / 1e3
            ));
        }
    }
    if counts.measured_completed == 0 && !facts.idle {
        reasons.push("no message of the measured part was acknowledged".to_owned());
    }
    for (what, count) in &counts.errors {
        reasons.push(format!("{count} x {what}"));
    }
    judge_verification(facts, &mut reasons, &mut notes);
    if let Some(percent) = facts.generator_cpu_percent_per_thread
        && percent > 90.0
    {
        notes.push(format!(
            "the generator used {percent:.0} % of a core per thread: it, not the server, may be the limit"
        ));
    }
    Verdict { valid: reasons.is_empty(), reasons, notes }
}

fn judge_verification(facts: &Facts<'_>, reasons: &mut Vec<String>, notes: &mut Vec<String>) {
    let Some(verification) = facts.verification else {
        if let Some(error) = facts.verification_error {
            reasons.push(format!("what was stored could not be read back: {error}"));
        } else if !facts.idle {
            notes.push("what was stored was not verified".to_owned());
        }
        return;
    };
    let wrong = [
        (verification.missing, "acknowledged messages are not stored"),
        (verification.surplus, "points are stored that were never sent"),
        (verification.wrong_rows, "sampled rows have wrong values"),
    ];
    let detail = || verification.first_difference.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
    reasons.extend(
        wrong
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}{}", detail())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(planned: u64, sent: u64) -> Counts {
        Counts {
            planned,
            sent,
            completed: sent,
            measured_planned: planned,
            measured_sent: sent,
            measured_completed: sent,
            completed_within_window: sent,
            ..Counts::default()
        }
    }

    fn verdict<'a>(counts: &'a Counts, change: impl FnOnce(&mut Facts<'a>)) -> Verdict {
        let mut facts = Facts {
            open_loop: true,
            idle: false,
            counts,
            lag_p99_us: 100,
            generator_cpu_percent_per_thread: Some(20.0),
            verification: None,
            verification_error: None,
        };
        change(&mut facts);
        judge(&facts)
    }

    #[test]
    fn a_clean_run_is_valid_and_says_when_it_was_not_verified() {
        let verdict = verdict(&counts(1_000, 1_000), |_| ());
        assert!(verdict.valid, "{verdict:?}");
        assert_eq!(verdict.notes, ["what was stored was not verified"]);
    }

    #[test]
    fn each_gate_invalidates_by_itself_and_says_why() {
        let clean = counts(1_000, 1_000);
        let cases = [
            (verdict(&counts(1_000, 989), |_| ()), "only 98.90 %"),
            (verdict(&clean, |f| f.lag_p99_us = 5_001), "the generator itself was late"),
            (verdict(&counts(1_000, 0), |f| f.open_loop = false), "no message of the measured part"),
            (verdict(&clean, |f| f.verification_error = Some("503")), "could not be read back: 503"),
        ];
        for (verdict, expected) in cases {
            assert!(!verdict.valid);
            assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
            assert!(verdict.reasons[0].contains(expected), "{verdict:?}");
        }
    }

    #[test]
    fn errors_invalidate_with_their_counts() {
        let mut counts = counts(1_000, 1_000);
        counts.error("connection lost: closed by the server", 3);
        let verdict = verdict(&counts, |_| ());
        assert_eq!(verdict.reasons, ["3 x connection lost: closed by the server"]);
    }

    #[test]
    fn acked_must_equal_stored() {
        let counts = counts(1_000, 1_000);
        let good = Verification { acked: 1_000, sent: 1_000, stored: 1_000, ..Verification::default() };
        assert!(verdict(&counts, |f| f.verification = Some(&good)).valid);
        for (bad, expected) in [
            (Verification { missing: 2, ..good.clone() }, "2 acknowledged messages are not stored"),
            (Verification { surplus: 1, ..good.clone() }, "1 points are stored that were never sent"),
            (Verification { wrong_rows: 5, ..good.clone() }, "5 sampled rows have wrong values"),
        ] {
            let verdict = verdict(&counts, |f| f.verification = Some(&bad));
            assert_eq!((verdict.valid, verdict.reasons), (false, vec![expected.to_owned()]));
        }
    }

    #[test]
    fn a_busy_generator_is_a_note_because_lag_already_gates() {
        let verdict = verdict(&counts(10, 10), |f| f.generator_cpu_percent_per_thread = Some(99.0));
        assert!(verdict.valid && verdict.notes.iter().any(|n| n.contains("99 %")), "{verdict:?}");
    }
}

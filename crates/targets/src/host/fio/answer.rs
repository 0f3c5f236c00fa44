//! Parses fio's output and derives findings about the disk.

use std::time::Duration;

use load::recorder::{Operation, Recorder};
use load::statistics::Distribution;
use load::statistics::{bimodal, little};
use load::{Error, Result};
use serde::Deserialize;

use super::{Job, Pattern};

/// A device counts as being at its quota within this share of it.
const QUOTA_NEAR: f64 = 0.1;

/// The measurements of fio.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// The number of operations.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    pub took: Duration,
    /// Latency, from submission to completion.
    pub latency: Distribution,
    /// Mean latency, microseconds.
    pub latency_mean_us: f64,
    /// Mean time of the submission, microseconds.
    pub submit_mean_us: f64,
    /// The busy time of the device, percent; `None` if fio does not report it.
    pub busy_percent: Option<f64>,
}

#[derive(Deserialize)]
struct Answer {
    jobs: Vec<AnswerJob>,
    #[serde(default)]
    disk_util: Vec<Utilisation>,
}

#[derive(Deserialize)]
struct AnswerJob {
    error: i64,
    read: Side,
    write: Side,
}

#[derive(Deserialize)]
struct Side {
    io_bytes: u64,
    bw_bytes: f64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    slat_ns: Times,
    clat_ns: Times,
}

#[derive(Deserialize)]
struct Times {
    mean: f64,
    #[serde(default)]
    bins: std::collections::BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Utilisation {
    util: f64,
}

/// Parses fio's JSON. fio's histogram has steps of up to 0.8 %, and so have these latencies.
pub(super) fn parse(text: &str, rw: Pattern, took: Duration) -> Result<Measured> {
    let wrong = |what: String| Error::Answer(format!("fio's answer: {what}"));
    // fio may print notes before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let answer: Answer = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    let job = answer.jobs.into_iter().next().ok_or_else(|| wrong("it has no job".to_owned()))?;
    if job.error != 0 {
        return Err(wrong(format!("the job failed with error {}", job.error)));
    }
    let side = if rw.is_write() { job.write } else { job.read };
    let mut latency = Distribution::default();
    for (nanos, count) in &side.clat_ns.bins {
        let nanos: u64 = nanos.parse().map_err(|_| wrong(format!("`{nanos}` is not a time")))?;
        latency.add(nanos / 1_000, *count);
    }
    Ok(Measured {
        iops: side.iops,
        bytes_per_s: side.bw_bytes,
        operations: side.total_ios,
        bytes: side.io_bytes,
        took: if side.runtime > 0 { Duration::from_millis(side.runtime) } else { took },
        latency,
        latency_mean_us: side.clat_ns.mean / 1e3,
        submit_mean_us: side.slat_ns.mean / 1e3,
        busy_percent: answer.disk_util.first().map(|disk| disk.util),
    })
}

impl Measured {
    /// Records all operations. fio does not report their times, so they are spread evenly.
    pub fn record(&self, class: u16, recorder: &mut Recorder) {
        let gap_ns = self.took.as_nanos() as f64 / self.operations.max(1) as f64;
        let bytes = self.bytes / self.operations.max(1);
        let samples =
            self.latency.buckets().iter().flat_map(|(us, count)| std::iter::repeat_n(*us, *count as usize));
        for (place, us) in samples.enumerate() {
            let at_ns = (place as f64 * gap_ns) as u64;
            let operation = Operation { class, intended_ns: at_ns, sent_ns: at_ns };
            recorder.planned(at_ns);
            recorder.sent(&operation, 0);
            recorder.completed(&operation, at_ns + us * 1_000, bytes);
        }
    }

    /// Findings about the disk, as sentences.
    pub fn diagnose(&self, name: &str, job: &Job, disk_gib: Option<f64>) -> Vec<String> {
        let mut findings = vec![format!(
            "{name}: {:.0} operations/s, {:.1} MiB/s, p50 {} us, p99 {} us; the device was busy {}.",
            self.iops,
            self.bytes_per_s / (1024.0 * 1024.0),
            self.latency.quantile_us(0.5),
            self.latency.quantile_us(0.99),
            self.busy_percent
                .map_or("for a time fio does not know".to_owned(), |p| format!("{p:.0} % of the time")),
        )];
        let in_flight = little::in_flight(self.iops, self.latency_mean_us + self.submit_mean_us);
        if (in_flight / f64::from(job.depth) - 1.0).abs() > 0.2 {
            findings.push(format!(
                "{name}: {in_flight:.0} operations were under way on average, {} were asked for; the latency is not only that \
                 of the device.",
                job.depth
            ));
        }
        let two_kinds = bimodal::find(&self.latency);
        if let Some(kinds) = two_kinds {
            findings.push(format!("{name}: {}.", kinds.sentence("latency")));
        }
        if let Some(gib) = disk_gib {
            findings.push(quota(name, self.iops, gib, two_kinds.is_some()));
        }
        findings
    }
}

/// The operations per second that the article's cloud allows a disk: 1200 plus 30 per GiB, at most 20,000.
pub fn allowed_iops(gib: f64) -> f64 {
    (1_200.0 + 30.0 * gib).min(20_000.0)
}

fn quota(name: &str, iops: f64, gib: f64, is_of_two_kinds: bool) -> String {
    let allowed = allowed_iops(gib);
    let formula = format!("min(1200 + 30 x {gib:.0} GiB, 20000) = {allowed:.0}");
    let near = (iops / allowed - 1.0).abs() <= QUOTA_NEAR;
    match (near, is_of_two_kinds) {
        (true, true) => format!(
            "{name}: {iops:.0} operations/s is the quota {formula}, and latency is of two kinds: a token bucket limits this disk, \
             not its hardware. Mean latency is then only depth / quota."
        ),
        (true, false) => format!("{name}: {iops:.0} operations/s is the quota {formula} within 10 %."),
        (false, _) => {
            format!("{name}: {iops:.0} operations/s is {:.2} times the quota {formula}.", iops / allowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::recorder::Window;

    fn job() -> Job {
        toml::from_str("rw = 'randwrite'\nblock = '4k'\ndepth = 128").unwrap()
    }

    /// A disk at its quota: nine tenths of the operations are immediate, the others wait for tokens.
    fn throttled() -> Measured {
        let mut latency = Distribution::default();
        for n in 0..10_000_u64 {
            let (base, spread) = if n % 10 == 0 { (60_000, 20_000) } else { (1_000, 500) };
            latency.add(base + n % 97 * spread / 97, 1);
        }
        Measured {
            iops: 20_126.0,
            bytes_per_s: 20_126.0 * 4_096.0,
            operations: 10_000,
            bytes: 40_960_000,
            took: Duration::from_millis(500),
            latency_mean_us: 6_360.0,
            submit_mean_us: 2.0,
            latency,
            busy_percent: Some(99.0),
        }
    }

    #[test]
    fn a_quota_is_told_from_a_slow_disk() {
        let text = throttled().diagnose("randwrite", &job(), Some(800.0)).join("\n");
        assert!(text.contains("a token bucket limits this disk"), "{text}");
        assert!(
            text.contains("of two kinds") && !text.contains("were asked for"),
            "128 / 20126 is its mean: {text}"
        );
        let text = throttled().diagnose("randwrite", &job(), Some(100.0)).join("\n");
        assert!(text.contains("4.79 times the quota"), "{text}");
        assert_eq!((allowed_iops(100.0), allowed_iops(5_000.0)), (4_200.0, 20_000.0));
    }

    #[test]
    fn all_operations_go_into_the_recorder() {
        let window = Window { from_ns: 0, until_ns: u64::MAX };
        let mut recorder = Recorder::new(window, 1);
        throttled().record(0, &mut recorder);
        recorder.take_second(0);
        let total = recorder.total();
        assert_eq!((total.counts.completed, total.counts.bytes_in), (10_000, 40_960_000));
        assert!(total.clocks.response.quantile_us(0.99) >= 60_000);
    }

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        assert!(parse("no such thing", Pattern::Read, Duration::ZERO).is_err());
        let failed = r#"{"jobs":[]}"#;
        assert!(parse(failed, Pattern::Read, Duration::ZERO).unwrap_err().to_string().contains("no job"));
    }
}

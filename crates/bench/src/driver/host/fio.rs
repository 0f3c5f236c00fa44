//! Disks, measured by fio: its command, its answer, and what the answer means.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::recorder::{Operation, Recorder};
use crate::result::Distribution;
use crate::statistics::{bimodal, little};

/// Name of the test file; it is removed afterwards.
const FILE: &str = "tacho-bench-disk";
const POLL: Duration = Duration::from_millis(50);
/// A device is at its quota when it comes so near to it.
const QUOTA_NEAR: f64 = 0.1;

/// One fio job: the driver's part of `[[operation]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// fio's `rw`: randwrite, randread, write or read.
    pub rw: Pattern,
    /// Size of a block, such as 4k or 1024k.
    pub block: String,
    /// Operations the device has at a time.
    pub depth: u32,
    /// Size of the file, such as 1g.
    #[serde(default = "gigabyte")]
    pub size: String,
    /// fio's `ioengine`.
    #[serde(default = "libaio")]
    pub engine: String,
    /// Goes around the page cache.
    #[serde(default = "yes")]
    pub direct: bool,
}

/// fio's `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Blocks in random order are written.
    RandWrite,
    /// Blocks in random order are read.
    RandRead,
    /// The file is written from its beginning.
    Write,
    /// The file is read from its beginning.
    Read,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Self::RandWrite => "randwrite",
            Self::RandRead => "randread",
            Self::Write => "write",
            Self::Read => "read",
        }
    }

    fn is_write(self) -> bool {
        matches!(self, Self::RandWrite | Self::Write)
    }
}

fn gigabyte() -> String {
    "1g".to_owned()
}
fn libaio() -> String {
    "libaio".to_owned()
}
fn yes() -> bool {
    true
}

impl Job {
    /// What is wrong with the values.
    pub fn check(&self) -> std::result::Result<(), String> {
        let is_size = |text: &str| {
            let digits = text.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']);
            digits.parse::<u64>().is_ok_and(|number| number > 0) && text.len() - digits.len() <= 1
        };
        for (name, text) in [("block", &self.block), ("size", &self.size)] {
            if !is_size(text) {
                return Err(format!("`{name}` is `{text}`; write it like 4k, 1024k or 1g"));
            }
        }
        if !(1..=65_536).contains(&self.depth) {
            return Err(format!("`depth` is {}; 1 to 65536 are possible", self.depth));
        }
        if !self.engine.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`engine` is `{}`; it is one of fio's, such as libaio or io_uring",
                self.engine
            ));
        }
        Ok(())
    }

    /// The arguments of fio. Without a time the job ends when the whole file was gone through, as in the article.
    pub fn arguments(&self, file: &Path, time: Option<Duration>) -> Vec<String> {
        let mut arguments = vec![
            "--name=tacho".to_owned(),
            format!("--filename={}", file.display()),
            format!("--direct={}", u8::from(self.direct)),
            format!("--ioengine={}", self.engine),
            format!("--rw={}", self.rw.name()),
            format!("--bs={}", self.block),
            format!("--size={}", self.size),
            format!("--iodepth={}", self.depth),
            "--numjobs=1".to_owned(),
            "--group_reporting".to_owned(),
            "--output-format=json+".to_owned(),
        ];
        if let Some(time) = time {
            arguments.push(format!("--runtime={}", time.as_secs().max(1)));
            arguments.push("--time_based".to_owned());
        }
        arguments
    }
}

/// Whether fio is there, and which.
pub fn version() -> Result<String> {
    let missing = "fio is not installed; it measures disks here: apt-get install fio";
    let out =
        Command::new("fio").arg("--version").output().map_err(|_| Error::Options(missing.to_owned()))?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// What fio measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Operations.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// Submission to completion.
    pub latency: Distribution,
    /// Mean of it, microseconds.
    pub latency_mean_us: f64,
    /// Mean time of the submission itself, microseconds.
    pub submit_mean_us: f64,
    /// How busy the device was, percent; `None` when fio does not know it.
    pub busy_percent: Option<f64>,
}

/// Runs a job in a directory. The file is removed afterwards, whatever happens.
pub fn run(
    job: &Job,
    directory: &Path,
    time: Option<Duration>,
    shared: &Shared,
    tick: &mut dyn FnMut(),
) -> Result<Measured> {
    // fio would make it and leave it behind.
    if !directory.is_dir() {
        return Err(Error::Options(format!(
            "{} is no directory; name one on the disk to measure",
            directory.display()
        )));
    }
    let file = TestFile(directory.join(format!("{FILE}-{}", std::process::id())));
    let began = Instant::now();
    let mut child = Command::new("fio")
        .args(job.arguments(&file.0, time))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::Options(format!("fio cannot be started ({error}); apt-get install fio")))?;
    let collect = |stream: Option<Box<dyn std::io::Read + Send>>| {
        thread::spawn(move || {
            let mut text = String::new();
            // What cannot be read is missing from the answer, which says so.
            let _ = stream.map(|mut stream| stream.read_to_string(&mut text));
            text
        })
    };
    let out = collect(child.stdout.take().map(|s| Box::new(s) as Box<_>));
    let err = collect(child.stderr.take().map(|s| Box::new(s) as Box<_>));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Error::io("waiting for fio"))? {
            break status;
        }
        if shared.is_stopped() {
            child.kill().map_err(Error::io("stopping fio"))?;
        }
        thread::sleep(POLL);
        tick();
    };
    let text = out.join().expect("BUG: reading fio's answer panicked");
    let errors = err.join().expect("BUG: reading fio's errors panicked");
    if !status.success() {
        if shared.is_stopped() {
            return Err(Error::Stopped);
        }
        return Err(Error::Options(format!(
            "fio ended with {status} in {}: {}. A file system without O_DIRECT, such as tmpfs, cannot be measured with \
             direct = true; choose another directory",
            directory.display(),
            errors.trim()
        )));
    }
    parse(&text, job.rw, began.elapsed())
}

struct TestFile(PathBuf);

impl Drop for TestFile {
    fn drop(&mut self) {
        // fio that failed may not have made it.
        let _ = std::fs::remove_file(&self.0);
    }
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

/// Reads fio's JSON. Its histogram has steps of up to 0.8 %, so have the latencies here.
fn parse(text: &str, rw: Pattern, took: Duration) -> Result<Measured> {
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
        let nanos: u64 = nanos.parse().map_err(|_| wrong(format!("`{nanos}` is no time")))?;
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
    /// Enters all operations into a recorder. fio says when none of them was, so they are spread evenly.
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

    /// What the figures say about the disk, in sentences.
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

/// Operations per second the article's cloud allows a disk: 1200 and 30 for each GiB, 20,000 at most.
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
    use crate::recorder::Window;

    fn job() -> Job {
        toml::from_str("rw = 'randwrite'\nblock = '4k'\ndepth = 128").unwrap()
    }

    #[test]
    fn commands_are_those_of_the_article() {
        let line = job().arguments(Path::new("/d/f"), None).join(" ");
        for part in [
            "--direct=1",
            "--ioengine=libaio",
            "--rw=randwrite",
            "--bs=4k",
            "--size=1g",
            "--iodepth=128",
            "--numjobs=1",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("time_based"));
        let timed = job().arguments(Path::new("/d/f"), Some(Duration::from_secs(9))).join(" ");
        assert!(timed.contains("--runtime=9 --time_based"), "{timed}");
    }

    #[test]
    fn values_are_checked() {
        for (line, expected) in
            [("block = '4kk'", "`block`"), ("depth = 0", "`depth`"), ("engine = 'a b'", "`engine`")]
        {
            let mut text = toml::Table::try_from(job()).unwrap();
            text.extend(toml::from_str::<toml::Table>(line).unwrap());
            let error = text.try_into::<Job>().unwrap().check().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        job().check().unwrap();
    }

    /// A disk at its quota: nine tenths of the operations at once, the others wait for the next tokens.
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

    #[test]
    fn a_real_job_is_measured_and_leaves_nothing() {
        if version().is_err() {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "skipped: fio (Debian package fio) is not installed");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let job: Job = toml::from_str(
            "rw = 'randread'\nblock = '4k'\ndepth = 4\nsize = '1m'\ndirect = false\nengine = 'psync'",
        )
        .unwrap();
        let measured = run(&job, directory.path(), None, &Shared::default(), &mut || ()).unwrap();
        assert_eq!((measured.operations, measured.bytes, measured.latency.samples()), (256, 1 << 20, 256));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let nowhere =
            run(&job, Path::new("/no/such/place"), None, &Shared::default(), &mut || ()).unwrap_err();
        assert!(nowhere.to_string().contains("/no/such/place"), "{nowhere}");
    }
}

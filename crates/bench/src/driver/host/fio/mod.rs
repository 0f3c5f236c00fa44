//! Disks, measured by fio: its command, its answer, and what the answer means.

mod answer;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::Shared;
use crate::error::{Error, Result};
use answer::parse;

pub use answer::{Measured, allowed_iops};

/// Name of the test file; it is removed afterwards.
const FILE: &str = "tacho-bench-disk";
const POLL: Duration = Duration::from_millis(50);

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

    /// What it does, for whoever looks on.
    pub fn in_words(&self) -> String {
        format!("{} of {} in blocks of {}, depth {}", self.rw.name(), self.size, self.block, self.depth)
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

/// Operations that fio has under way with this `ioengine` and `iodepth`. A synchronous engine has one, however deep its queue; so has
/// libaio through the page cache, for which Linux does the work when it is asked for. Others (io_uring, posixaio) have threads for that.
pub(crate) fn in_flight(engine: &str, depth: u64, direct: bool) -> u64 {
    let is_synchronous = engine.is_empty() || engine.contains("sync") || engine == "mmap";
    let waits = engine == "libaio" && !direct;
    if is_synchronous || waits { 1 } else { depth }
}

/// Whether fio is there, and which.
pub fn version() -> Result<String> {
    let missing = "fio is not installed; it measures disks here: apt-get install fio";
    let out =
        Command::new("fio").arg("--version").output().map_err(|_| Error::Options(missing.to_owned()))?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        toml::from_str("rw = 'randwrite'\nblock = '4k'\ndepth = 128").unwrap()
    }

    #[test]
    fn only_a_queue_that_is_kept_full_is_a_queue() {
        assert_eq!([in_flight("libaio", 128, true), in_flight("io_uring", 64, true)], [128, 64]);
        assert_eq!(
            [in_flight("libaio", 128, false), in_flight("psync", 128, true), in_flight("", 9, true)],
            [1; 3]
        );
        assert_eq!([in_flight("io_uring", 64, false), in_flight("posixaio", 8, false)], [64, 8]);
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

//! Measures disks with fio.

mod answer;
mod job;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use answer::parse;
use load::engine::Shared;
use load::{Error, Result};

pub use answer::{Measured, allowed_iops};
pub use job::in_flight;
pub use job::{Job, Pattern};

/// The name of the test file, which is removed afterwards.
const FILE: &str = "tacho-bench-disk";
const POLL: Duration = Duration::from_millis(50);

/// The version of fio; an error if it is not installed.
pub fn version() -> Result<String> {
    let missing = "fio is not installed; it measures disks here: apt-get install fio";
    let out =
        Command::new("fio").arg("--version").output().map_err(|_| Error::Options(missing.to_owned()))?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Runs a job in a directory. The test file is always removed afterwards.
pub fn run(
    job: &Job,
    directory: &Path,
    time: Option<Duration>,
    shared: &Shared,
    tick: &mut dyn FnMut(),
) -> Result<Measured> {
    // fio would create the directory and leave it behind.
    if !directory.is_dir() {
        return Err(Error::Options(format!(
            "{} is not a directory; name one on the disk to measure",
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
            // Text that cannot be read is missing from the output, and the parser reports it.
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
        // The file does not exist if fio failed early.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

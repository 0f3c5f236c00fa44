//! A job of fio: its parameters, their checks, and the arguments of the command.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A job of fio: the driver's keys of `[[operation]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// fio's `rw`: randwrite, randread, write or read.
    pub rw: Pattern,
    /// Size of a block, such as 4k or 1024k.
    pub block: String,
    /// The number of operations that the device has at a time.
    pub depth: u32,
    /// Size of the file, such as 1g.
    #[serde(default = "gigabyte")]
    pub size: String,
    /// fio's `ioengine`.
    #[serde(default = "libaio")]
    pub engine: String,
    /// Bypasses the page cache.
    #[serde(default = "yes")]
    pub direct: bool,
}

/// fio's `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Writes blocks in random order.
    RandWrite,
    /// Reads blocks in random order.
    RandRead,
    /// Writes the file from its start.
    Write,
    /// Reads the file from its start.
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

    pub(super) fn is_write(self) -> bool {
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
    /// Checks the values. The error names the wrong one.
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

    /// The job as text, for the progress display.
    pub fn in_words(&self) -> String {
        format!("{} of {} in blocks of {}, depth {}", self.rw.name(), self.size, self.block, self.depth)
    }

    /// The arguments of fio. Without a time the job ends after the whole file, as in the article.
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

/// The number of operations that fio has in flight with this `ioengine` and `iodepth`. A synchronous engine has one,
/// whatever its depth. So has libaio through the page cache, where Linux works synchronously. Others (io_uring,
/// posixaio) use threads.
pub fn in_flight(engine: &str, depth: u64, direct: bool) -> u64 {
    let is_synchronous = engine.is_empty() || engine.contains("sync") || engine == "mmap";
    let waits = engine == "libaio" && !direct;
    if is_synchronous || waits { 1 } else { depth }
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
}

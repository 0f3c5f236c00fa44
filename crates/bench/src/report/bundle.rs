//! The result bundle: a directory a figure can be recomputed from. `result.json`, `series.csv` (one line a second)
//! and one HdrHistogram text file per histogram.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Report, SeriesLine};
use crate::error::{Error, Result};
use crate::machine::utc_now;

/// `bench-runs/<UTC>-<scenario>`, relative to the working directory.
pub fn default_directory(scenario: &str) -> PathBuf {
    PathBuf::from("bench-runs").join(format!("{}-{scenario}", utc_now().replace(':', "")))
}

impl Report {
    /// Writes the bundle and returns its directory.
    pub fn write_bundle(&self, directory: &Path) -> Result<PathBuf> {
        write_result(self, directory)?;
        write(directory, "series.csv", &csv(&self.series))?;
        for (name, histogram) in [
            ("latency.hgrm", &self.latency_histogram),
            ("service.hgrm", &self.service_histogram),
            ("lag.hgrm", &self.lag_histogram),
        ] {
            if !histogram.is_empty() {
                write(directory, name, &histogram.to_hgrm())?;
            }
        }
        Ok(directory.to_owned())
    }
}

/// Writes what every bundle has: `result.json`, and in `summary.txt` what the terminal shows.
pub(crate) fn write_result(report: &(impl Serialize + Display), directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(Error::file(directory))?;
    let json = serde_json::to_string_pretty(report).expect("BUG: a report has only text keys");
    write(directory, "result.json", &(json + "\n"))?;
    write(directory, "summary.txt", &format!("{report}\n"))
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(Error::file(path))
}

fn csv(series: &[SeriesLine]) -> String {
    let mut text =
        String::from("second,sent,acked,errors,p50_us,p99_us,max_us,lag_p99_us,server_rss_bytes\n");
    for line in series {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            line.second,
            line.sent,
            line.acked,
            line.errors,
            line.p50_us,
            line.p99_us,
            line.max_us,
            line.lag_p99_us,
            line.server_rss_bytes
        );
    }
    text
}

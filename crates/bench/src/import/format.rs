//! The tools whose output can be imported.

use std::fmt;

/// A tool whose output can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// sysbench 1.0 or 0.5: the text of `run`, with or without `--histogram` and `--report-interval`.
    Sysbench,
    /// memtier_benchmark: the file of `--json-out-file`.
    Memtier,
    /// wrk or wrk2: the text, with `--latency`.
    Wrk,
    /// fio: `--output-format=json` or `json+`.
    Fio,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sysbench => "sysbench",
            Self::Memtier => "memtier",
            Self::Wrk => "wrk",
            Self::Fio => "fio",
        })
    }
}

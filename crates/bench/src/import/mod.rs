//! Results of other tools as bundles, so that they stand in the same page beside ours, each with what its numbers hide.
//! A bundle of another tool holds what the tool printed and no more: no start time, no machine, often no histogram.

mod fio;
mod lines;
mod memtier;
mod sysbench;
mod wrk;

use std::fmt;

use crate::result::Bundle;

/// The tools whose output is read.
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

/// A text is not what it is taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No known tool wrote it.
    #[error(
        "this is no output of sysbench, memtier (JSON), wrk, wrk2 or fio (JSON); name its format if it is one of them"
    )]
    Unknown,
    /// It lacks something.
    #[error("not a whole result of {format}: {what}")]
    Incomplete {
        /// The format it was read as.
        format: Format,
        /// What is missing.
        what: String,
    },
}

impl ImportError {
    fn incomplete(format: Format, what: impl Into<String>) -> Self {
        Self::Incomplete { format, what: what.into() }
    }
}

/// Which tool wrote a text, by marks that every output of it has.
pub fn detect(text: &str) -> Option<Format> {
    if text.contains("General statistics:") && text.contains("Threads fairness:")
        || text.starts_with("sysbench ")
    {
        Some(Format::Sysbench)
    } else if text.contains("\"ALL STATS\"") {
        Some(Format::Memtier)
    } else if text.contains("\"fio version\"") {
        Some(Format::Fio)
    } else if text.contains("Thread Stats") && text.contains("Requests/sec:") {
        Some(Format::Wrk)
    } else {
        None
    }
}

/// Reads the output of a tool; `name` becomes the scenario's name.
pub fn import(text: &str, format: Option<Format>, name: Option<&str>) -> Result<Bundle, ImportError> {
    let format = format.or_else(|| detect(text)).ok_or(ImportError::Unknown)?;
    let mut bundle = match format {
        Format::Sysbench => sysbench::read(text),
        Format::Memtier => memtier::read(text),
        Format::Wrk => wrk::read(text),
        Format::Fio => fio::read(text),
    }?;
    if let Some(name) = name {
        bundle.result.scenario.name = name.to_owned();
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&str, Format); 8] = [
        (include_str!("fixtures/sysbench.txt"), Format::Sysbench),
        (include_str!("fixtures/sysbench-rate.txt"), Format::Sysbench),
        (include_str!("fixtures/sysbench-0.5.txt"), Format::Sysbench),
        (include_str!("fixtures/memtier.json"), Format::Memtier),
        (include_str!("fixtures/wrk.txt"), Format::Wrk),
        (include_str!("fixtures/wrk2.txt"), Format::Wrk),
        (include_str!("fixtures/fio.json"), Format::Fio),
        (include_str!("fixtures/fio-plus.json"), Format::Fio),
    ];

    #[test]
    fn every_tool_is_recognised_and_says_what_it_hides() {
        for (text, format) in ALL {
            assert_eq!(detect(text), Some(format));
            let bundle = import(text, None, Some("mine")).unwrap();
            let result = &bundle.result;
            assert_eq!(result.scenario.name, "mine");
            assert!(result.hides.len() >= 3 && result.machine.is_none(), "{format}: {:?}", result.hides);
            let phase = bundle.main_phase().unwrap();
            assert!(
                phase.total.completed_per_s > 50.0 && phase.total.counts.completed > 0,
                "{format}: {phase:?}"
            );
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("bundle");
            bundle.write(&directory).unwrap();
            assert_eq!(Bundle::read(&directory).unwrap(), bundle, "{format} is read back as it is");
        }
    }

    #[test]
    fn a_cut_output_is_refused_with_what_is_missing() {
        for (text, format) in ALL {
            for share in [0.2, 0.5] {
                let cut = &text[..(text.len() as f64 * share) as usize];
                let error = import(cut, Some(format), None).unwrap_err();
                assert!(
                    error.to_string().starts_with(&format!("not a whole result of {format}: ")),
                    "{error}"
                );
            }
        }
        assert_eq!(import("hello", None, None).unwrap_err(), ImportError::Unknown);
    }
}

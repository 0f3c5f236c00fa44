//! Imports results of other tools as bundles, so that a page can show them beside ours, each with the limits of its
//! figures. Such a bundle contains only what the tool printed: no start time, no machine, often no histogram.

mod bounds;
mod error;
mod fio;
mod format;
mod lines;
mod memtier;
mod sysbench;
mod wrk;

use load::result::Bundle;

pub use error::ImportError;
pub use format::Format;

/// Recognises the tool by marks that all its outputs have.
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

/// Imports the output of a tool; `name` becomes the name of the scenario.
pub fn import(text: &str, format: Option<Format>, name: Option<&str>) -> Result<Bundle, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
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
    use proptest::prelude::*;

    use super::*;
    use crate::report::html::{LabelledBundle, page};

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

    /// Checks that an imported bundle can be shown, written and read back.
    fn is_sound(bundle: Bundle) {
        let json = serde_json::to_string(&bundle.result).unwrap();
        assert_eq!(serde_json::from_str::<load::result::RunResult>(&json).unwrap(), bundle.result, "{json}");
        assert!(!bundle.to_string().contains("NaN"), "{bundle}");
        page(&[LabelledBundle { label: "x".to_owned(), side: 0, bundle }], &[]);
    }

    /// Imports a text as each format: the result is a bundle or an error, never a panic.
    fn is_read_or_refused(text: &str) {
        for format in [Format::Sysbench, Format::Memtier, Format::Wrk, Format::Fio] {
            match import(text, Some(format), None) {
                Ok(bundle) => is_sound(bundle),
                Err(error) => assert!(error.to_string().contains(&format.to_string()), "{error}"),
            }
        }
    }

    /// Replacements for numbers in damaged files.
    const ODD: [&str; 16] = [
        "",
        "0",
        "0.00",
        "-1",
        "nan",
        "-nan",
        "inf",
        "1e400",
        "1e30",
        "99999999999999999999",
        "18446744073709551615",
        "1.2.3",
        "x",
        "null",
        "1000000000000000",
        "[]",
    ];

    /// Replaces a number of a text, by its index among all numbers.
    fn with_number(text: &str, place: usize, odd: &str) -> String {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| c.is_ascii_digit() && !text[..*at].ends_with(is_part))
            .map(|(at, _)| at)
            .collect();
        let start = starts[place % starts.len()];
        let end = text[start..].find(|c| !is_part(c)).map_or(text.len(), |length| start + length);
        format!("{}{odd}{}", &text[..start], &text[end..])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_real_output_with_an_odd_number_is_read_or_refused(
            file in 0..ALL.len(), places in prop::collection::vec((any::<usize>(), 0..ODD.len()), 1..4),
        ) {
            let (text, format) = ALL[file];
            let text = places.iter().fold(text.to_owned(), |text, (place, odd)| with_number(&text, *place, ODD[*odd]));
            if let Ok(bundle) = import(&text, Some(format), None) {
                is_sound(bundle);
            }
        }

        #[test]
        fn a_real_output_with_lines_moved_is_read_or_refused(
            file in 0..ALL.len(), (from, to, cut) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()),
        ) {
            let (text, format) = ALL[file];
            let mut lines: Vec<&str> = text.lines().collect();
            let line = lines.remove(from.index(lines.len()));
            if !cut {
                lines.insert(to.index(lines.len()), line);
            }
            if let Ok(bundle) = import(&lines.join("\n"), Some(format), None) {
                is_sound(bundle);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "Running ", " test @ ", " requests in ", " threads and ", "Requests/sec:", "Latency ", "Latency Distribution", "%", "\n",
                    "total time:", "total number of events:", "Number of threads:", "General statistics:", "Latency (ms):", "min:", "[", "s ]",
                    "tps: ", "percentile:", "Latency histogram\n", "|", "1", "0", "/", "-1", "nan", "1e9", "ms", " ", ",", "read", "B", "é",
                    "{", "}", "\"ALL STATS\"", ":", "\"jobs\"", "]",
                ]),
                0..60,
            ),
        ) {
            is_read_or_refused(&words.concat());
        }
    }

    #[test]
    fn a_mark_of_windows_and_its_line_ends_do_not_matter() {
        for (text, format) in ALL {
            let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
            assert_eq!(import(&windows, None, None), import(text, None, None), "{format}");
        }
    }
}

//! The outcome of an import, as text and as JSON: all rows and values, and everything that was skipped or changed.

use std::path::PathBuf;

use anyhow::bail;
use hub::bulk::{ImportCounts, ImportRules};
use indicatif::HumanCount;
use model::TimeRange;
use model::calendar::exact_of_micros;
use serde_json::{Value, json};

use super::csv_counts::CsvCounts;
use super::time::Unit;

/// The reaction to something that cannot be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipPolicy {
    /// The rest is imported, and the command fails.
    Default,
    /// Nothing is imported, and the command fails.
    Strict,
    /// The rest is imported, and that is a success.
    Lenient,
}

/// The outcome of one file.
#[derive(Debug, Clone, Default)]
pub struct FileOutcome {
    pub(crate) path: PathBuf,
    pub(crate) counts: ImportCounts,
    /// Counts from reading the file.
    pub(crate) seen: CsvCounts,
    /// Columns that are not imported, with the reason.
    pub(crate) skipped_columns: Vec<(String, String)>,
    /// Rows with the tags and time of an earlier one.
    pub(crate) repeated: u64,
    /// Whether there may be more of them.
    pub(crate) repeated_is_least: bool,
    /// The option that would make implausible times plausible.
    pub(crate) hint: Option<String>,
    /// The character between cells, unless it is a comma.
    pub(crate) delimiter: Option<String>,
}

impl FileOutcome {
    pub(super) fn skipped_rows(&self) -> u64 {
        self.counts.skipped()
    }

    pub(super) fn skipped_values(&self) -> u64 {
        self.counts.skipped_values() + self.seen.skipped_cells()
    }

    /// Whether everything of the file was imported.
    pub(super) fn is_whole(&self) -> bool {
        self.skipped_rows() == 0 && self.skipped_values() == 0 && self.skipped_columns.is_empty()
    }

    /// Whether every value of the file is stored exactly, as `--strict` demands. Local times that came twice do not matter,
    /// because an option gives their meaning.
    pub fn is_exact(&self) -> bool {
        self.is_whole() && self.repeated + self.cut_times() + self.rounded() == 0
    }

    /// Rows whose time is empty.
    fn without_time(&self) -> u64 {
        self.counts.without_time.saturating_sub(self.seen.times.left_out())
    }

    fn clock_changes(&self) -> u64 {
        self.counts.clock_changes + self.seen.times.clock_changes
    }

    fn cut_times(&self) -> u64 {
        self.counts.cut_times + self.seen.times.cut
    }

    fn rounded(&self) -> u64 {
        self.counts.rounded + self.seen.rounded
    }

    /// The lines of a report. `stored` indicates whether the rows were imported or only examined.
    pub fn text(&self, rules: &ImportRules, stored: bool) -> String {
        let counts = &self.counts;
        let mut lines = vec![format!(
            "{}: {} rows with {} values {}",
            self.path.display(),
            HumanCount(counts.rows),
            HumanCount(counts.values),
            if stored { "imported" } else { "can be imported" },
        )];
        if let Some(delimiter) = &self.delimiter {
            lines.push(format!("  {delimiter} is between cells"));
        }
        lines.extend(self.skipped_row_lines(rules));
        lines.extend(self.skipped_value_lines());
        for (column, reason) in &self.skipped_columns {
            lines.push(format!("  skipped: the column {column:?}: {reason}"));
        }
        lines.extend(self.notes());
        lines.join("\n")
    }

    fn skipped_row_lines(&self, rules: &ImportRules) -> Vec<String> {
        let counts = &self.counts;
        let because =
            |reason: &Option<String>| reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        let times = &self.seen.times;
        let reasons = [
            (self.without_time(), "have no time".to_owned()),
            (times.bad, format!("have a time that is not understood{}", because(&times.first_bad))),
            (
                self.clock_changes(),
                format!(
                    "have a local time that came twice or never{}; --clock-change earlier or later takes them",
                    because(&times.first_clock_change)
                ),
            ),
            (counts.without_value, "have no value".to_owned()),
            (counts.time_out_of_range, cannot_be_kept()),
            (counts.implausible, self.implausible(rules)),
            (counts.too_old, "are older than their table keeps rows".to_owned()),
            (counts.bad_tags, format!("have tags that are refused{}", because(&counts.bad_tags_reason))),
            (counts.bad_lines, format!("are not understood{}", because(&counts.bad_lines_reason))),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        reasons.map(|(count, reason)| format!("  skipped: {} rows {reason}", HumanCount(count))).collect()
    }

    fn implausible(&self, rules: &ImportRules) -> String {
        let (start, end) = (rules.plausible.start.micros(), rules.plausible.end.micros());
        let first =
            self.counts.first_implausible_us.map(|us| format!(" (the first: {})", exact_of_micros(us)));
        let advice = match &self.hint {
            Some(option) => format!("they would be in it with {option}"),
            None => "--any-time takes them as they are".to_owned(),
        };
        format!(
            "have a time outside of {} to {}, which no device may send{}; {advice}",
            exact_of_micros(start),
            exact_of_micros(end - end.rem_euclid(1_000_000)),
            first.unwrap_or_default()
        )
    }

    fn skipped_value_lines(&self) -> Vec<String> {
        let reasons = [
            (self.counts.too_large, "whole numbers beyond 63 bits"),
            (self.counts.too_long, "texts that are too long"),
            (self.seen.not_finite, "cells of columns of numbers that are not a number (NaN, inf)"),
            (self.seen.unnamed, "cells of columns without a name"),
            (self.seen.beyond, "cells beyond the last column"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let line = |(count, reason): (u64, &str)| {
            format!("  skipped: {} {reason}; the other values of their rows were taken", HumanCount(count))
        };
        reasons.map(line).collect()
    }

    /// Values that were changed.
    fn notes(&self) -> Vec<String> {
        let least = if self.repeated_is_least { "at least " } else { "" };
        let counted = [
            (
                self.repeated,
                format!(
                    "{least}{} rows share tags and time with an earlier row of this file; where both have a value the later one stays",
                    HumanCount(self.repeated)
                ),
            ),
            (
                self.seen.times.chosen,
                format!(
                    "{} local times came twice or never; they were taken as --clock-change says",
                    HumanCount(self.seen.times.chosen)
                ),
            ),
            (
                self.cut_times(),
                format!("{} times were cut to whole microseconds", HumanCount(self.cut_times())),
            ),
            (
                self.rounded(),
                format!(
                    "{} numbers have more digits than a floating-point number keeps and were rounded",
                    HumanCount(self.rounded())
                ),
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, line)| line);
        let texts = self.seen.texts.iter().map(|(column, cell, line)| {
            format!("the column {column:?} is text, because {cell:?} in line {line} is not a number")
        });
        counted.chain(texts).map(|line| format!("  note: {line}")).collect()
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let counts = &self.counts;
        let columns = self.skipped_columns.iter();
        let columns: Vec<Value> =
            columns.map(|(name, reason)| json!({ "column": name, "reason": reason })).collect();
        json!({
            "file": self.path.to_string_lossy(),
            "rows": counts.rows,
            "values": counts.values,
            "skippedRows": self.skipped_rows(),
            "skippedValues": self.skipped_values(),
            "skippedColumns": columns,
            "withoutTime": self.without_time(),
            "badTimes": self.seen.times.bad,
            "badTimesReason": self.seen.times.first_bad,
            "clockChanges": self.clock_changes(),
            "clockChangesReason": self.seen.times.first_clock_change,
            "chosenTimes": self.seen.times.chosen,
            "withoutValue": counts.without_value,
            "timeOutOfRange": counts.time_out_of_range,
            "implausible": counts.implausible,
            "firstImplausibleUs": counts.first_implausible_us,
            "tooOld": counts.too_old,
            "badTags": counts.bad_tags,
            "badTagsReason": counts.bad_tags_reason,
            "badLines": counts.bad_lines,
            "badLinesReason": counts.bad_lines_reason,
            "tooLarge": counts.too_large,
            "tooLong": counts.too_long,
            "notFinite": self.seen.not_finite,
            "unnamed": self.seen.unnamed,
            "beyond": self.seen.beyond,
            "repeated": self.repeated,
            "cutTimes": self.cut_times(),
            "rounded": self.rounded(),
        })
    }
}

/// The option that would make a time plausible: numbers of another unit.
pub(super) fn hint(first_us: Option<i64>, unit: Unit, rules: &ImportRules, option: &str) -> Option<String> {
    let number = i64::try_from(unit.number(first_us?)).ok()?;
    let fits = |other: &(Unit, &str)| {
        let time = other.0.time(number);
        time.is_ok_and(|time| rules.plausible.contains(model::Timestamp::from_micros(time.micros)))
    };
    let (_, name) = Unit::ALL.into_iter().find(fits)?;
    Some(format!("{option} {name}"))
}

/// The sums over all files: rows, values, skipped rows, skipped values.
pub fn totals(files: &[FileOutcome]) -> [u64; 4] {
    files.iter().fold([0; 4], |[rows, values, skipped, lost], file| {
        [
            rows + file.counts.rows,
            values + file.counts.values,
            skipped + file.skipped_rows(),
            lost + file.skipped_values(),
        ]
    })
}

/// Fails when something was skipped, unless `--lenient` allows it.
pub fn verdict(outcomes: &[FileOutcome], skip_policy: SkipPolicy) -> anyhow::Result<()> {
    if skip_policy == SkipPolicy::Lenient || outcomes.iter().all(FileOutcome::is_whole) {
        return Ok(());
    }
    let [_, _, rows, values] = totals(outcomes);
    let columns: usize = outcomes.iter().map(|file| file.skipped_columns.len()).sum();
    let what = [(rows, "rows"), (values, "values"), (columns as u64, "columns")];
    let what = what.into_iter().filter(|(count, _)| *count > 0);
    let what: Vec<String> = what.map(|(count, name)| format!("{} {name}", HumanCount(count))).collect();
    bail!(
        "{} were skipped, the rest was imported (--lenient makes that a success, --strict imports nothing then)",
        what.join(" and ")
    )
}

/// The text about times outside of the range of a table. A range excludes its end, so the largest number is outside.
fn cannot_be_kept() -> String {
    let TimeRange { start, end } = TimeRange::ALL;
    format!(
        "have a time that cannot be kept: the range is {} to {} us since 1970",
        start.micros(),
        end.micros() - 1
    )
}

#[cfg(test)]
mod tests {
    use model::limits::IngestLimits;

    use super::*;
    use crate::time::TimeCounts;

    #[test]
    fn the_option_that_makes_a_time_plausible_is_found() {
        let now = model::Timestamp::from_micros(1_732_540_000_000_000);
        let rules = ImportRules::of(&IngestLimits::default(), now, false);
        let precision = |number: i64, unit: Unit| {
            let micros = unit.time(number).unwrap().micros;
            hint(Some(micros), unit, &rules, "--precision")
        };
        assert_eq!(precision(1_714_550_400_000, Unit::Nanoseconds).as_deref(), Some("--precision ms"));
        assert_eq!(precision(1_714_550_400, Unit::Nanoseconds).as_deref(), Some("--precision s"));
        assert_eq!(precision(1_714_550_400_000, Unit::Seconds).as_deref(), Some("--precision ms"));
        assert_eq!(precision(5_000_000, Unit::Nanoseconds), None);
    }

    #[test]
    fn a_report_names_skipped_and_changed_values() {
        let counts = ImportCounts {
            rows: 5,
            values: 7,
            without_time: 4,
            implausible: 2,
            first_implausible_us: Some(0),
            too_large: 1,
            cut_times: 4,
            ..ImportCounts::default()
        };
        let times = TimeCounts {
            bad: 1,
            first_bad: Some("line 2: no".into()),
            clock_changes: 1,
            first_clock_change: Some("line 3: twice".into()),
            chosen: 8,
            ..TimeCounts::default()
        };
        let seen = CsvCounts { times, ..CsvCounts::default() };
        let outcome = FileOutcome {
            path: "a.csv".into(),
            counts,
            seen,
            repeated: 6,
            skipped_columns: vec![("x".into(), "bytes".into())],
            ..FileOutcome::default()
        };
        let now = model::Timestamp::from_micros(1_732_540_000_000_000);
        let text = outcome.text(&ImportRules::of(&IngestLimits::default(), now, false), true);
        for part in [
            "a.csv: 5 rows with 7 values imported",
            "skipped: 2 rows have no time",
            "skipped: 1 rows have a time that is not understood (line 2: no)",
            "skipped: 1 rows have a local time that came twice or never (line 3: twice); --clock-change",
            "note: 8 local times came twice or never; they were taken as",
            "skipped: 2 rows have a time outside of 1971-01-01T00:00:00Z to 2024-12-02T13:06:40Z",
            "the first: 1970-01-01T00:00:00Z",
            "--any-time takes them",
            "skipped: 1 whole numbers beyond 63 bits",
            "skipped: the column \"x\": bytes",
            "note: 6 rows share tags and time",
            "note: 4 times were cut",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!outcome.is_whole());
        assert_eq!(totals(&[outcome.clone(), outcome]), [10, 14, 12, 2]);
        assert!(FileOutcome { repeated: 1, ..FileOutcome::default() }.is_whole());
        assert!(!FileOutcome { repeated: 1, ..FileOutcome::default() }.is_exact());
        let rounded = ImportCounts { rounded: 1, ..ImportCounts::default() };
        assert!(!FileOutcome { counts: rounded, ..FileOutcome::default() }.is_exact());
    }
}

//! The report of an import of devices' data.

use hub::bulk::{ImportCounts, ImportRules};

use super::plan::FilePlan;
use super::rows::Rows;
use crate::csv_counts::CsvCounts;
use crate::csv_file::delimiter_name;
use crate::outcome::FileOutcome;

/// The outcome of a file that was read to the end: the rows and cells that were left out.
pub(super) fn outcome(file: &FilePlan, rows: &Rows) -> FileOutcome {
    let cells = &rows.cells;
    let counts = ImportCounts {
        without_time: rows.times.left_out(),
        without_value: cells.rows_without_values,
        bad_tags: cells.without_device,
        bad_tags_reason: (cells.without_device > 0).then(|| "the cell with the device is empty".to_owned()),
        ..ImportCounts::default()
    };
    let seen = CsvCounts {
        times: rows.times.clone(),
        not_finite: cells.not_finite,
        unnamed: cells.unnamed,
        beyond: cells.beyond,
        rounded: cells.rounded,
        ..CsvCounts::default()
    };
    let delimiter = (file.delimiter != b',').then(|| delimiter_name(file.delimiter));
    FileOutcome { path: file.path.clone(), counts, seen, delimiter, ..FileOutcome::default() }
}

/// The lines about one file.
pub fn text(file: &FilePlan, outcome: &FileOutcome, rules: &ImportRules, stored: bool) -> String {
    let mut lines = vec![outcome.text(rules, stored)];
    if file.cells.texts > 0 {
        lines.push(format!("  {} of the cells are text", file.cells.texts));
    }
    let units =
        file.columns.iter().filter_map(|column| Some(format!("{} in {}", column.key, column.unit.as_ref()?)));
    let units = units.collect::<Vec<_>>().join(", ");
    if !units.is_empty() {
        lines.push(format!("  units: {units}"));
    }
    if !file.unnamed.is_empty() {
        let positions: Vec<_> = file.unnamed.iter().map(|index| (index + 1).to_string()).collect();
        lines.push(format!("  the column {} has no name", positions.join(", ")));
    }
    let cells = &file.cells;
    let nothing = [
        (cells.empty, "cells"),
        (cells.missing, "cells that short rows lack"),
        (cells.trailing, "cells after a delimiter at the end of a row or in columns without a name"),
        (cells.empty_rows, "rows"),
    ];
    let nothing = nothing.into_iter().filter(|(count, _)| *count > 0);
    let nothing: Vec<String> = nothing.map(|(count, what)| format!("{count} {what}")).collect();
    if !nothing.is_empty() {
        lines.push(format!("  empty: {}", nothing.join(", ")));
    }
    lines.join("\n")
}

//! What an import did, for people: every row and every cell.

use super::plan::{Plan, shown};
use super::rows::Cells;
use super::upload::Sent;

/// The lines after an import.
pub(super) fn summary(plan: &Plan, sent: &Sent, device: &str) -> String {
    let mut lines = Vec::new();
    let mut total = Cells::default();
    for file in &plan.files {
        lines.push(format!("{}: {}", file.path.display(), counts(&file.cells)));
        let units = file
            .columns
            .iter()
            .filter_map(|column| Some(format!("{} in {}", column.key, column.unit.as_ref()?)));
        let units = units.collect::<Vec<_>>().join(", ");
        if !units.is_empty() {
            lines.push(format!("  units: {units}"));
        }
        if !file.unnamed.is_empty() {
            let positions: Vec<_> = file.unnamed.iter().map(|index| (index + 1).to_string()).collect();
            lines.push(format!("  skipped: column {} has no name", positions.join(", ")));
        }
        lines.extend(skipped(&file.cells).map(|skipped| format!("  skipped: {skipped}")));
        total.add(&file.cells);
    }
    if plan.files.len() > 1 {
        lines.push(format!("total: {}", counts(&total)));
        lines.extend(skipped(&total).map(|skipped| format!("  skipped: {skipped}")));
    }
    if sent.repeated_times > 0 {
        lines.push(format!(
            "{} rows have the time of an earlier row and were merged into it",
            sent.repeated_times
        ));
    }
    if sent.repetitions > 0 {
        lines.push(format!("{} requests were repeated because the server was busy", sent.repetitions));
    }
    if sent.values == 0 {
        lines.push("nothing to send: no row has a value".into());
        return lines.join("\n");
    }
    let seconds = sent.duration.as_secs_f64().max(1e-3);
    lines.push(format!(
        "acknowledged as \"{device}\": {} rows and {} values from {} to {}, in {seconds:.2} s ({:.0} rows/s)",
        sent.rows,
        sent.values,
        shown(sent.first_ms),
        shown(sent.last_ms),
        sent.rows as f64 / seconds,
    ));
    lines.join("\n")
}

fn counts(cells: &Cells) -> String {
    let texts = if cells.texts > 0 { format!(", {} of them text", cells.texts) } else { String::new() };
    format!("{} rows, {} values{texts}", cells.rows, cells.values)
}

/// What did not become a value, and why.
fn skipped(cells: &Cells) -> impl Iterator<Item = String> {
    let reasons = [
        (cells.empty, "empty cells"),
        (cells.missing, "cells that short rows lack"),
        (cells.unnamed, "cells of columns without a name"),
        (cells.beyond, "cells beyond the last column"),
        (cells.trailing, "empty cells after a comma at the end of a row"),
        (cells.rows_without_values, "rows without a value"),
    ];
    reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, reason)| format!("{count} {reason}"))
}

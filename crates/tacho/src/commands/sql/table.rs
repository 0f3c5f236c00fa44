//! Shows answers as tables.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Row};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;

use super::source::Answer;
use crate::limits::TABLE_BYTES_MAX;

/// Length of the line above a record without a terminal.
const RECORD_HEAD_COLUMNS: u16 = 40;

/// When rows are shown one below the other, with a line for each column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expanded {
    /// Always
    On,
    /// Never: cells that do not fit the terminal are cut short
    Off,
    /// When the table is wider than the terminal
    #[default]
    Auto,
}

/// An answer, read from JSON.
#[derive(Debug, Deserialize)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    error: Option<Failure>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Failure {
    message: String,
}

impl Table {
    /// Reads an answer completely.
    pub(super) async fn read(answer: Answer) -> anyhow::Result<Self> {
        Self::parse(&whole(answer).await?)
    }

    fn parse(json: &[u8]) -> anyhow::Result<Self> {
        let table: Self =
            serde_json::from_slice(json).context("the answer is not the JSON that it should be")?;
        match table.error {
            Some(Failure { message }) => bail!("{message}"),
            None => Ok(table),
        }
    }

    /// The cells of a column, as texts.
    pub(super) fn texts(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.get(column)?.as_str())
    }

    /// The answer for a terminal of `width` columns; `None` means that there is no terminal.
    pub(super) fn shown(&self, expanded: Expanded, width: Option<u16>) -> String {
        match (expanded, width) {
            (Expanded::On, _) => self.records(width),
            (Expanded::Off, _) | (Expanded::Auto, None) => self.lines(width),
            (Expanded::Auto, Some(columns)) => {
                let whole = self.lines(None);
                // Each character of the line at the top is one column wide.
                let fits = whole.lines().next().unwrap_or_default().chars().count() <= usize::from(columns);
                if fits { whole } else { self.records(width) }
            }
        }
    }

    /// Row by row, a line for each column. Nothing is cut short.
    fn records(&self, width: Option<u16>) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| printable(&column.name)).collect();
        let name_width = names.iter().map(|name| columns_of(name)).max().unwrap_or_default();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let head = format!("─[ {} ]", number + 1);
            let rest = usize::from(width.unwrap_or(RECORD_HEAD_COLUMNS)).saturating_sub(head.chars().count());
            text.push_str(&format!("{head}{}\n", "─".repeat(rest)));
            for (name, value) in names.iter().zip(row) {
                let pad = " ".repeat(name_width - columns_of(name));
                text.push_str(format!("{name}{pad} │ {}", cell(value)).trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// The table, in lines of at most `width` columns. Cells that do not fit are cut short.
    pub(super) fn lines(&self, width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        match width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.set_header(one_line(self.columns.iter().map(|column| printable(&column.name))));
        for row in &self.rows {
            table.add_row(one_line(row.iter().map(cell)));
        }
        for (index, column) in self.columns.iter().enumerate() {
            if matches!(column.kind.as_str(), "i64" | "u64" | "f64" | "decimal")
                && let Some(column) = table.column_mut(index)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if self.columns.is_empty() { String::new() } else { format!("{table}\n") }
    }

    /// The number of rows, and the time if it is given.
    pub(super) fn footer(&self, time: Option<Duration>) -> String {
        let rows = match self.rows.len() {
            1 => "1 row".into(),
            more => format!("{more} rows"),
        };
        match time {
            Some(time) => format!("{rows} in {:.1} ms", time.as_secs_f64() * 1_000.0),
            None => rows,
        }
    }
}

fn one_line(cells: impl Iterator<Item = impl ToString>) -> Row {
    let mut row = Row::from(cells.map(|cell| cell.to_string()).collect::<Vec<_>>());
    row.max_height(1);
    row
}

fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => printable(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The text with control characters escaped, so that it cannot move the cursor or change the terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Columns that a text takes on a terminal.
fn columns_of(text: &str) -> usize {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).add_row([text]);
    table.column_max_content_widths().first().map_or(0, |width| usize::from(*width))
}

/// Reads an answer in JSON completely. Fails if it is too long for a table.
async fn whole(mut answer: Answer) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > TABLE_BYTES_MAX {
            let limit = TABLE_BYTES_MAX / (1024 * 1024);
            bail!(
                "the answer has more than {limit} MiB, too much for a table; add LIMIT, or use --format csv"
            );
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(json: &str) -> Table {
        Table::parse(json.as_bytes()).unwrap()
    }

    const ANSWER: &str = r#"{"columns":[{"name":"device","type":"string"},{"name":"speed","type":"f64"}],
        "rows":[["truck 7",52.5],["Lkw ä",null],["a\nb",-1]],"row_count":3}"#;

    #[test]
    fn numbers_are_right_aligned_and_control_characters_are_shown() {
        let lines = table(ANSWER).lines(None);
        let expected = "\
┌─────────┬───────┐
│ device  ┆ speed │
╞═════════╪═══════╡
│ truck 7 ┆  52.5 │
│ Lkw ä   ┆       │
│ a\\nb    ┆    -1 │
└─────────┴───────┘
";
        assert_eq!(lines, expected);
        assert_eq!(table(ANSWER).footer(None), "3 rows");
        assert_eq!(table(ANSWER).footer(Some(Duration::from_micros(12_340))), "3 rows in 12.3 ms");
    }

    #[test]
    fn a_table_wider_than_the_terminal_is_shown_row_by_row() {
        let expected = "\
─[ 1 ]──────────
device │ truck 7
speed  │ 52.5
─[ 2 ]──────────
device │ Lkw ä
speed  │
─[ 3 ]──────────
device │ a\\nb
speed  │ -1
";
        let table = table(ANSWER);
        assert_eq!(table.shown(Expanded::Auto, Some(16)), expected);
        assert_eq!(table.shown(Expanded::On, Some(16)), expected);
        for (expanded, width) in [(Expanded::Auto, Some(19)), (Expanded::Auto, None), (Expanded::Off, None)] {
            assert_eq!(table.shown(expanded, width), table.lines(None));
        }
        assert!(table.shown(Expanded::On, None).starts_with("─[ 1 ]─"));
        assert!(table.shown(Expanded::Off, Some(16)).contains('…'));
    }

    #[test]
    fn wide_tables_are_cut_to_the_terminal() {
        let text = "x".repeat(500);
        let json = format!(
            r#"{{"columns":[{{"name":"a","type":"string"}},{{"name":"b","type":"i64"}}],"rows":[["{text}",1]]}}"#
        );
        let lines = table(&json).lines(Some(40));
        assert!(lines.lines().all(|line| line.chars().count() <= 40), "{lines}");
        assert_eq!(lines.lines().count(), 5, "{lines}");
        assert!(lines.contains('…'), "{lines}");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let lines =
            table(r#"{"columns":[{"name":"n","type":"string"}],"rows":[["東京"],["abcd"]]}"#).lines(None);
        assert!(lines.contains("│ 東京 │") && lines.contains("│ abcd │"), "{lines}");
    }

    #[test]
    fn an_answer_with_a_late_error_is_an_error() {
        let json = r#"{"columns":[],"rows":[],"error":{"status":422,"message":"too slow"}}"#;
        assert_eq!(Table::parse(json.as_bytes()).unwrap_err().to_string(), "too slow");
    }
}

//! Columns with the names and tags of the rows, for readers without the catalog of the store. (For the store `__series` has
//! the number of the series.) Their cost depends on the number of series, not on the number of rows.

use parquet::errors::Result;

use super::context::{TableNames, WriteContext};
use super::encode::runs::write_text_runs;
use super::group::GroupWriter;

/// One text for each run of rows, in one buffer.
struct RunTexts {
    text: String,
    /// The position of the text of a run, if it has one, and the row at which the run ends.
    runs: Vec<(Option<(usize, usize)>, usize)>,
}

impl RunTexts {
    fn new() -> Self {
        Self { text: String::new(), runs: Vec::new() }
    }

    /// Adds a run with the text that was appended since `start`.
    fn push(&mut self, start: usize, end: usize) {
        self.runs.push((Some((start, self.text.len())), end));
    }

    fn write(&self, group: &mut GroupWriter<'_, '_>) -> Result<()> {
        let text = |position: (usize, usize)| &self.text[position.0..position.1];
        let runs: Vec<(Option<&str>, usize)> =
            self.runs.iter().map(|(position, end)| (position.map(text), *end)).collect();
        group.append(|shape| write_text_runs(&runs, shape.descriptor, shape.compressor, shape.page_rows))
    }
}

/// Writes the tag columns of a wide part.
pub(crate) fn write_tags(
    tags: usize,
    series: &[(u32, usize)],
    context: &dyn WriteContext,
    group: &mut GroupWriter<'_, '_>,
) -> Result<()> {
    let mut columns: Vec<RunTexts> = (0..tags).map(|_| RunTexts::new()).collect();
    let numbers: Vec<u32> = series.iter().map(|run| run.0).collect();
    let mut ends = series.iter().map(|run| run.1);
    let mut found: Vec<Option<(usize, usize)>> = vec![None; tags];
    context.tags(&numbers, &mut |tag| match tag {
        // A tag that is newer than the schema belongs to a series without rows in this part.
        Some((tag, value)) => {
            if let Some(column) = columns.get_mut(tag as usize) {
                let start = column.text.len();
                column.text.push_str(value);
                found[tag as usize] = Some((start, column.text.len()));
            }
        }
        None => {
            let end = ends.next().unwrap_or_default();
            let positions = found.iter_mut().map(Option::take);
            columns
                .iter_mut()
                .zip(positions)
                .for_each(|(column, position)| column.runs.push((position, end)));
        }
    });
    columns.iter().try_for_each(|column| column.write(group))
}

/// Writes the columns `table`, `tags` and `field` of a narrow part. The tags are a JSON object.
pub(crate) fn write_narrow_names(
    tables: &[(u32, usize)],
    series: &[(u32, usize)],
    context: &dyn WriteContext,
    group: &mut GroupWriter<'_, '_>,
) -> Result<()> {
    let (mut names, mut fields, mut tags) = (RunTexts::new(), RunTexts::new(), RunTexts::new());
    let mut from = 0;
    for (table, end) in tables {
        let definitions = context.table(*table);
        for (column, name) in [(&mut names, &definitions.name), (&mut fields, &definitions.field)] {
            let start = column.text.len();
            column.text.push_str(name);
            column.push(start, *end);
        }
        let count = series[from..].partition_point(|run| run.1 <= *end);
        push_tags(&mut tags, &definitions, &series[from..from + count], context);
        from += count;
    }
    names.write(group)?;
    tags.write(group)?;
    fields.write(group)
}

fn push_tags(out: &mut RunTexts, table: &TableNames, series: &[(u32, usize)], context: &dyn WriteContext) {
    let numbers: Vec<u32> = series.iter().map(|run| run.0).collect();
    let names: Vec<String> = table.tags.iter().map(|name| json_name(name)).collect();
    let mut ends = series.iter().map(|run| run.1);
    let mut start = out.text.len();
    context.tags(&numbers, &mut |tag| match tag {
        Some((tag, value)) => {
            out.text.push(if out.text.len() == start { '{' } else { ',' });
            out.text.push_str(names.get(tag as usize).map_or("\"\":", AsRef::as_ref));
            put_json_text(&mut out.text, value);
        }
        None => {
            out.text.push_str(if out.text.len() == start { "{}" } else { "}" });
            out.push(start, ends.next().unwrap_or_default());
            start = out.text.len();
        }
    });
}

/// A JSON name with the colon before its value.
fn json_name(name: &str) -> String {
    let mut out = String::new();
    put_json_text(&mut out, name);
    out.push(':');
    out
}

fn put_json_text(out: &mut String, text: &str) {
    let is_plain = |byte: &u8| *byte >= b' ' && *byte != b'"' && *byte != b'\\';
    out.push('"');
    if text.as_bytes().iter().all(is_plain) {
        out.push_str(text);
    } else {
        text.chars().for_each(|character| put_escaped(out, character));
    }
    out.push('"');
}

#[cold]
fn put_escaped(out: &mut String, character: char) {
    match character {
        '"' | '\\' => {
            out.push('\\');
            out.push(character);
        }
        '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", character as u32)),
        _ => out.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_is_escaped() {
        let mut out = String::new();
        put_json_text(&mut out, "a\"b\\c\nü");
        assert_eq!(out, r#""a\"b\\c\u000aü""#);
    }
}

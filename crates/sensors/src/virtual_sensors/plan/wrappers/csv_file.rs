//! The wrapper `csv`: a file whose lines are elements.

use super::predicates::Predicates;
use super::time_pattern::TimePattern;
use super::time_zone::TimeZone;
use crate::virtual_sensors::descriptor::{DataType, Pair};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::FIELDS_MAX;

/// Milliseconds between two looks at a file, as in GSN.
const SAMPLING_MS: u64 = 10_000;

/// A file whose lines are elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFile {
    /// The file, as the descriptor names it.
    pub file: String,
    /// The columns in their order; empty if the descriptor does not say them. Neighbours of one name that are times are read as one
    /// time.
    pub columns: Vec<CsvColumn>,
    /// What is between two columns.
    pub separator: char,
    /// What surrounds a text that has separators.
    pub quote: char,
    /// Lines at the beginning of the file that are not elements.
    pub skip_first_lines: u64,
    /// The zone of times that say none.
    pub zone: TimeZone,
    /// Texts that stand for no value, in lower case.
    pub bad_values: Vec<String>,
    /// Milliseconds between two looks at the file.
    pub sampling_ms: u64,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumn {
    /// The name of the field, in lower case.
    pub name: String,
    /// What its texts are.
    pub format: CsvFormat,
}

/// What the texts of a column are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvFormat {
    Number,
    /// Whole numbers.
    Integer,
    Text,
    Time {
        /// Their form, without blanks around it.
        pattern: String,
        /// Whether a text that is shorter than the pattern has zeros before it (`timestampl`).
        is_padded: bool,
    },
}

impl CsvFile {
    /// Whether a column has the times of the elements.
    pub fn has_times(&self) -> bool {
        self.columns.iter().any(|column| column.name == "timed")
    }

    pub(super) fn parse(predicates: &mut Predicates<'_>, notes: &mut Vec<Note>) -> Result<Self, Fault> {
        let file = predicates.needed("file")?;
        let columns = columns(predicates)?;
        let separator = predicates.character("separator", ',')?;
        let quote = predicates.character("quote", '"')?;
        let skip_first_lines = predicates.integer("skip-first-lines", 0, i64::from(u32::MAX))?;
        let zone = match predicates.optional("timezone") {
            None => TimeZone::UTC,
            Some(text) => TimeZone::parse(&text).ok_or_else(|| {
                let reason = format!(
                    "{text:?} is not a zone; write a name such as Europe/Zurich, or an offset such as +01:00"
                );
                predicates.invalid("timezone", reason)
            })?,
        };
        let bad_values = predicates.optional("bad-values").unwrap_or_default();
        let bad_values = bad_values.split(',').map(|text| text.trim().to_lowercase());
        let bad_values = bad_values.filter(|text| !text.is_empty()).collect();
        predicates.note(
            "check-point-directory",
            "the server keeps the place in the file with its keys",
            notes,
        );
        predicates.flag("use-counter-for-check-point")?;
        predicates.note(
            "use-counter-for-check-point",
            "the place in the file is always kept by its line",
            notes,
        );
        Ok(Self {
            file,
            columns,
            separator,
            quote,
            skip_first_lines: skip_first_lines.unwrap_or(0).unsigned_abs(),
            zone,
            bad_values,
            sampling_ms: predicates.period("sampling", SAMPLING_MS, 1)?,
        })
    }
}

/// The predicates `fields` and `formats`.
fn columns(predicates: &mut Predicates<'_>) -> Result<Vec<CsvColumn>, Fault> {
    predicates.check_needs("formats", "fields")?;
    let formats = predicates.take("formats").filter(|pair| !pair.value.value.is_empty());
    let Some(fields) = predicates.take("fields").filter(|pair| !pair.value.value.is_empty()) else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = split(&fields.value.value).into_iter().map(|name| name.to_lowercase()).collect();
    if names.len() > FIELDS_MAX {
        let reason = format!("fields names {} fields; at most {FIELDS_MAX} (FIELDS_MAX)", names.len());
        return Err(Fault::limit(fields.value.place, reason));
    }
    let formats = match formats {
        Some(said) => read_formats(said, names.len())?,
        // Without a format the time is in milliseconds.
        None => names
            .iter()
            .map(|name| if name == "timed" { CsvFormat::Integer } else { CsvFormat::Number })
            .collect(),
    };
    let columns: Vec<_> =
        names.into_iter().zip(formats).map(|(name, format)| CsvColumn { name, format }).collect();
    let is_text = |column: &&CsvColumn| column.name == "timed" && column.format == CsvFormat::Text;
    if columns.iter().any(|column| is_text(&column)) {
        let reason =
            "timed is a time; its format is bigint for milliseconds since 1970, or timestamp(PATTERN)";
        return Err(Fault::invalid(fields.value.place, reason));
    }
    for (at, column) in columns.iter().enumerate() {
        let is_time = |other: &CsvColumn| matches!(other.format, CsvFormat::Time { .. });
        let earlier = columns[..at].iter().find(|other| other.name == column.name);
        if let Some(other) = earlier.filter(|other| !(is_time(other) && is_time(column))) {
            let reason = format!("fields names {:?} twice; only parts of a time have one name", other.name);
            return Err(Fault::invalid(fields.value.place, reason));
        }
    }
    check_patterns(&columns, predicates)?;
    Ok(columns)
}

/// Splits at commas that are in no parentheses and in no quotation marks.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut is_quoted) = (vec![String::new()], 0_usize, false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if depth == 0 && !is_quoted => parts.push(String::new()),
            _ => {
                depth = match c {
                    '(' => depth + 1,
                    ')' => depth.saturating_sub(1),
                    _ => depth,
                };
                parts.last_mut().into_iter().for_each(|part| part.push(c));
            }
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn read_formats(said: &Pair, fields: usize) -> Result<Vec<CsvFormat>, Fault> {
    let formats = split(&said.value.value);
    if formats.len() != fields {
        let reason = format!("formats has {} entries for {fields} fields", formats.len());
        return Err(Fault::invalid(said.value.place, reason));
    }
    let read = |text: &String| {
        format(text).ok_or_else(|| {
            let reason = format!(
                "{text:?} is not a format; formats are numeric, bigint, string and timestamp(PATTERN)"
            );
            Fault::invalid(said.value.place, reason)
        })
    };
    formats.iter().map(read).collect()
}

fn format(text: &str) -> Option<CsvFormat> {
    let lower = text.to_lowercase();
    for (word, is_padded) in [("timestamp(", false), ("timestampl(", true)] {
        if lower.starts_with(word) && lower.ends_with(')') {
            let pattern = text.get(word.len()..text.len() - 1)?.trim().to_owned();
            return Some(CsvFormat::Time { pattern, is_padded });
        }
    }
    match DataType::parse(text)? {
        DataType::TinyInt | DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            Some(CsvFormat::Integer)
        }
        DataType::Double | DataType::Float => Some(CsvFormat::Number),
        DataType::Varchar(_) | DataType::Char(_) => Some(CsvFormat::Text),
        DataType::Binary(_) => None,
    }
}

fn check_patterns(columns: &[CsvColumn], predicates: &mut Predicates<'_>) -> Result<(), Fault> {
    for column in columns {
        if let CsvFormat::Time { pattern, .. } = &column.format {
            TimePattern::parse(pattern).map_err(|reason| predicates.invalid("formats", reason))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_patterns_with_commas_and_capitals() {
        let texts = split("timestamp(d.M.y, k:m),numeric, \"a,b\" ,timestampL(HHmm)");
        assert_eq!(texts, ["timestamp(d.M.y, k:m)", "numeric", "a,b", "timestampL(HHmm)"]);
        let time = |pattern: &str, is_padded| CsvFormat::Time { pattern: pattern.to_owned(), is_padded };
        assert_eq!(format(&texts[0]), Some(time("d.M.y, k:m", false)));
        assert_eq!(format(&texts[3]), Some(time("HHmm", true)));
        assert_eq!(format("bigint"), Some(CsvFormat::Integer));
        assert_eq!(format("String"), Some(CsvFormat::Text));
        assert_eq!(format("binary"), None);
    }
}

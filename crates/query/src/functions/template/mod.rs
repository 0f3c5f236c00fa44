//! PostgreSQL's template patterns: `to_char`, `to_date`, `to_timestamp` and `to_number` (its manual, section 9.8).
//!
//! A template is split into fields and text. The processing follows PostgreSQL's `formatting.c`, quirks included, and is tested
//! with vectors from PostgreSQL 15. Names of days and months are English. Signs are those of the locale `C`.

mod numbers;
mod read_numbers;
mod read_times;
mod times;

pub(super) use numbers::{Number, number_text};
pub(super) use read_numbers::read_number;
pub(super) use read_times::read_time;
pub(super) use times::{Moment, moment_text};

/// An element of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node<K> {
    Field(Field<K>),
    /// A character that stands for itself.
    Text(char),
    /// A blank or a sign between fields.
    Separator(char),
}

/// A field with its prefixes and suffixes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field<K> {
    key: K,
    /// The name in the template, for errors.
    name: &'static str,
    /// `FM`: without padding.
    fills: bool,
    /// `TM`: as the locale has it.
    localized: bool,
    ordinal: Option<Case>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
    Capital,
}

impl Case {
    fn of(self, text: &str) -> String {
        match self {
            Self::Upper => text.to_uppercase(),
            Self::Lower => text.to_lowercase(),
            Self::Capital => text.to_owned(),
        }
    }
}

/// Writes `st`, `nd`, `rd` or `th` after the digits of a number.
fn ordinal(digits: &str, case: Case) -> &'static str {
    let digits = digits.as_bytes();
    let last = digits.last().copied().unwrap_or(b'0');
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    let (lower, upper) = match last {
        b'1' if !is_teen => ("st", "ST"),
        b'2' if !is_teen => ("nd", "ND"),
        b'3' if !is_teen => ("rd", "RD"),
        _ => ("th", "TH"),
    };
    if case == Case::Upper { upper } else { lower }
}

/// Splits a template. In `keys` a longer key comes before a key that begins it. `affixed` templates have prefixes and suffixes.
fn parse<K: Copy>(template: &str, keys: &[(&'static str, K)], affixed: bool) -> Vec<Node<K>> {
    let mut nodes = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let (mut fills, mut localized, mut was_prefixed) = (false, false, false);
        if affixed {
            if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
                (rest, fills, was_prefixed) = (behind, true, true);
            } else if let Some(behind) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm")) {
                (rest, localized, was_prefixed) = (behind, true, true);
            }
        }
        if let Some((name, key)) = keys.iter().find(|(name, _)| rest.starts_with(name)) {
            rest = &rest[name.len()..];
            let mut ordinal = None;
            if affixed {
                if let Some(behind) = rest.strip_prefix("TH") {
                    (rest, ordinal) = (behind, Some(Case::Upper));
                } else if let Some(behind) = rest.strip_prefix("th") {
                    (rest, ordinal) = (behind, Some(Case::Lower));
                } else if let Some(behind) = rest.strip_prefix("SP") {
                    rest = behind;
                }
            }
            nodes.push(Node::Field(Field { key: *key, name, fills, localized, ordinal }));
            continue;
        }
        if was_prefixed {
            // A prefix without a field is dropped, and the text after it stands for itself.
            let Some(next) = rest.chars().next() else { break };
            rest = text(rest, next, affixed, &mut nodes);
            continue;
        }
        rest = text(rest, first, affixed, &mut nodes);
    }
    nodes
}

/// Takes a text from the beginning of `rest`, and returns the remaining text.
fn text<'a, K>(rest: &'a str, first: char, affixed: bool, nodes: &mut Vec<Node<K>>) -> &'a str {
    if first == '"' {
        let mut chars = rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return &rest[at + 2..],
                '\\' => {
                    if let Some((_, next)) = chars.next() {
                        nodes.push(Node::Text(next));
                    } else {
                        nodes.push(Node::Text('\\'));
                    }
                }
                other => nodes.push(Node::Text(other)),
            }
        }
        return "";
    }
    let (rest, first) = match rest.strip_prefix("\\\"") {
        Some(behind) => {
            return {
                nodes.push(Node::Text('"'));
                behind
            };
        }
        None => (rest, first),
    };
    let is_separator = first.is_ascii_whitespace() || (affixed && is_separator(first));
    nodes.push(if is_separator { Node::Separator(first) } else { Node::Text(first) });
    &rest[first.len_utf8()..]
}

/// Whether a character is ASCII and neither a letter nor a digit.
fn is_separator(c: char) -> bool {
    c > ' ' && c < '\x7f' && !c.is_ascii_alphanumeric()
}

/// The Roman numerals, from one on.
const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// As [`chrono::Weekday::num_days_from_sunday`] counts them.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[cfg(test)]
mod tests {
    use model::Interval;

    use super::*;

    /// Vectors from PostgreSQL 15: a function or type, a value, a template, and the result or `ERROR`.
    const GOLDEN: &str = include_str!("testdata.txt");

    fn micros(text: &str) -> i64 {
        let time = text.parse::<chrono::NaiveDateTime>();
        let time = time.or_else(|_| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"));
        time.unwrap().and_utc().timestamp_micros()
    }

    fn decimal(text: &str) -> Number {
        let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        Number::Decimal(text.replace('.', "").parse().unwrap(), scale as i8)
    }

    fn interval(text: &str) -> Moment {
        let parts: Vec<i64> = text.split(' ').map(|part| part.parse().unwrap()).collect();
        Moment::Interval(Interval { months: parts[0] as i32, days: parts[1] as i32, micros: parts[2] })
    }

    fn read(text: &str, template: &str) -> Result<String, crate::QueryError> {
        let micros = read_time(text, template)?.micros_utc().unwrap();
        moment_text(Moment::Local(micros), "YYYY-MM-DD HH24:MI:SS.US AD")
    }

    #[test]
    fn templates_have_the_results_of_postgresql() {
        let mut wrong = Vec::new();
        for line in GOLDEN.lines() {
            let [kind, value, template, expected] = line.split('~').collect::<Vec<_>>().try_into().unwrap();
            let found = match kind {
                "timestamp" => moment_text(Moment::Local(micros(value)), template),
                "timestamptz" => moment_text(Moment::WithZone(micros(value)), template),
                "interval" => moment_text(interval(value), template),
                "integer" => number_text(Number::Integer(value.parse().unwrap()), template),
                "float" => number_text(Number::Float(value.parse().unwrap()), template),
                "numeric" => number_text(decimal(value), template),
                "to_timestamp" => read(value, template),
                "to_number" => read_number(value, template).map(|number| number.to_string()),
                other => panic!("{other}"),
            };
            let found = found.unwrap_or_else(|_| "ERROR".into());
            if found != expected {
                wrong.push(format!("{kind} {value:?} {template:?}: {found:?}, not {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
    }
}

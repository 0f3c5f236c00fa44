//! A point as a line: `put metric timestamp value tag=value ...`.

use super::super::put::{
    Epoch, Number, SeriesRules, check_series, parse_number, parse_timestamp, quoted, shown_tags,
};
use super::lines::without_end;
use super::refusal::{LineRefusal, number_fault};

/// Words that a point needs, the command included.
const WORDS_MIN: usize = 5;

/// A line with the command `put`, cut into its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutLine<'a> {
    /// The metric.
    pub metric: &'a str,
    timestamp: &'a str,
    value: &'a str,
    tags: &'a str,
}

impl<'a> PutLine<'a> {
    /// Cuts a line with the command `put` into its words. Each blank ends a word, as in OpenTSDB.
    ///
    /// # Errors
    /// The line is not UTF-8, has too few words, or no metric.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineRefusal> {
        let line = std::str::from_utf8(without_end(line)).map_err(|error| {
            LineRefusal::argument(format!("the line is not UTF-8 at byte {}", error.valid_up_to()))
        })?;
        let mut words = line.splitn(WORDS_MIN, ' ');
        let (_put, metric, timestamp, value, tags) =
            (words.next(), words.next(), words.next(), words.next(), words.next());
        let (Some(metric), Some(timestamp), Some(value), Some(tags)) = (metric, timestamp, value, tags)
        else {
            let got = line.split(' ').count() - 1;
            return Err(LineRefusal::argument(format!("not enough arguments (need least 4, got {got})")));
        };
        if metric.is_empty() {
            return Err(LineRefusal::argument("empty metric name"));
        }
        Ok(Self { metric, timestamp, value, tags })
    }

    /// Time in microseconds since 1970 and value.
    ///
    /// # Errors
    /// One of them is not a number, or is out of range.
    pub fn timed_value(&self, epoch: Epoch) -> Result<(i64, Number), LineRefusal> {
        let time = parse_timestamp(self.timestamp, epoch).map_err(|refusal| {
            let is_number = self.timestamp.parse::<i64>().is_ok();
            match parse_number(self.timestamp) {
                Ok(Number::I64(given)) if given <= 0 => {
                    LineRefusal::argument(format!("invalid timestamp: {given}"))
                }
                _ if is_number => refusal.into(),
                _ => LineRefusal::value(number_fault(self.timestamp)),
            }
        })?;
        if self.value.is_empty() {
            return Err(LineRefusal::argument("empty value"));
        }
        let value = parse_number(self.value);
        Ok((time, value.map_err(|refusal| LineRefusal::of_number(refusal, self.value))?))
    }

    /// The text of the tags. Lines with the same metric and this same text belong to the same series; the reverse need not be true,
    /// for the tags may have another order.
    #[must_use]
    pub fn tags_text(&self) -> &'a str {
        self.tags
    }

    /// The tags, in the order of the line. The names of the metric and of the tags are checked.
    ///
    /// # Errors
    /// A word is not a tag, a tag has two values, there are none or too many, or a name is illegal.
    pub fn tags(&self, rules: &SeriesRules) -> Result<Vec<(&'a str, &'a str)>, LineRefusal> {
        let mut tags = Vec::new();
        for word in self.tags.split(' ').filter(|word| !word.is_empty()) {
            let (name, value) = tag(word)?;
            match tags.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if *known == value => {}
                Some(_) => {
                    let (word, known) = (quoted(word), shown_tags(&tags));
                    return Err(LineRefusal::argument(format!("duplicate tag: {word}, tags={known}")));
                }
                // The names are compared with each other, so their number is bounded; one more is refused below.
                None if tags.len() > rules.tags_max => break,
                None => tags.push((name, value)),
            }
        }
        check_series(self.metric, &tags, rules)?;
        Ok(tags)
    }
}

fn tag(word: &str) -> Result<(&str, &str), LineRefusal> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() && !value.contains('=') => {
            Ok((name, value))
        }
        _ => Err(LineRefusal::argument(format!("invalid tag: {}", quoted(word)))),
    }
}

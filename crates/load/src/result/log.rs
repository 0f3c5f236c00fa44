//! `histograms.hlog`: every histogram of a run, per second and total, in HdrHistogram's interval log format with V2
//! compressed histograms, so that other tools read it too. Tags are `phase/operation/clock`; those of totals begin
//! with `total/`. Values are microseconds, times are seconds after the begin of the run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::limits::LATENCY_US_MAX;
use crate::statistics::Distribution;

const TOTAL: &str = "total/";
/// Characters that a tag may not contain, and the separator of its parts.
const ESCAPED: [char; 6] = ['%', ',', ' ', '\r', '\n', '/'];

/// The three times of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// From the intended start to the answer.
    Response,
    /// From the send to the answer.
    Service,
    /// From the intended start to the send.
    Lag,
}

impl Clock {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Response, Self::Service, Self::Lag];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|clock| clock.to_string() == name)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Lag => "lag",
        })
    }
}

/// The key of a histogram.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Name of the phase.
    pub phase: String,
    /// Name of the class of operation.
    pub operation: String,
    pub clock: Clock,
}

/// The distributions of one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The whole phase: operations with an intended start in it.
    pub total: Distribution,
    /// By the second of the answer (for lag: of the send), counted from the start of the run.
    pub seconds: BTreeMap<u64, Distribution>,
}

/// All distributions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histograms {
    timelines: BTreeMap<Key, Timeline>,
}

impl Histograms {
    /// The distributions of a key, if any.
    pub fn get(&self, phase: &str, operation: &str, clock: Clock) -> Option<&Timeline> {
        self.timelines.get(&Key { phase: phase.to_owned(), operation: operation.to_owned(), clock })
    }

    /// All keys with their distributions.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Timeline)> {
        self.timelines.iter()
    }

    /// Whether there are no distributions.
    pub fn is_empty(&self) -> bool {
        self.timelines.is_empty()
    }

    /// Adds samples to the total of a key.
    pub fn add_total(&mut self, key: Key, distribution: &Distribution) {
        if !distribution.is_empty() {
            self.timelines.entry(key).or_default().total.merge(distribution);
        }
    }

    /// Adds samples to one second of a key.
    pub fn add_second(&mut self, key: Key, second: u64, distribution: &Distribution) {
        if !distribution.is_empty() {
            self.timelines.entry(key).or_default().seconds.entry(second).or_default().merge(distribution);
        }
    }

    /// Adds the measurements of another process.
    pub fn merge(&mut self, other: &Self) {
        for (key, timeline) in &other.timelines {
            self.add_total(key.clone(), &timeline.total);
            for (second, distribution) in &timeline.seconds {
                self.add_second(key.clone(), *second, distribution);
            }
        }
    }

    /// The log as text; `begin_unix_s` is the start of the run. Intervals are in order of time, totals come last.
    pub(crate) fn to_log(&self, begin_unix_s: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let begin = UNIX_EPOCH + Duration::from_secs(begin_unix_s);
        let mut writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment(
                "[Values are microseconds; tags are phase/operation/clock, of whole phases total/...]",
            )
            .with_start_time(begin)
            .with_base_time(begin)
            .begin_log_with(&mut bytes, &mut serializer)
            .map_err(|error| error.to_string())?;
        let mut scratch = empty();
        let mut write = |tag: &str, second: u64, length: Duration, distribution: &Distribution| {
            scratch.reset();
            distribution.fill(&mut scratch);
            let tag = Tag::new(tag).expect("BUG: the names in a tag are escaped");
            writer
                .write_histogram(&scratch, Duration::from_secs(second), length, Some(tag))
                .map_err(|error| format!("{error:?}"))
        };
        let tags: Vec<String> = self.timelines.keys().map(tag).collect();
        let mut intervals: Vec<(u64, usize, &Distribution)> = Vec::new();
        for (index, timeline) in self.timelines.values().enumerate() {
            intervals.extend(timeline.seconds.iter().map(|(second, d)| (*second, index, d)));
        }
        intervals.sort_by_key(|(second, index, _)| (*second, *index));
        for (second, index, distribution) in intervals {
            write(&tags[index], second, Duration::from_secs(1), distribution)?;
        }
        for (tag, timeline) in tags.iter().zip(self.timelines.values()) {
            let first = timeline.seconds.keys().next().copied().unwrap_or(0);
            let last = timeline.seconds.keys().next_back().copied().unwrap_or(0);
            let length = Duration::from_secs(last + 1 - first);
            write(&format!("{TOTAL}{tag}"), first, length, &timeline.total)?;
        }
        drop(writer);
        Ok(bytes)
    }

    /// Parses the output of `to_log`. The error states what is wrong.
    pub(crate) fn from_log(bytes: &[u8]) -> Result<Self, String> {
        let mut histograms = Self::default();
        let mut deserializer = Deserializer::new();
        for (line, entry) in IntervalLogIterator::new(bytes).enumerate() {
            let LogEntry::Interval(interval) = entry.map_err(|error| format!("entry {line}: {error:?}"))?
            else {
                continue;
            };
            let full_tag = interval.tag().map_or("", |tag| tag.as_str());
            let (is_total, tag) = match full_tag.strip_prefix(TOTAL) {
                Some(tag) => (true, tag),
                None => (false, full_tag),
            };
            let key = parse_tag(tag)
                .ok_or_else(|| format!("entry {line}: `{full_tag}` is not phase/operation/clock"))?;
            let packed = STANDARD
                .decode(interval.encoded_histogram())
                .map_err(|error| format!("entry {line}, {full_tag}: {error}"))?;
            let histogram: Histogram<u64> = deserializer
                .deserialize(&mut packed.as_slice())
                .map_err(|error| format!("entry {line}, {full_tag}: {error:?}"))?;
            let distribution = Distribution::from_histogram(&histogram);
            let timeline = histograms.timelines.entry(key).or_default();
            if is_total {
                timeline.total.merge(&distribution);
            } else {
                timeline
                    .seconds
                    .entry(interval.start_timestamp().as_secs())
                    .or_default()
                    .merge(&distribution);
            }
        }
        Ok(histograms)
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("BUG: constant bounds are valid")
}

fn tag(key: &Key) -> String {
    format!("{}/{}/{}", escape(&key.phase), escape(&key.operation), key.clock)
}

fn parse_tag(tag: &str) -> Option<Key> {
    let mut parts = tag.split('/');
    let (phase, operation, clock) = (parts.next()?, parts.next()?, parts.next()?);
    let clock = Clock::parse(clock)?;
    parts.next().is_none().then_some(Key { phase: unescape(phase)?, operation: unescape(operation)?, clock })
}

fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if ESCAPED.contains(&letter) {
            text += &format!("%{:02X}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(char::from(u8::from_str_radix(code, 16).ok()?));
        name.push_str(rest);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(operation: &str, clock: Clock) -> Key {
        Key { phase: "run".to_owned(), operation: operation.to_owned(), clock }
    }

    fn distribution(values: &[(u64, u64)]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|(value, count)| distribution.add(*value, *count));
        distribution
    }

    proptest! {
        #[test]
        fn a_log_read_back_is_the_same(
            values in prop::collection::vec((1_u64..4_000_000_000, 1_u64..1_000_000), 1..60), names in "[a-z /%,]{1,8}",
        ) {
            let mut histograms = Histograms::default();
            for (index, sample) in values.iter().enumerate() {
                let key = key(&names, Clock::ALL[index % 3]);
                let one = distribution(&[*sample]);
                histograms.add_second(key.clone(), index as u64 / 7, &one);
                histograms.add_total(key, &one);
            }
            let log = histograms.to_log(1_700_000_000).unwrap();
            prop_assert_eq!(Histograms::from_log(&log).unwrap(), histograms);
        }
    }

    #[test]
    fn the_log_is_ordered_by_time_and_carries_its_begin() {
        let mut histograms = Histograms::default();
        for (operation, second) in [("get", 2), ("set", 0), ("get", 0), ("set", 1)] {
            histograms.add_second(key(operation, Clock::Response), second, &distribution(&[(100, 1)]));
        }
        let text = String::from_utf8(histograms.to_log(1_700_000_000).unwrap()).unwrap();
        assert!(text.contains("#[BaseTime: 1700000000.000 (seconds since epoch)]"), "{text}");
        let starts: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("Tag=run/"))
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect();
        assert_eq!(starts, [0.0, 0.0, 1.0, 2.0], "{text}");
    }

    #[test]
    fn a_damaged_log_says_where() {
        let mut histograms = Histograms::default();
        histograms.add_second(key("get", Clock::Response), 0, &distribution(&[(100, 1)]));
        let text = String::from_utf8(histograms.to_log(0).unwrap()).unwrap();
        let error = Histograms::from_log(text.replace("run/get", "run").as_bytes()).unwrap_err();
        assert!(error.contains("`run/response` is not phase/operation/clock"), "{error}");
        assert!(Histograms::from_log(text.replace("HISTF", "!!!!!").as_bytes()).is_err(), "{text}");
    }
}

//! The data that the clients of a phase have received.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::limits::GSN_QUERIES_KEPT;

/// An answered question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    /// The number of the sensor in the list.
    pub(super) sensor: usize,
    /// The number of rows that the question asked for.
    pub(super) wanted: u64,
    pub(super) rows: u64,
    /// The fields of the sensor, the time among them.
    pub(super) fields: u64,
    /// Bytes of the lines with rows, without their ends.
    pub(super) line_bytes: u64,
    /// Bytes of the whole body.
    pub(super) body_bytes: u64,
    /// From the request to the end of the body, whole milliseconds.
    pub(super) millis: u64,
}

/// The smallest and the largest number of rows of the answers to equal questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowsSeen {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// The answers of a phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) answers: u64,
    pub(super) rows: u64,
    pub(super) values: u64,
    pub(super) line_bytes: u64,
    pub(super) body_bytes: u64,
    /// The first answers.
    pub(super) kept: Vec<Answered>,
    /// By sensor and wanted rows.
    pub(super) seen: BTreeMap<(usize, u64), RowsSeen>,
    /// From the first question to the last answer.
    span: Option<(Instant, Instant)>,
}

impl Tally {
    /// Adds an answer that began and ended at these times.
    pub(super) fn add(&mut self, answered: Answered, began: Instant, ended: Instant) {
        self.answers += 1;
        self.rows += answered.rows;
        self.values += answered.rows * answered.fields.saturating_sub(1);
        self.line_bytes += answered.line_bytes;
        self.body_bytes += answered.body_bytes;
        let rows = answered.rows;
        let key = (answered.sensor, answered.wanted);
        if let Some(seen) = self.seen.get_mut(&key) {
            *seen = RowsSeen { least: seen.least.min(rows), most: seen.most.max(rows) };
        } else if self.seen.len() < GSN_QUERIES_KEPT {
            self.seen.insert(key, RowsSeen { least: rows, most: rows });
        }
        if self.kept.len() < GSN_QUERIES_KEPT {
            self.kept.push(answered);
        }
        let (first, last) = self.span.unwrap_or((began, ended));
        self.span = Some((first.min(began), last.max(ended)));
    }

    /// The time from the first question to the last answer, seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |(first, last)| (last - first).as_secs_f64())
    }

    /// The figures of the whole system in a sentence.
    pub(super) fn sentence(&self, phase: &str) -> Option<String> {
        const MIB: f64 = 1_048_576.0;
        let seconds = self.seconds();
        (self.answers > 0 && seconds > 0.0).then(|| {
            format!(
                "{phase}: {} answers with {} tuples in {seconds:.3} s: {:.0} tuples/s, {:.0} values/s, {:.3} MiB of rows ({:.3} MiB/s), \
                 {:.1} bytes a tuple, all clients together and warm-up included.",
                self.answers,
                self.rows,
                self.rows as f64 / seconds,
                self.values as f64 / seconds,
                self.line_bytes as f64 / MIB,
                self.line_bytes as f64 / MIB / seconds,
                self.line_bytes as f64 / self.rows.max(1) as f64,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_that_of_all_clients_together() {
        let (began, mut tally) = (Instant::now(), Tally::default());
        let answered = |rows| Answered {
            sensor: 0,
            wanted: 100,
            rows,
            fields: 3,
            line_bytes: rows * 10,
            body_bytes: rows * 11,
            millis: 1_000,
        };
        let at = |s| began + Duration::from_secs(s);
        tally.add(answered(100), at(0), at(1));
        tally.add(answered(60), at(0), at(2));
        assert_eq!((tally.rows, tally.values, tally.seconds()), (160, 320, 2.0));
        assert_eq!(tally.seen[&(0, 100)], RowsSeen { least: 60, most: 100 });
        let sentence = tally.sentence("p").unwrap();
        assert!(
            sentence.starts_with("p: 2 answers with 160 tuples in 2.000 s: 80 tuples/s, 160 values/s"),
            "{sentence}"
        );
        assert_eq!(Tally::default().sentence("p"), None);
    }
}

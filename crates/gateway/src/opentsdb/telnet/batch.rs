//! The points of the lines that were read together.

use std::cell::RefCell;
use std::fmt::Write;

use hub::points::{Points, RefusedItem};
use model::Timestamp;
use wire::opentsdb::put::{Epoch, SeriesRules};
use wire::opentsdb::telnet::{LineRefusal, PutLine, without_end};

use super::super::limits::TELNET_REPLIES_BYTES_MAX;
use super::super::rows::{Form, VALUE, value_of};
use super::replies::one_line;

/// Names the series of lines apart from those of the other interfaces.
const LINES: u8 = 1;

/// The refused lines of a batch.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// How many there are.
    pub(super) count: u32,
    /// Answers to the first ones.
    pub(super) replies: String,
    /// Lines without an answer, because there were too many.
    pub(super) unsaid: u32,
}

impl Refused {
    /// Adds a line that the store refuses.
    pub(super) fn add(&mut self, refusal: &LineRefusal) {
        self.count += 1;
        if self.replies.len() > TELNET_REPLIES_BYTES_MAX {
            self.unsaid += 1;
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.replies, "put: {}", one_line(&refusal.to_string()));
    }

    /// Adds lines of which the store refused the value.
    pub(super) fn add_items(&mut self, items: Vec<RefusedItem>) {
        for item in items {
            self.add(&LineRefusal::argument(item.reason));
        }
    }
}

/// Adds the points of lines with the command `put`. The number of a row's item is that of its line. Refused lines are kept as dead
/// letters.
pub(super) fn collect(points: &mut Points, lines: &[u8]) -> Refused {
    let (rules, mut key, mut refused) = (Form::Value.rules(), Vec::new(), Refused::default());
    for (item, line) in (0..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
        if let Err(refusal) = add(points, item, line, &rules, &mut key) {
            points.refuse(&refusal.to_string(), without_end(line));
            refused.add(&refusal);
        }
    }
    refused
}

/// Adds the point of a line. `key` is working space.
fn add(
    points: &mut Points,
    item: u32,
    line: &[u8],
    rules: &SeriesRules,
    key: &mut Vec<u8>,
) -> Result<(), LineRefusal> {
    let put = PutLine::parse(line)?;
    let (micros, number) = put.timed_value(Epoch::OpenTsdb)?;
    key.clear();
    key.push(LINES);
    key.extend_from_slice(put.metric.as_bytes());
    key.push(b' ');
    key.extend_from_slice(put.tags_text().as_bytes());
    let fault = RefCell::new(None);
    let names = || match put.tags(rules) {
        Ok(mut tags) => {
            tags.sort_unstable();
            (put.metric, tags)
        }
        Err(refusal) => {
            fault.replace(Some(refusal));
            // No table has an empty name, so the series is refused.
            ("", Vec::new())
        }
    };
    let added = points.add(item, Timestamp::from_micros(micros), key, names, [(VALUE, value_of(number))]);
    added.map_err(|refusal| fault.take().unwrap_or_else(|| LineRefusal::argument(refusal.to_string())))
}

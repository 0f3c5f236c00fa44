//! Reads back stored points: it counts the points of every device and compares the values of some devices one by one.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use load::Result;
use load::payload::{SEQUENCE_BASE, SEQUENCE_KEY, Values};

use super::Tally;
use crate::devices::{Client, Point, number};
use crate::limits::VERIFY_THREADS;

/// One device in this many has its values compared.
const SAMPLE_ONE_IN: usize = 100;
/// Half of the last digit of the payload: the server may parse and print JSON numbers.
const EPSILON: f64 = 0.001;

/// The data to read back.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) client: &'a Client,
    /// The ids of the devices, by number.
    pub(super) ids: &'a [String],
    /// The numbers of the connected devices with their tallies.
    pub(super) tallies: &'a [(u32, Tally)],
    pub(super) keys: &'a [&'static str],
    pub(super) base_ts_ms: u64,
}

/// The result of reading back.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Verification {
    /// The number of devices whose points were counted.
    pub(super) devices: u64,
    /// The number of acknowledged messages.
    pub(super) acked: u64,
    /// The number of messages that were sent.
    pub(super) sent: u64,
    /// The number of stored points.
    pub(super) stored: u64,
    /// The number of acknowledged messages that are not stored.
    pub(super) missing: u64,
    /// The number of stored points beyond those sent.
    pub(super) surplus: u64,
    /// The number of devices whose values were compared.
    pub(super) sampled_devices: u64,
    /// The number of compared rows.
    pub(super) sampled_rows: u64,
    /// The number of rows with a wrong, missing or repeated value.
    pub(super) wrong_rows: u64,
    /// The first difference, as text.
    pub(super) first_difference: Option<String>,
    /// Duration of the verification, seconds.
    pub(super) took_s: f64,
}

impl Verification {
    /// Adds the result of other devices.
    pub(super) fn add(&mut self, other: &Self) {
        self.devices += other.devices;
        self.acked += other.acked;
        self.sent += other.sent;
        self.stored += other.stored;
        self.missing += other.missing;
        self.surplus += other.surplus;
        self.sampled_devices += other.sampled_devices;
        self.sampled_rows += other.sampled_rows;
        self.wrong_rows += other.wrong_rows;
        self.took_s += other.took_s;
        if self.first_difference.is_none() {
            self.first_difference.clone_from(&other.first_difference);
        }
    }
}

/// Reads back over several connections.
pub(super) fn verify(job: &Job<'_>) -> Result<Verification> {
    let began = Instant::now();
    let share = job.tallies.len().div_ceil(VERIFY_THREADS).max(1);
    let parts = thread::scope(|scope| {
        let handles: Vec<_> =
            job.tallies.chunks(share).map(|part| scope.spawn(move || verify_part(job, part))).collect();
        handles.into_iter().map(|h| h.join().expect("BUG: a verifier panicked")).collect::<Result<Vec<_>>>()
    })?;
    let mut total = Verification::default();
    parts.iter().for_each(|part| total.add(part));
    total.took_s = began.elapsed().as_secs_f64();
    Ok(total)
}

fn verify_part(job: &Job<'_>, tallies: &[(u32, Tally)]) -> Result<Verification> {
    let mut part = Verification::default();
    for (device, tally) in tallies {
        let device = *device as usize;
        let id = &job.ids[device];
        let end_ms = tally.last_ts_ms.max(job.base_ts_ms) + 1;
        let stored = job.client.count(id, SEQUENCE_KEY, job.base_ts_ms, end_ms)?;
        count(&mut part, device, tally, stored);
        if device.is_multiple_of(SAMPLE_ONE_IN) {
            let history = job.client.history(id, job.keys, job.base_ts_ms, end_ms)?;
            compare(&mut part, device, tally, &history);
        }
    }
    Ok(part)
}

fn count(part: &mut Verification, device: usize, tally: &Tally, stored: u64) {
    part.devices += 1;
    part.acked += tally.acked;
    part.sent += tally.sent;
    part.stored += stored;
    let missing = tally.acked.saturating_sub(stored);
    let surplus = stored.saturating_sub(tally.sent);
    part.missing += missing;
    part.surplus += surplus;
    if missing + surplus > 0 {
        let (acked, sent) = (tally.acked, tally.sent);
        difference(part, || format!("device {device}: {acked} acked, {sent} sent, {stored} stored"));
    }
}

/// Compares rows: each sequence number must occur once, in the order of timestamps, with the values that follow from
/// it.
fn compare(part: &mut Verification, device: usize, tally: &Tally, history: &BTreeMap<String, Vec<Point>>) {
    part.sampled_devices += 1;
    let mut previous = None;
    let sequences = history.get(SEQUENCE_KEY).map_or(&[][..], Vec::as_slice);
    for (row, point) in sequences.iter().enumerate() {
        part.sampled_rows += 1;
        let sequence = number(&point.value).and_then(|n| (n as u64).checked_sub(SEQUENCE_BASE));
        let Some(sequence) = sequence.filter(|n| *n < tally.sent && previous.is_none_or(|p| p < *n)) else {
            part.wrong_rows += 1;
            difference(part, || format!("device {device} at {}: unexpected seq {}", point.ts, point.value));
            continue;
        };
        previous = Some(sequence);
        let values = Values::of(device as u32, sequence);
        if let Some(key) = wrong_key(history, row, point.ts, &values) {
            part.wrong_rows += 1;
            difference(part, || format!("device {device} at {}, message {sequence}: wrong {key}", point.ts));
        }
    }
}

fn wrong_key(
    history: &BTreeMap<String, Vec<Point>>,
    row: usize,
    ts: u64,
    values: &Values,
) -> Option<&'static str> {
    let expected = [
        ("speed_kmh", values.speed_tenths as f64 / 10.0),
        ("coolant", values.coolant_hundredths as f64 / 100.0),
        ("engine_rpm", values.rpm as f64),
    ];
    expected.into_iter().find_map(|(key, expected)| {
        let points = history.get(key)?;
        let got = points.get(row).filter(|point| point.ts == ts).and_then(|point| number(&point.value));
        (!got.is_some_and(|got| (got - expected).abs() < EPSILON)).then_some(key)
    })
}

fn difference(part: &mut Verification, text: impl FnOnce() -> String) {
    part.first_difference.get_or_insert_with(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEVICE: usize = 300;

    fn history(rows: u64) -> BTreeMap<String, Vec<Point>> {
        let mut history: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        for n in 0..rows {
            let values = Values::of(DEVICE as u32, n);
            let row = [
                (SEQUENCE_KEY, json!(SEQUENCE_BASE + n)),
                ("speed_kmh", json!(values.speed_tenths as f64 / 10.0)),
                ("coolant", json!((values.coolant_hundredths as f64 / 100.0).to_string())),
                ("engine_rpm", json!(values.rpm)),
            ];
            for (key, value) in row {
                history.entry(key.to_owned()).or_default().push(Point { ts: 1_000 + n, value });
            }
        }
        history
    }

    fn compared(history: &BTreeMap<String, Vec<Point>>, sent: u64) -> Verification {
        let mut part = Verification::default();
        compare(&mut part, DEVICE, &Tally { sent, acked: sent, last_ts_ms: 0 }, history);
        part
    }

    #[test]
    fn true_rows_pass_as_numbers_or_text() {
        let part = compared(&history(50), 50);
        assert_eq!((part.sampled_rows, part.wrong_rows), (50, 0), "{:?}", part.first_difference);
    }

    #[test]
    fn a_changed_a_missing_and_a_repeated_value_are_found() {
        let mut changed = history(50);
        changed.get_mut("engine_rpm").unwrap()[7].value = json!(0);
        let part = compared(&changed, 50);
        assert_eq!(part.wrong_rows, 1);
        assert!(part.first_difference.unwrap().contains("message 7: wrong engine_rpm"));

        let mut missing = history(50);
        missing.get_mut("coolant").unwrap().pop();
        assert_eq!(compared(&missing, 50).wrong_rows, 1);

        let mut repeated = history(50);
        repeated.get_mut(SEQUENCE_KEY).unwrap()[9].value = json!(SEQUENCE_BASE + 8);
        assert_eq!(compared(&repeated, 50).wrong_rows, 1);

        assert_eq!(compared(&history(50), 40).wrong_rows, 10, "ten were never sent");
    }

    #[test]
    fn counts_are_compared_per_device_so_that_errors_do_not_cancel_out() {
        let mut part = Verification::default();
        let tally = Tally { sent: 10, acked: 10, last_ts_ms: 0 };
        count(&mut part, 0, &tally, 9);
        count(&mut part, 1, &tally, 11);
        assert_eq!((part.stored, part.missing, part.surplus), (20, 1, 1));
        assert_eq!(part.first_difference.as_deref(), Some("device 0: 10 acked, 10 sent, 9 stored"));
        count(&mut part, 2, &Tally { sent: 10, acked: 8, last_ts_ms: 0 }, 9);
        assert_eq!((part.missing, part.surplus), (1, 1), "sent but not acked may be stored or not");
    }
}

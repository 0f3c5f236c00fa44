//! Counts of refused messages, and the pace of their log lines.

use std::collections::HashMap;

use model::Timestamp;
use model::limits::{
    REFUSAL_LOG_LINES_MAX, REFUSAL_LOG_WINDOW_S, REFUSAL_REASON_BYTES_MAX, REFUSED_DEVICES_MAX,
};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::metrics::Door;

/// The refusals of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Refused messages since [`Self::since`].
    pub messages: u64,
    /// When counting began: at the start of the server, or later if very many devices have refusals.
    pub since: Timestamp,
    /// Time of the last refusal.
    pub last: Timestamp,
    /// Name of the door of the last refusal.
    pub door: String,
    /// Reason of the last refusal, in words for the sender.
    pub reason: String,
}

/// A log line that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine {
    /// Refusals of the same device since its last line, this one included.
    pub refusals: u64,
    /// Suppressed lines since the last one.
    pub left_out: u64,
}

/// The refusals of all devices since the start.
#[derive(Debug)]
pub struct Refusals {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When counting began for devices without an entry.
    since: Timestamp,
    devices: HashMap<Uuid, Entry>,
    messages: Pace,
    logins: Pace,
    connections: Pace,
}

#[derive(Debug)]
struct Entry {
    refused: Refused,
    logged_at: Option<Timestamp>,
    since_line: u64,
}

impl Refusals {
    /// Without refusals.
    pub(crate) fn new(started: Timestamp) -> Self {
        let [messages, logins, connections] = [(); 3].map(|()| Pace::default());
        let state = State { since: started, devices: HashMap::new(), messages, logins, connections };
        Self { state: Mutex::new(state) }
    }

    /// Counts a refused message of a device. Returns the line for the log if one is due: at most one per device and
    /// window, and not too many over all devices.
    pub fn note(&self, device: Uuid, door: Door, reason: &str, now: Timestamp) -> Option<LogLine> {
        let mut state = self.state.lock();
        state.count(device, door, reason, now);
        let State { devices, messages: pace, .. } = &mut *state;
        let entry = devices.get_mut(&device)?;
        if entry.logged_at.is_some_and(|at| is_within(at, now)) {
            return None;
        }
        let left_out = pace.next(now)?;
        entry.logged_at = Some(now);
        Some(LogLine { refusals: std::mem::take(&mut entry.since_line), left_out })
    }

    /// When counting began for devices without an entry.
    pub(crate) fn since(&self) -> Timestamp {
        self.state.lock().since
    }

    /// The log line about a refused login or access token, if one is due.
    pub fn note_login(&self, now: Timestamp) -> Option<LogLine> {
        let left_out = self.state.lock().logins.next(now)?;
        Some(LogLine { refusals: 1, left_out })
    }

    /// The log line about a connection that the server closed for an error of the peer, if one is due.
    pub fn note_connection(&self, now: Timestamp) -> Option<LogLine> {
        let left_out = self.state.lock().connections.next(now)?;
        Some(LogLine { refusals: 1, left_out })
    }

    /// The refusals of a device since the start.
    pub fn of(&self, device: Uuid) -> Option<Refused> {
        self.state.lock().devices.get(&device).map(|entry| entry.refused.clone())
    }

    /// The devices with refusals for which `wanted` has a value, the last refused first; at most `limit`.
    pub(crate) fn latest<T>(&self, limit: usize, wanted: impl Fn(Uuid) -> Option<T>) -> Vec<(T, Refused)> {
        let state = self.state.lock();
        let mut times: Vec<(Timestamp, Uuid)> =
            state.devices.iter().map(|(device, entry)| (entry.refused.last, *device)).collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        let found = times.into_iter().filter_map(|(_, device)| Some((wanted(device)?, device))).take(limit);
        found.map(|(value, device)| (value, state.devices[&device].refused.clone())).collect()
    }
}

impl State {
    fn count(&mut self, device: Uuid, door: Door, reason: &str, now: Timestamp) {
        if self.devices.len() >= REFUSED_DEVICES_MAX && !self.devices.contains_key(&device) {
            forget_half(&mut self.devices);
            self.since = now;
        }
        let since = self.since;
        let entry = self.devices.entry(device).or_insert_with(|| Entry {
            refused: Refused { messages: 0, since, last: now, door: String::new(), reason: String::new() },
            logged_at: None,
            since_line: 0,
        });
        let refused = &mut entry.refused;
        refused.messages += 1;
        refused.last = now;
        replace(&mut refused.door, door.name());
        replace(&mut refused.reason, cut(reason));
        entry.since_line += 1;
    }
}

/// Forgets at least half of the devices: those with the oldest last refusal. Their counts start again.
fn forget_half(devices: &mut HashMap<Uuid, Entry>) {
    let mut times: Vec<Timestamp> = devices.values().map(|entry| entry.refused.last).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    devices.retain(|_, entry| entry.refused.last > *median);
}

/// Replaces a text and keeps its allocation, because refusals come in bursts.
fn replace(text: &mut String, new: &str) {
    text.clear();
    text.push_str(new);
}

fn cut(reason: &str) -> &str {
    let most = REFUSAL_REASON_BYTES_MAX.min(reason.len());
    let end = (0..=most).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    &reason[..end]
}

/// Whether `now` is in the window that began at `begin`. A clock that was set back starts a new window.
fn is_within(begin: Timestamp, now: Timestamp) -> bool {
    (0..REFUSAL_LOG_WINDOW_S * 1_000_000).contains(&now.micros().saturating_sub(begin.micros()))
}

/// Limits the log lines of one kind of event.
#[derive(Debug, Default)]
struct Pace {
    window: Option<Timestamp>,
    lines: usize,
    left_out: u64,
}

impl Pace {
    /// The number of suppressed lines before this one, if this line is due.
    fn next(&mut self, now: Timestamp) -> Option<u64> {
        if !self.window.is_some_and(|begin| is_within(begin, now)) {
            self.window = Some(now);
            self.lines = 0;
        }
        if self.lines >= REFUSAL_LOG_LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_US: i64 = REFUSAL_LOG_WINDOW_S * 1_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn device(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn refusals_are_counted_with_the_last_time_and_reason() {
        let refusals = Refusals::new(at(5));
        assert_eq!(refusals.of(device(1)), None);
        refusals.note(device(1), Door::Mqtt, "first", at(10));
        refusals.note(device(2), Door::Mqtt, "other", at(15));
        refusals.note(device(1), Door::Http, "second", at(20));
        let expected =
            Refused { messages: 2, since: at(5), last: at(20), door: "http".into(), reason: "second".into() };
        assert_eq!(refusals.of(device(1)), Some(expected.clone()));
        let latest = refusals.latest(10, Some);
        assert_eq!(latest.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [device(1), device(2)]);
        assert_eq!(refusals.latest(10, Some).first(), Some(&(device(1), expected)));
    }

    #[test]
    fn a_device_gets_one_line_per_window_with_the_number_of_refusals() {
        let refusals = Refusals::new(at(0));
        let note = |micros| refusals.note(device(1), Door::Mqtt, "no", at(micros));
        assert_eq!(note(0), Some(LogLine { refusals: 1, left_out: 0 }));
        assert_eq!((note(1), note(WINDOW_US - 1)), (None, None));
        assert_eq!(note(WINDOW_US), Some(LogLine { refusals: 3, left_out: 0 }));
        assert_eq!(note(WINDOW_US - 5), Some(LogLine { refusals: 1, left_out: 0 }), "the clock was set back");
    }

    #[test]
    fn lines_over_all_devices_are_bounded_and_suppressed_ones_are_counted() {
        let refusals = Refusals::new(at(0));
        let lines = |micros: i64| {
            let notes = 0..2 * REFUSAL_LOG_LINES_MAX;
            notes.filter_map(|n| refusals.note(device(n), Door::Mqtt, "no", at(micros))).collect::<Vec<_>>()
        };
        assert_eq!(lines(0).len(), REFUSAL_LOG_LINES_MAX);
        let next = lines(WINDOW_US);
        assert_eq!(next[0], LogLine { refusals: 1, left_out: REFUSAL_LOG_LINES_MAX as u64 });
        // Logins and connections have lines of their own.
        for note in [Refusals::note_login, Refusals::note_connection] {
            let lines = (0..2 * REFUSAL_LOG_LINES_MAX).filter_map(|_| note(&refusals, at(0)));
            assert_eq!(lines.count(), REFUSAL_LOG_LINES_MAX);
            assert_eq!(note(&refusals, at(WINDOW_US)).unwrap().left_out, REFUSAL_LOG_LINES_MAX as u64);
        }
    }

    #[test]
    fn reasons_and_devices_are_bounded() {
        let refusals = Refusals::new(at(0));
        refusals.note(device(0), Door::Mqtt, &"ä".repeat(REFUSAL_REASON_BYTES_MAX), at(0));
        assert_eq!(refusals.of(device(0)).unwrap().reason.len(), REFUSAL_REASON_BYTES_MAX);
        for n in 0..=REFUSED_DEVICES_MAX {
            refusals.note(device(n), Door::Mqtt, "no", at(n as i64));
        }
        let count = refusals.state.lock().devices.len();
        assert_eq!(count, REFUSED_DEVICES_MAX / 2);
        assert_eq!(refusals.of(device(0)), None);
        // A forgotten device has a later start of counting.
        assert_eq!(refusals.of(device(REFUSED_DEVICES_MAX)).unwrap().since, at(REFUSED_DEVICES_MAX as i64));
    }
}

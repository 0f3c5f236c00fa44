//! Looks for the alarms that acknowledged messages have raised, and measures when each is there.
//!
//! A look is a request for the newest alarms of one device. Some threads look for every alarm again and again, first at once and then
//! in distances that grow with its age, until it is there. The time of an alarm is from its PUBACK to the answer that shows it; the wait for a free
//! thread is a part of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use clients::http::RestError;
use load::recorder::{Operation, Recorder, Second, Window};
use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use super::message::raised_by;
use crate::devices::Client;
use crate::limits::{WATCH_ALARMS_READ, WATCH_PAUSE_MIN_US, WATCH_PAUSE_SHARE};

/// An acknowledged message that raises an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Raised {
    /// When its PUBACK came.
    pub(super) acknowledged: Instant,
    pub(super) device: u32,
    pub(super) number: u64,
}

/// The alarms of a phase that are to be found.
#[derive(Debug)]
pub(super) struct Watch {
    /// The ids of the devices, by number.
    ids: Vec<String>,
    /// The type of the alarms of this run.
    alarm_type: String,
    /// The class of an alarm in the recorder.
    class: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// When to look for which alarm next.
    due: BinaryHeap<Reverse<(Instant, Raised)>>,
    /// Alarms that were raised and not found yet, those included that a thread looks for.
    missing: u64,
    is_over: bool,
    /// The start of the segment.
    epoch: Option<Instant>,
    recorder: Recorder,
    looks: Looks,
}

/// The requests of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Looks {
    pub(super) found: u64,
    pub(super) requests: u64,
    pub(super) took: Duration,
}

impl Watch {
    pub(super) fn new(
        ids: Vec<String>,
        alarm_type: String,
        class: u16,
        window: Window,
        classes: usize,
    ) -> Self {
        let state = State {
            due: BinaryHeap::new(),
            missing: 0,
            is_over: false,
            epoch: None,
            recorder: Recorder::new(window, classes),
            looks: Looks::default(),
        };
        Self { ids, alarm_type, class, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Begins the segment.
    pub(super) fn begin(&self, epoch: Instant) {
        self.state.lock().epoch = Some(epoch);
    }

    /// Looks for an alarm from now on.
    pub(super) fn raised(&self, raised: Raised) {
        let mut state = self.state.lock();
        state.missing += 1;
        state.due.push(Reverse((raised.acknowledged, raised)));
        self.changed.notify_one();
    }

    /// Whether an alarm is missing.
    pub(super) fn is_missing(&self) -> bool {
        self.state.lock().missing > 0
    }

    /// Adds what was found in a second.
    pub(super) fn add_to(&self, second: &mut Second) {
        second.merge(&self.state.lock().recorder.take_second(second.index));
    }

    /// Ends all threads. Alarms that are missing have failed. Returns what was recorded, its last second, and the requests.
    pub(super) fn end(&self) -> (Recorder, Second, Looks) {
        let mut state = self.state.lock();
        state.is_over = true;
        self.changed.notify_all();
        let missing = std::mem::take(&mut state.missing);
        for _ in 0..missing {
            state.recorder.failed(self.class, "acknowledged, but not there before the drain time was over");
        }
        let last = state.recorder.take_second(0);
        (std::mem::take(&mut state.recorder), last, state.looks)
    }

    /// Looks for alarms until the end of the phase.
    pub(super) fn run(&self, client: &Client) {
        while let Some(raised) = self.next() {
            let begun = Instant::now();
            let found = self.look(client, &raised);
            self.looked(raised, begun, found);
        }
    }

    /// Waits until a look is due; `None` at the end.
    fn next(&self) -> Option<Raised> {
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return None;
            }
            match state.due.peek() {
                None => self.changed.wait(&mut state),
                Some(Reverse((at, _))) if *at > Instant::now() => {
                    let at = *at;
                    self.changed.wait_until(&mut state, at);
                }
                Some(_) => {
                    let Reverse((_, raised)) = state.due.pop()?;
                    if !state.due.is_empty() {
                        // This thread no longer waits for the next one.
                        self.changed.notify_one();
                    }
                    return Some(raised);
                }
            }
        }
    }

    /// Whether the alarm is there.
    fn look(&self, client: &Client, raised: &Raised) -> Result<bool, RestError> {
        let id = &self.ids[raised.device as usize];
        let path = format!(
            "/api/alarm/DEVICE/{id}?pageSize={WATCH_ALARMS_READ}&page=0&sortProperty=createdTime&sortOrder=DESC"
        );
        let answer = client.rest().get(&path)?;
        let alarms = answer["data"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(alarms
            .iter()
            .any(|alarm| alarm["type"] == *self.alarm_type && raising_number(alarm) == Some(raised.number)))
    }

    /// Notes a look, and when to look again.
    fn looked(&self, raised: Raised, begun: Instant, found: Result<bool, RestError>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.is_over {
            return;
        }
        state.looks.requests += 1;
        state.looks.took += now - begun;
        match found {
            Ok(true) => {
                state.missing -= 1;
                state.looks.found += 1;
                let epoch = state.epoch.unwrap_or(raised.acknowledged);
                let since_ns = |at: Instant| u64::try_from((at - epoch).as_nanos()).unwrap_or(u64::MAX);
                let at_ns = since_ns(raised.acknowledged);
                let operation = Operation { class: self.class, intended_ns: at_ns, sent_ns: at_ns };
                state.recorder.completed(&operation, since_ns(now), 0);
            }
            Ok(false) => {
                let age_us = u64::try_from((now - raised.acknowledged).as_micros()).unwrap_or(u64::MAX);
                let pause = Duration::from_micros(WATCH_PAUSE_MIN_US.max(age_us / WATCH_PAUSE_SHARE));
                state.due.push(Reverse((now + pause, raised)));
                self.changed.notify_one();
            }
            Err(error) => {
                state.missing -= 1;
                state.recorder.failed(self.class, &error.to_string());
            }
        }
    }
}

/// The number of the message that raised an alarm, from the speed in its details; `None` if they have none.
pub(super) fn raising_number(alarm: &Value) -> Option<u64> {
    raised_by(alarm["details"]["data"].as_str()?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn watch() -> Watch {
        let window = Window { from_ns: 0, until_ns: u64::MAX };
        Watch::new(vec!["id".to_owned()], "hot".to_owned(), 1, window, 2)
    }

    fn raised(number: u64) -> Raised {
        Raised { acknowledged: Instant::now(), device: 0, number }
    }

    #[test]
    fn an_alarm_that_is_not_there_is_looked_for_again_until_it_is_found() {
        let watch = watch();
        watch.begin(Instant::now());
        watch.raised(raised(7));
        for is_found in [false, false, true] {
            let next = watch.next().unwrap();
            assert_eq!(next.number, 7);
            assert!(watch.is_missing());
            watch.looked(next, Instant::now(), Ok(is_found));
        }
        assert!(!watch.is_missing());
        let (recorder, last, looks) = watch.end();
        assert_eq!((recorder.total().counts.completed, recorder.total().counts.errors_total()), (1, 0));
        assert_eq!((recorder.classes()[1].clocks.response.len(), last.classes[1].completed), (1, 1));
        assert_eq!((looks.found, looks.requests), (1, 3));
        assert_eq!(watch.next(), None, "the threads end");
    }

    #[test]
    fn an_alarm_that_never_comes_is_a_failure() {
        let watch = watch();
        watch.raised(raised(1));
        watch.raised(raised(2));
        let next = watch.next().unwrap();
        assert_eq!(next.number, 1, "the oldest first");
        let (recorder, ..) = watch.end();
        assert_eq!(recorder.total().counts.failed, 2);
        watch.looked(next, Instant::now(), Ok(true));
    }

    #[test]
    fn an_alarm_says_which_message_raised_it() {
        assert_eq!(raising_number(&json!({ "details": { "data": "1000000042.0" } })), Some(42));
        assert_eq!(raising_number(&json!({ "details": { "data": "1.000000042E9" } })), Some(42));
        assert_eq!(raising_number(&json!({ "details": { "data": "150.5" } })), None);
        assert_eq!(raising_number(&json!({ "details": null })), None);
    }
}

//! What the clients of a phase did, and what it says.

use std::collections::BTreeSet;

use load::engine::SegmentOutcome;
use load::result::{Check, Phase, RunResult};

use super::live::LiveCounts;
use super::newest_messages::Difference;
use super::rules::{AlarmKey, FoundAlarms};
use super::watch::Looks;
use crate::driver::Verdict;

/// What the sockets of a phase received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveTally {
    pub(super) sockets: u32,
    pub(super) each: u32,
    pub(super) counts: LiveCounts,
    /// Places whose newest value is not the one acknowledged last, and the first of them.
    pub(super) different: u64,
    pub(super) first: Option<Difference>,
    /// Sockets that never read, and how many of them the server has closed.
    pub(super) unread: (u32, usize),
    /// The class of deliveries.
    pub(super) class: u16,
}

/// What the sockets of a phase asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageTally {
    pub(super) compared: u64,
    pub(super) wrong: u64,
}

/// What the clients of a phase created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CreateTally {
    /// The beginning of the names of the devices.
    pub(super) prefix: String,
    pub(super) asked: u64,
    pub(super) created: u64,
    pub(super) class: u16,
}

/// What the messages of a phase raised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AlarmTally {
    /// Devices and numbers of acknowledged messages that raise an alarm.
    pub(super) raised: BTreeSet<(u32, u64)>,
    /// Those without an acknowledgement.
    pub(super) unknown: BTreeSet<(u32, u64)>,
    pub(super) looks: Looks,
    pub(super) profiles: u32,
}

impl LiveTally {
    pub(super) fn verdict(&self, name: &str, segment: &SegmentOutcome) -> Verdict {
        let Self { sockets, each, counts, different, first, unread: (unread, closed), class } = self;
        let check = |what: &str, found: u64| Check::equal(format!("{what} ({name})"), 0, found);
        let checks = vec![
            check("first values that are not the ones acknowledged last", counts.stale),
            check("last values that are not the ones acknowledged last", *different),
            check("values older than one before", counts.back),
            check("values that were not sent to this socket", counts.foreign),
        ];
        let of_class = &segment.recorder.classes()[usize::from(*class)].counts;
        let rate = of_class.completed_within_window as f64 / segment.measured.as_secs_f64().max(1e-9);
        let LiveCounts { received, skipped, again, bytes, .. } = counts;
        let first = first.map(|Difference { socket, device, received, acknowledged }| {
            let last =
                |next: u64| next.checked_sub(1).map_or("none".to_owned(), |last| format!("number {last}"));
            format!(
                " First difference: socket {socket} has {} of device {device}, acknowledged was {}.",
                last(received),
                last(acknowledged)
            )
        });
        let mut findings = vec![format!(
            "{name}: {sockets} sockets with {each} devices each got {received} new values ({rate:.0}/s in the measured part) in {:.1} MB; \
             {skipped} more were coalesced into a newer one before they were sent, {again} came again.{}",
            *bytes as f64 / 1e6,
            first.unwrap_or_default()
        )];
        if *unread > 0 {
            findings.push(format!(
                "{name}: {unread} more sockets subscribed and never read; the server has closed {closed} of them by the end."
            ));
        }
        Verdict { checks, findings }
    }
}

impl PageTally {
    pub(super) fn verdict(&self, name: &str, devices: usize) -> Verdict {
        let Self { compared, wrong } = self;
        Verdict {
            checks: vec![Check::equal(format!("devices with wrong values in pages ({name})"), 0, wrong)],
            findings: vec![format!(
                "{name}: {compared} values of pages of {devices} devices were compared with what was written."
            )],
        }
    }
}

impl CreateTally {
    /// `counted` is the number of devices that the server lists.
    pub(super) fn verdict(&self, name: &str, counted: u64, segment: &SegmentOutcome) -> Verdict {
        let Self { asked, created, class, .. } = self;
        // A request without an answer may have created its device.
        let expected = counted.clamp(*created, *asked);
        let of_class = &segment.recorder.classes()[usize::from(*class)].counts;
        let rate = of_class.completed_within_window as f64 / segment.measured.as_secs_f64().max(1e-9);
        Verdict {
            checks: vec![Check::equal(format!("devices that the server lists ({name})"), expected, counted)],
            findings: vec![format!(
                "{name}: {created} devices were created ({rate:.0}/s), and GET /api/tenant/devices counts {counted}."
            )],
        }
    }
}

impl AlarmTally {
    /// `found` are the alarms that the server has of this run, of all phases. `before` were raised by earlier phases.
    pub(super) fn verdict(&self, name: &str, found: &FoundAlarms, before: &BTreeSet<(u32, u64)>) -> Verdict {
        let has = |key: &(u32, u64)| found.get(&(Some(key.0), Some(key.1))).copied().unwrap_or(0);
        let missing: Vec<&(u32, u64)> = self.raised.iter().filter(|key| has(key) == 0).collect();
        let twice = found.values().filter(|count| **count > 1).count();
        let is_known = |key: &AlarmKey| match key {
            (Some(device), Some(number)) => {
                let key = (*device, *number);
                self.raised.contains(&key) || self.unknown.contains(&key) || before.contains(&key)
            }
            _ => false,
        };
        let foreign = found.keys().filter(|key| !is_known(key)).count();
        let check = |what: &str, found: usize| Check::equal(format!("{what} ({name})"), 0, found);
        let first = missing.first().map(|(device, number)| {
            format!(" The first that is missing: of message {number} of device {device}.")
        });
        let Looks { found: timed, requests, took } = self.looks;
        let each_us = took.as_secs_f64() * 1e6 / requests.max(1) as f64;
        Verdict {
            checks: vec![
                check("acknowledged messages above the limit without an alarm", missing.len()),
                check("messages with more than one alarm", twice),
                check("alarms that no message raised", foreign),
            ],
            findings: vec![
                format!(
                    "{name}: {} acknowledged messages were above the limit of a rule, in {} device profiles; {timed} alarms were timed.{}",
                    self.raised.len(),
                    self.profiles,
                    first.unwrap_or_default()
                ),
                format!(
                    "{name}: looking for alarms took {requests} requests of {each_us:.0} us on average. One request is the least that \
                     an alarm can take, and the server's CPU time contains all of them."
                ),
            ],
        }
    }
}

/// Compares the time to a PUBACK of the phases without sockets with that of the phases with sockets.
pub(super) fn ingest(
    result: &RunResult,
    with_sockets: impl Fn(&str) -> bool,
    publish: &str,
) -> Option<String> {
    let p99 = |phase: &Phase| {
        let operation = phase.operations.iter().find(|operation| operation.name == publish)?;
        let quantiles = &operation.response.as_ref()?.quantiles;
        Some(quantiles.iter().find(|known| known.quantile == 0.99)?.value_us / 1e3)
    };
    let measured = || result.phases.iter().filter(|phase| phase.measured);
    let alone = measured().find(|phase| !with_sockets(&phase.name))?;
    let followed = measured().find(|phase| with_sockets(&phase.name))?;
    let (before_ms, after_ms) = (p99(alone)?, p99(followed)?);
    Some(format!(
        "Ingest: the 99th percentile of {publish} is {before_ms:.2} ms without sockets ({}) and {after_ms:.2} ms with them ({}).",
        alone.name, followed.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(verdict: &Verdict) -> Vec<&str> {
        let failed = verdict.checks.iter().filter(|check| !check.passed);
        failed.map(|check| check.what.as_str()).collect()
    }

    #[test]
    fn each_alarm_must_be_there_once() {
        let tally = AlarmTally {
            raised: BTreeSet::from([(0, 5), (1, 4)]),
            unknown: BTreeSet::from([(2, 3)]),
            looks: Looks::default(),
            profiles: 1,
        };
        let before = BTreeSet::from([(0, 1)]);
        let judged =
            |alarms: &[(AlarmKey, u64)]| tally.verdict("run", &alarms.iter().copied().collect(), &before);
        let known = |device, number| (Some(device), Some(number));
        let right = [(known(0, 5), 1), (known(1, 4), 1), (known(0, 1), 1)];
        assert!(wrong(&judged(&right)).is_empty());
        let with = |other| right.iter().copied().chain([other]).collect::<Vec<_>>();
        assert!(wrong(&judged(&with((known(2, 3), 1)))).is_empty(), "without an ack it may be there");
        assert_eq!(
            wrong(&judged(&right[1..])),
            ["acknowledged messages above the limit without an alarm (run)"]
        );
        assert_eq!(wrong(&judged(&with((known(0, 5), 2)))), ["messages with more than one alarm (run)"]);
        for odd in [known(0, 6), (None, Some(5)), (Some(0), None)] {
            assert_eq!(wrong(&judged(&with((odd, 1)))), ["alarms that no message raised (run)"]);
        }
    }
}

//! One side of a comparison in slices: the run of one scenario, which waits for its slices.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use load::engine::{SegmentOutcome, Slice, SliceSource};
use load::process::own_cpu;
use load::result::Cost;
use load::server_process::ServerProcess;
use parking_lot::Mutex;

use super::meter::Metered;

/// The result of one slice.
#[derive(Debug)]
pub(crate) struct SliceResult {
    pub(crate) outcome: SegmentOutcome,
    /// CPU time of the target, from before the first operation to after the last answer.
    pub(crate) target_cpu: Option<Duration>,
}

#[derive(Debug)]
pub(super) enum SideEvent {
    /// The side waits for its next slice.
    Ready,
    SliceDone(Box<SliceResult>),
}

/// The channels of one side: it receives slices and sends events.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) slices: mpsc::Receiver<Slice>,
    pub(super) events: mpsc::Sender<SideEvent>,
    /// Whether both sides use one server. Its counters then contain both.
    pub(super) shares_target: bool,
}

/// Sums over the slices of a side.
#[derive(Debug, Clone, Copy, Default)]
struct SliceTotals {
    generator: Duration,
    target: Option<Duration>,
    completed: u64,
    took: Duration,
    /// The time of the first lost connection.
    lost_at: Option<Instant>,
}

/// Gives the engine its slices and measures their cost.
#[derive(Debug)]
pub(super) struct SideRunner {
    slices: Mutex<mpsc::Receiver<Slice>>,
    events: mpsc::Sender<SideEvent>,
    server: Option<ServerProcess>,
    /// The start of the slice, with the CPU times of that moment.
    began: Mutex<Option<(Instant, Duration, Option<Duration>)>>,
    sum: Mutex<SliceTotals>,
}

impl SideRunner {
    pub(super) fn new(side: Side, server: Option<ServerProcess>) -> Self {
        Self {
            slices: Mutex::new(side.slices),
            events: side.events,
            server,
            began: Mutex::default(),
            sum: Mutex::default(),
        }
    }

    fn server_cpu(&self) -> Option<Duration> {
        self.server.as_ref().and_then(ServerProcess::cpu)
    }

    /// The time of the first lost connection in seconds after `began`, slices of the other side included.
    pub(super) fn first_loss_s(&self, began: Instant) -> Option<f64> {
        let lost_at = self.sum.lock().lost_at?;
        Some(lost_at.saturating_duration_since(began).as_secs_f64())
    }

    /// The cost of all slices. The phase began at `began`.
    pub(super) fn metered(&self, began: Instant) -> Metered {
        let SliceTotals { generator, target, completed, took, .. } = *self.sum.lock();
        let per_operation =
            |cpu: Duration| (completed > 0).then(|| cpu.as_secs_f64() * 1e6 / completed as f64);
        let percent =
            |cpu: Duration| (!took.is_zero()).then(|| cpu.as_secs_f64() * 100.0 / took.as_secs_f64());
        Metered {
            began,
            cost: Cost {
                generator_cpu_us_per_operation: per_operation(generator),
                generator_cpu_percent: percent(generator),
                generator_polling_percent: None,
                target_cpu_us_per_operation: target.and_then(per_operation),
                target_cpu_percent: target.and_then(percent),
                target_rss_bytes_max: self.server.as_ref().and_then(ServerProcess::rss_bytes),
                target_rss_bytes_per_connection: None,
            },
            generator_cpu_s: generator.as_secs_f64(),
            // Steal time affects both sides alike, and the interval contains its effect on their ratio.
            steal: None,
        }
    }
}

impl SliceSource for SideRunner {
    fn next(&self) -> Option<Slice> {
        // If the interleaver has stopped listening the comparison is over, and no slice follows.
        let _ = self.events.send(SideEvent::Ready);
        let slice = self.slices.lock().recv().ok()?;
        *self.began.lock() = Some((Instant::now(), own_cpu(), self.server_cpu()));
        Some(slice)
    }

    fn over(&self, outcome: SegmentOutcome) {
        let (target_now, generator_now) = (self.server_cpu(), own_cpu());
        let Some((at, generator, target)) = self.began.lock().take() else { return };
        let target_cpu = target_now.zip(target).map(|(now, before)| now.saturating_sub(before));
        let mut sum = self.sum.lock();
        sum.generator += generator_now.saturating_sub(generator);
        sum.target = target_cpu.map(|cpu| cpu + sum.target.unwrap_or_default());
        sum.completed += completed(&outcome);
        sum.took += at.elapsed();
        sum.lost_at = sum.lost_at.or_else(|| Some(at + Duration::from_secs_f64(outcome.first_loss_s?)));
        let _ = self.events.send(SideEvent::SliceDone(Box::new(SliceResult { outcome, target_cpu })));
    }
}

/// The number of answers in a slice, including those outside of its measured part.
pub(crate) fn completed(outcome: &SegmentOutcome) -> u64 {
    outcome.recorder.classes().iter().map(|class| class.counts.completed).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::engine::Ended;
    use load::recorder::{Recorder, Window};

    #[test]
    fn a_loss_has_the_second_of_the_run_and_the_first_counts() {
        let ((to_side, slices), (events, _from_side)) = (mpsc::channel(), mpsc::channel());
        let runner = SideRunner::new(Side { slices, events, shares_target: false }, None);
        let began = Instant::now();
        assert_eq!(runner.first_loss_s(began), None);
        // The other side had slices for ten seconds.
        let began = began.checked_sub(Duration::from_secs(10)).unwrap();
        for first_loss_s in [None, Some(0.5), Some(0.25)] {
            to_side.send(Slice { warmup: Duration::ZERO, duration: Duration::ZERO, seed: 1 }).unwrap();
            runner.next().unwrap();
            runner.over(SegmentOutcome {
                recorder: Recorder::new(Window::default(), 1),
                started_ms: 0,
                measured: Duration::ZERO,
                ended: Ended::Planned,
                first_loss_s,
            });
        }
        let at_s = runner.first_loss_s(began).unwrap();
        assert!(at_s >= 10.5, "{at_s}");
    }
}

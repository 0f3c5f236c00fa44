//! Two runs of one phase that take turns: both sides stay connected and warm, and while one has its turn nothing of the
//! other is in flight. What disturbs a machine for longer than a slice disturbs both alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::book::INTERRUPTED;
use super::gates::{Facts, judge};
use super::meter::Metered;
use super::{Options, driver, plan, run_seated};
use crate::ab::Arm;
use crate::engine::{Ended, SegmentOutcome, Turn, Turns};
use crate::error::{Error, Result};
use crate::limits::SLICE_MS;
use crate::lives::Lives;
use crate::options::Context;
use crate::process::own_cpu;
use crate::recorder::{Class, Sends};
use crate::result::{Bundle, Cost, Partial};
use crate::scenario::{Arrival, Phase, Scenario};

/// Default length of a slice in which a driver of the event engine has the processors, milliseconds: some thousand operations of a
/// fast server, and shorter than most of what a neighbour does.
pub(super) const SLICE_MS_EVENTS: u32 = 20;
/// The same of a driver with a thread for each connection, which come and go more slowly.
pub(super) const SLICE_MS_THREADS: u32 = 50;

/// What became of one turn.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) outcome: SegmentOutcome,
    /// CPU time of the target from before the first operation to after the last answer.
    pub(crate) target_cpu: Option<Duration>,
}

#[derive(Debug)]
enum Told {
    /// The side waits for its turn.
    Ready,
    Over(Box<Slice>),
}

/// A side's end of the table: where its run waits for its turns.
#[derive(Debug)]
pub(super) struct Seat {
    turns: mpsc::Receiver<Turn>,
    told: mpsc::Sender<Told>,
    /// Both sides use one server, whose counters then are those of both.
    pub(super) shares_target: bool,
}

/// CPU time and length of turns.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    generator: Duration,
    target: Option<Duration>,
    completed: u64,
    took: Duration,
    /// When the first connection was lost.
    lost_at: Option<Instant>,
}

/// Leads the run of one side.
#[derive(Debug)]
pub(super) struct Player {
    turns: Mutex<mpsc::Receiver<Turn>>,
    told: mpsc::Sender<Told>,
    server: Option<Lives>,
    /// Begin of the turn with the CPU times of that moment.
    began: Mutex<Option<(Instant, Duration, Option<Duration>)>>,
    sum: Mutex<Spent>,
}

impl Player {
    pub(super) fn new(seat: Seat, server: Option<Lives>) -> Self {
        Self {
            turns: Mutex::new(seat.turns),
            told: seat.told,
            server,
            began: Mutex::default(),
            sum: Mutex::default(),
        }
    }

    fn server_cpu(&self) -> Option<Duration> {
        self.server.as_ref().and_then(Lives::cpu)
    }

    /// When the first connection was lost, seconds after `began`: most of the time since then belongs to no turn of this side.
    pub(super) fn first_loss_s(&self, began: Instant) -> Option<f64> {
        let lost_at = self.sum.lock().lost_at?;
        Some(lost_at.saturating_duration_since(began).as_secs_f64())
    }

    /// What all turns together cost; the run began its phase at `began`.
    pub(super) fn metered(&self, began: Instant) -> Metered {
        let Spent { generator, target, completed, took, .. } = *self.sum.lock();
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
                target_rss_bytes_max: self.server.as_ref().and_then(Lives::rss_bytes),
                target_rss_bytes_per_connection: None,
            },
            generator_cpu_s: generator.as_secs_f64(),
            // It takes from both sides alike, and what it does to their ratio is in the interval.
            steal: None,
        }
    }
}

impl Turns for Player {
    fn next(&self) -> Option<Turn> {
        // Without somebody who listens the comparison is over, and no turn comes.
        let _ = self.told.send(Told::Ready);
        let turn = self.turns.lock().recv().ok()?;
        *self.began.lock() = Some((Instant::now(), own_cpu(), self.server_cpu()));
        Some(turn)
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
        let _ = self.told.send(Told::Over(Box::new(Slice { outcome, target_cpu })));
    }
}

/// Answers of a turn, those before and after its measured part included.
pub(crate) fn completed(outcome: &SegmentOutcome) -> u64 {
    outcome.recorder.classes().iter().map(|class| class.counts.completed).sum()
}

/// Where both sides sit.
#[derive(Debug)]
pub(crate) struct Table {
    seats: [(mpsc::Sender<Turn>, mpsc::Receiver<Told>); 2],
}

impl Table {
    /// One turn of one side. Nothing of either side is in flight before it, nor after it.
    pub(crate) fn play(&self, arm: Arm, turn: Turn) -> Result<Slice> {
        let (turns, told) = &self.seats[arm as usize];
        let gone = || Error::Verdict(format!("side {arm:?} has ended"));
        turns.send(turn).map_err(|_| gone())?;
        let Ok(Told::Over(slice)) = told.recv() else { return Err(gone()) };
        match slice.outcome.ended {
            Ended::Planned => {}
            Ended::Finished => {
                return Err(Error::Options(format!(
                    "the load of side {arm:?} has an end of its own; compare it by whole runs: --slice-ms 0"
                )));
            }
            Ended::Stopped => return Err(interrupted()),
            Ended::Silent | Ended::AllLost => return Err(gone()),
        }
        self.wait(arm)?;
        Ok(*slice)
    }

    /// Until a side is ready for its turn.
    fn wait(&self, arm: Arm) -> Result<()> {
        match self.seats[arm as usize].1.recv() {
            Ok(Told::Ready) => Ok(()),
            _ => Err(Error::Verdict(format!("side {arm:?} has ended"))),
        }
    }
}

/// What Ctrl-C leaves of a comparison or search.
pub(crate) fn interrupted() -> Error {
    Error::Verdict(format!("{INTERRUPTED}: there is no answer"))
}

/// Runs one phase of two scenarios at once and lets `lead` say whose turn it is. Returns what it answered, and what each side
/// measured in all, where it came so far. Without an answer a side is partial, or has the fault that ended it.
pub(crate) fn alternate<T>(
    sides: [&Scenario; 2],
    phase: &str,
    context: &Context,
    stop: &Arc<AtomicBool>,
    lead: impl FnOnce(&Table) -> Result<T>,
) -> (Result<T>, [Option<Bundle>; 2]) {
    let shares_target = sides[0].target.url == sides[1].target.url;
    let (led, sides) = thread::scope(|scope| {
        let take_seat = |scenario| {
            let (to_side, turns) = mpsc::channel();
            let (told, from_side) = mpsc::channel();
            let seat = Seat { turns, told, shares_target };
            let phases = vec![String::from(phase)];
            let options = Options { phases, quiet: true, stop: Arc::clone(stop), ..Options::default() };
            let run =
                scope.spawn(move || run_seated(scenario, &options, context, &mut super::alone, Some(seat)));
            ((to_side, from_side), run)
        };
        let (seat_a, run_a) = take_seat(sides[0]);
        let (seat_b, run_b) = take_seat(sides[1]);
        let table = Table { seats: [seat_a, seat_b] };
        let led =
            [Arm::A, Arm::B].into_iter().try_for_each(|arm| table.wait(arm)).and_then(|()| lead(&table));
        // Sides that wait for a turn end.
        drop(table);
        (led, [run_a, run_b].map(|run| run.join().expect("BUG: a side panicked")))
    });
    match (led, sides) {
        (Ok(answer), [Ok(a), Ok(b)]) => (Ok(answer), [Some(a), Some(b)]),
        (led, sides) => {
            let error = led.err().unwrap_or_else(|| Error::Verdict("a side has no result".to_owned()));
            let (error, sides) = without_answer(error, sides, stop.load(Ordering::Relaxed));
            (Err(error), sides)
        }
    }
}

/// Why there is no answer, and what is worth keeping of both sides.
fn without_answer(
    error: Error,
    sides: [Result<Bundle>; 2],
    is_stopped: bool,
) -> (Error, [Option<Bundle>; 2]) {
    let mut failed = None;
    let mut sides = sides.map(|side| side.map_err(|error| failed = failed.take().or(Some(error))).ok());
    // A side knows better than the leader why it ended.
    let error = match failed.or_else(|| first_fault(&sides)) {
        _ if is_stopped => interrupted(),
        Some(of_side) => of_side,
        None => error,
    };
    let reason = if is_stopped { INTERRUPTED.to_owned() } else { error.to_string() };
    for side in sides.iter_mut().flatten() {
        let result = &mut side.result;
        if result.partial.is_none() && result.faults.is_empty() {
            result.partial = Some(Partial { reason: reason.clone(), at_s: result.took_s });
            result.settle();
        }
    }
    // A side that had no turn has nothing to keep.
    (error, sides.map(|side| side.filter(|side| !side.result.phases.is_empty())))
}

fn first_fault(sides: &[Option<Bundle>; 2]) -> Option<Error> {
    let of_both = [Arm::A, Arm::B].into_iter().zip(sides).filter_map(|(arm, side)| {
        let fault = side.as_ref()?.result.faults.first()?;
        Some((arm, fault))
    });
    let (arm, fault) = of_both.min_by(|(_, one), (_, other)| one.at_s.total_cmp(&other.at_s))?;
    Some(Error::Verdict(format!("side {arm:?}, second {:.0}: {}", fault.at_s, fault.what)))
}

/// Whether a phase can be cut into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Into slices of so many milliseconds, unless something else is asked for.
    Usual(u32),
    /// Only where it is asked for: a load on a schedule. Whole runs count everybody who came while the server stood still, and
    /// slices those of one slice.
    Asked,
    /// Not at all: a driver that works otherwise, or a load that has an end of its own.
    Never,
}

impl Cut {
    /// That of two sides which take turns.
    pub(crate) fn of_both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Usual(a), Self::Usual(b)) => Self::Usual(a.max(b)),
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Asked, _) | (_, Self::Asked) => Self::Asked,
        }
    }
}

/// How a phase can be cut.
pub(crate) fn cut(scenario: &Scenario, phase: &Phase) -> std::result::Result<Cut, String> {
    let all_are = |kinds: &[Arrival]| phase.mixes.iter().all(|mix| kinds.contains(&mix.arrival));
    let counted = |own: &toml::Table| own.contains_key("requests");
    let ends = counted(&scenario.dataset) || phase.mixes.iter().any(|mix| counted(&mix.own));
    let Some(ms) = driver(scenario)?.slice_ms(phase) else { return Ok(Cut::Never) };
    if ends || phase.duration.is_none() || !all_are(&[Arrival::Closed, Arrival::Poisson, Arrival::Fixed]) {
        return Ok(Cut::Never);
    }
    if !all_are(&[Arrival::Closed]) {
        return Ok(Cut::Asked);
    }
    // A connection that pauses has its operation in each slice.
    let ms = ms.max(phase.pause_ms());
    Ok(if SLICE_MS.contains(&ms) { Cut::Usual(ms) } else { Cut::Never })
}

/// Why what a side did in some slices does not count, by the scenario's gates.
pub(crate) fn fault(total: &Class, scenario: &Scenario, phase: &Phase) -> Option<String> {
    let loads = plan::segments(phase, scenario).swap_remove(0).loads;
    let sends = Sends::default();
    let facts = Facts { total, sends: &sends, loads: &loads, metered: None, threads: phase.threads };
    judge(&facts, &scenario.gates).into_iter().find(|gate| !gate.passed).map(|gate| gate.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Recorder, Window};

    #[test]
    fn two_sides_are_cut_where_both_can_be() {
        use Cut::{Asked, Never, Usual};
        assert_eq!(Usual(20).of_both(Usual(100)), Usual(100));
        assert_eq!((Usual(20).of_both(Asked), Asked.of_both(Asked)), (Asked, Asked));
        assert_eq!((Asked.of_both(Never), Never.of_both(Usual(20))), (Never, Never));
    }

    #[test]
    fn loads_on_a_schedule_are_cut_where_it_is_asked_for() {
        let cut = |name: &str, phase: &str, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load(name, &sets).unwrap();
            let phase = scenario.phases.iter().find(|known| known.name == phase).unwrap();
            super::cut(&scenario, phase).unwrap()
        };
        let closed = ["phase.run.arrival=closed"];
        assert_eq!(cut("gemini-str32", "run", &closed), Cut::Usual(SLICE_MS_EVENTS));
        assert_eq!(cut("gemini-str32", "run", &["phase.run.arrival=fixed"]), Cut::Asked);
        assert_eq!(cut("gemini-mix", "run", &["phase.run.mix.hash.arrival=closed"]), Cut::Asked);
        assert_eq!(cut("gemini-str32", "load", &[]), Cut::Never, "it has an end of its own");
        assert_eq!(cut("http-steps", "climb", &[]), Cut::Never, "each step has a result of its own");
        assert_eq!(cut("thingsboard-reconnect", "ramp", &[]), Cut::Never);
        assert_eq!(cut("slb-s1", "connections", &[]), Cut::Never);
    }

    #[test]
    fn a_loss_has_the_second_of_the_run_and_the_first_counts() {
        let ((to_side, turns), (told, _from_side)) = (mpsc::channel(), mpsc::channel());
        let player = Player::new(Seat { turns, told, shares_target: false }, None);
        let began = Instant::now();
        assert_eq!(player.first_loss_s(began), None);
        // The other side had its turns for ten seconds.
        let began = began.checked_sub(Duration::from_secs(10)).unwrap();
        for first_loss_s in [None, Some(0.5), Some(0.25)] {
            to_side.send(Turn { warmup: Duration::ZERO, duration: Duration::ZERO, seed: 1 }).unwrap();
            player.next().unwrap();
            player.over(SegmentOutcome {
                recorder: Recorder::new(Window::default(), 1),
                started_ms: 0,
                measured: Duration::ZERO,
                ended: Ended::Planned,
                first_loss_s,
            });
        }
        let at_s = player.first_loss_s(began).unwrap();
        assert!(at_s >= 10.5, "{at_s}");
    }
}

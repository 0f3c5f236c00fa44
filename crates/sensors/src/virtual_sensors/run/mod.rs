//! The execution of a plan: elements in, rows of the output out. The caller brings the time.

mod checkpoint;
mod class;
mod counters;
mod named_row;
mod output;
mod reorder;
mod resume;
mod stream;
mod window;

pub use checkpoint::{Checkpoint, NeededElements};
pub use class::Chart;
pub use counters::Counters;
pub use output::OutputRow;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use class::State;
use named_row::NamedRow;
use output::Output;
use reorder::{Placement, Reorder};
use stream::Stream;

use super::limits::{TICKS_PER_CALL_MAX, TIMED_MAX};
use super::plan::{Plan, SourceId};
use super::sql::meter::Meter;
use super::sql::{Datum, Row};

/// A virtual sensor that runs.
///
/// Without a lateness the clock is the caller's: each call states what time it is. With one the clock is the time of the elements:
/// they wait in the order of their times until one comes that is later by the lateness, and then the clock is at their own.
#[derive(Debug)]
pub struct Sensor {
    plan: Arc<Plan>,
    streams: Vec<Stream>,
    class: State,
    /// Rows of the class on their way to the output.
    given: Vec<NamedRow>,
    output: Output,
    reorder: Option<Reorder>,
    counters: Counters,
    /// Counts the work of each execution.
    meter: Meter,
    /// Whether it continues from a checkpoint.
    is_restored: bool,
}

/// What moves next by itself.
enum Turn {
    Window { stream: usize, source: usize },
    Class,
}

impl Sensor {
    /// A sensor that has seen nothing. `lateness` is in milliseconds.
    pub fn new(plan: Arc<Plan>, lateness: Option<i64>) -> Self {
        let streams = plan.streams.iter().map(Stream::new).collect();
        let class = State::new(&plan);
        let reorder = lateness.map(|lateness| Reorder::new(lateness.max(0)));
        let (output, counters) = (Output::default(), Counters::default());
        let (given, meter) = (Vec::new(), Meter::default());
        Self { plan, streams, class, given, output, reorder, counters, meter, is_restored: false }
    }

    /// Its executions end in their middle when this flag is set. Then it must not be used any more.
    pub fn ending_with(mut self, end: Arc<AtomicBool>) -> Self {
        self.meter = Meter::ending_with(end);
        self
    }

    /// Whether an execution was ended in its middle.
    pub fn was_cut(&self) -> bool {
        self.meter.was_cut()
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// An element of a source comes; `field` gives its values by the names of its fields. Rows of the output are added to `out`.
    pub fn element(
        &mut self,
        id: SourceId,
        timed: i64,
        now: i64,
        field: &mut dyn FnMut(&str) -> Datum,
        out: &mut Vec<OutputRow>,
    ) {
        self.counters.elements += 1;
        if timed.checked_abs().is_none_or(|timed| timed > TIMED_MAX) {
            let reason = format!("the time {timed} is out of range; at most {TIMED_MAX} (TIMED_MAX)");
            return self.counters.fault(reason);
        }
        let now = now.clamp(-TIMED_MAX, TIMED_MAX);
        let row = self.row(id, timed, field);
        let Some(reorder) = &mut self.reorder else {
            self.arrive(id, timed, &row, now, out);
            return;
        };
        match reorder.add(timed, id, row) {
            Placement::Waits => {}
            Placement::IsLate => self.counters.late += 1,
            Placement::PushesOut => self.counters.released_early += 1,
        }
        while let Some((timed, id, row)) = self.reorder.as_mut().and_then(Reorder::next) {
            self.arrive(id, timed, &row, timed, out);
        }
    }

    /// No element of an earlier time than `until` is expected: what waits for late ones continues, and slides in time before `until` are
    /// made.
    pub fn advance(&mut self, until: i64, out: &mut Vec<OutputRow>) {
        let until = until.clamp(-TIMED_MAX, TIMED_MAX);
        if let Some(reorder) = &mut self.reorder {
            reorder.pass(until);
        }
        while let Some((timed, id, row)) = self.reorder.as_mut().and_then(Reorder::next) {
            self.arrive(id, timed, &row, timed, out);
        }
        self.turn_until(until, out);
    }

    /// The clock of the caller continues without an element. In event time this has no effect.
    pub fn tick(&mut self, now: i64, out: &mut Vec<OutputRow>) {
        if self.reorder.is_none() {
            self.turn_until(now.clamp(-TIMED_MAX, TIMED_MAX) + 1, out);
        }
    }

    /// Nothing more comes: what waits for late elements continues.
    pub fn finish(&mut self, out: &mut Vec<OutputRow>) {
        while let Some((timed, id, row)) = self.reorder.as_mut().and_then(Reorder::take_first) {
            self.arrive(id, timed, &row, timed, out);
        }
    }

    /// When [`Self::tick`] next has something to do.
    pub fn next_deadline(&self) -> Option<i64> {
        self.next_turn().map(|(at, _)| at)
    }

    /// What the sensor has done so far.
    pub fn counters(&self) -> Counters {
        let overflowed = self.streams.iter().map(Stream::overflowed).sum();
        Counters { overflowed, ..self.counters.clone() }
    }

    /// The chart of the newest rows, of a sensor of the class Chart.
    pub fn chart(&self) -> Option<Chart> {
        self.class.chart()
    }

    /// Elements that the sensor holds.
    pub fn elements_held(&self) -> usize {
        let waiting = self.reorder.as_ref().map_or(0, Reorder::len);
        self.streams.iter().map(Stream::elements).sum::<usize>() + waiting
    }

    /// Bytes that the sensor holds for its elements and groups, about.
    pub fn bytes_held(&self) -> usize {
        let waiting = self.reorder.as_ref().map_or(0, Reorder::bytes);
        self.streams.iter().map(Stream::bytes).sum::<usize>() + waiting
    }

    /// The row of an element.
    fn row(&self, id: SourceId, timed: i64, field: &mut dyn FnMut(&str) -> Datum) -> Row {
        let columns = &self.plan.source(id).columns;
        let rest = columns[1..].iter().map(|name| field(name));
        std::iter::once(Datum::Int(timed)).chain(rest).collect()
    }

    fn arrive(&mut self, id: SourceId, timed: i64, row: &Row, now: i64, out: &mut Vec<OutputRow>) {
        // An element of the time of a slide is in the window that slides then.
        self.turn_until(now, out);
        let stream = &self.plan.streams[id.stream];
        match self.streams[id.stream].push(stream, id.source, timed, row, now) {
            Ok(true) => self.execute(id.stream, id.source, now, out),
            Ok(false) => {}
            Err(reason) => self.counters.fault(reason),
        }
    }

    /// Lets everything move that is due before a time. After a long time only the last turns of each clock are made.
    fn turn_until(&mut self, end: i64, out: &mut Vec<OutputRow>) {
        for _ in 0..TICKS_PER_CALL_MAX {
            if !self.turn_once(end, out) {
                return;
            }
        }
        let windows: u64 = self.streams.iter_mut().map(|stream| stream.skip_to(end - 1)).sum();
        self.counters.slides_skipped += windows + self.class.skip_to(end - 1);
        while self.turn_once(end, out) {}
    }

    /// Makes the next turn that is due before a time. Returns whether there was one.
    fn turn_once(&mut self, end: i64, out: &mut Vec<OutputRow>) -> bool {
        let Some((at, turn)) = self.next_turn().filter(|(at, _)| *at < end) else { return false };
        if self.meter.is_cut() {
            return false;
        }
        match turn {
            Turn::Window { stream, source } => {
                self.streams[stream].turn(&self.plan.streams[stream], source);
                self.execute(stream, source, at, out);
            }
            Turn::Class => {
                self.meter.begin();
                if let Err(reason) = self.class.turn(&self.meter, &mut self.counters, &mut self.given) {
                    self.counters.fault(reason);
                }
                self.publish(at, out);
            }
        }
        true
    }

    fn next_turn(&self) -> Option<(i64, Turn)> {
        let mut next: Option<(i64, Turn)> = None;
        for (at, stream) in self.streams.iter().enumerate() {
            if let Some((deadline, source)) = stream.next_deadline()
                && next.as_ref().is_none_or(|(first, _)| deadline < *first)
            {
                next = Some((deadline, Turn::Window { stream: at, source }));
            }
        }
        // Of two turns at one time, that of the window comes first.
        match (self.class.deadline(), next) {
            (Some(class), Some((first, turn))) if first <= class => Some((first, turn)),
            (Some(class), _) => Some((class, Turn::Class)),
            (None, next) => next,
        }
    }

    fn execute(&mut self, stream: usize, moved: usize, now: i64, out: &mut Vec<OutputRow>) {
        let plan = self.plan.clone();
        let stream_plan = &plan.streams[stream];
        self.meter.begin();
        match self.streams[stream].execute(stream_plan, moved, now, &self.meter, &mut self.counters) {
            Ok(rows) => {
                for row in rows {
                    // What the class does is work of the execution.
                    if let Err(reason) = self.meter.spend(row.len() as u64) {
                        return self.counters.fault(format!("stream {}: {reason}", stream_plan.name));
                    }
                    self.class_row(stream, &row, now, out);
                }
            }
            Err(reason) => self.counters.fault(format!("stream {}: {reason}", stream_plan.name)),
        }
    }

    fn class_row(&mut self, stream: usize, row: &Row, now: i64, out: &mut Vec<OutputRow>) {
        let stream = &self.plan.streams[stream];
        let columns = &stream.query.output;
        let mut named = NamedRow { timed: now, fields: Vec::with_capacity(columns.len()) };
        for (column, datum) in columns.iter().zip(row.iter()) {
            if column.name != "timed" {
                named.fields.push((column.name.clone(), datum.clone()));
            } else if let Datum::Int(timed) = datum {
                named.timed = *timed;
            } else if !datum.is_null() {
                self.counters.fault(format!("timed is {datum}, no whole number of milliseconds"));
                return;
            }
        }
        let given =
            self.class.row(&stream.name, named, now, &self.meter, &mut self.counters, &mut self.given);
        if let Err(reason) = given {
            self.counters.fault(reason);
        }
        self.publish(now, out);
    }

    /// Lets what the class has given become rows of the output.
    fn publish(&mut self, now: i64, out: &mut Vec<OutputRow>) {
        for row in self.given.drain(..) {
            match self.output.row(&self.plan, &row, now, &mut self.counters) {
                Ok(Some(row)) => out.push(row),
                Ok(None) => {}
                Err(reason) => self.counters.fault(reason),
            }
        }
    }
}

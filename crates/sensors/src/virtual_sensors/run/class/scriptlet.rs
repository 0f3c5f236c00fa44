//! The class ScriptletProcessor: scripts compute the output.

use super::super::checkpoint::ClassPoint;
use super::super::counters::Counters;
use super::super::named_row::NamedRow;
use super::clock::Clock;
use super::pause::Pause;
use crate::virtual_sensors::plan::{Plan, ScriptletPlan};
use crate::virtual_sensors::script::{Outcome, Script, State, StatePoint, TIMED};
use crate::virtual_sensors::sql::Datum;
use crate::virtual_sensors::sql::meter::Meter;

/// The value of a field that a row lacks.
static NULL: Datum = Datum::Null;

#[derive(Debug)]
pub(in crate::virtual_sensors::run) struct Scriptlet {
    scripts: ScriptletPlan,
    /// The fields of all streams: each is a variable, also in a row that lacks it.
    inputs: Vec<String>,
    outputs: Vec<String>,
    clock: Option<Clock>,
    state: State,
    pause: Pause,
}

impl Scriptlet {
    pub(super) fn new(scripts: ScriptletPlan, plan: &Plan) -> Self {
        let mut inputs = Vec::new();
        for column in plan.streams.iter().flat_map(|stream| &stream.query.output) {
            if column.name != TIMED && !inputs.contains(&column.name) {
                inputs.push(column.name.clone());
            }
        }
        let outputs = plan.output.iter().map(|field| field.name.value.clone()).collect();
        let clock = scripts.period().map(|period| Clock::new(period, None));
        Self { scripts, inputs, outputs, clock, state: State::default(), pause: Pause::default() }
    }

    pub(super) fn point(&self) -> ClassPoint {
        let Pause { stops, runs } = self.pause;
        ClassPoint::Scriptlet { next: self.deadline(), state: self.state.point(), stops, pause: runs }
    }

    pub(super) fn restore(&mut self, next: Option<i64>, state: &StatePoint, pause: Pause) {
        if let Some(clock) = &mut self.clock {
            clock.restore(next);
        }
        self.state = State::from_point(state);
        self.pause = pause;
    }

    /// A row of a stream comes. The script gives a row, unless its value is `false`.
    pub(super) fn row(
        &mut self,
        row: &NamedRow,
        now: i64,
        meter: &Meter,
        counters: &mut Counters,
    ) -> Result<Option<NamedRow>, String> {
        if let Some(clock) = &mut self.clock {
            clock.begin(now);
        }
        let Some(script) = self.scripts.for_rows.clone() else { return Ok(None) };
        let outcome = self.run(&script, row.timed, &row.fields, meter, counters)?;
        let gives = |outcome: &Outcome| self.scripts.gives_rows && outcome.answer != Some(false);
        Ok(outcome.filter(gives).map(named))
    }

    /// The clock makes a turn. The script of the clock gives a row only if its value is `true`.
    pub(super) fn turn(
        &mut self,
        meter: &Meter,
        counters: &mut Counters,
    ) -> Result<Option<NamedRow>, String> {
        let at = self.clock.as_mut().and_then(Clock::turn);
        let (Some(at), Some((_, script))) = (at, self.scripts.periodic.clone()) else { return Ok(None) };
        let outcome = self.run(&script, at, &[], meter, counters)?;
        Ok(outcome.filter(|outcome| outcome.answer == Some(true)).map(named))
    }

    pub(super) fn deadline(&self) -> Option<i64> {
        self.clock.as_ref().and_then(Clock::next)
    }

    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        self.clock.as_mut().map_or(0, |clock| clock.skip_to(time))
    }

    /// Runs a script and keeps its state; nothing if the run is left out. After a run that fails the state is as before.
    fn run(
        &mut self,
        script: &Script,
        timed: i64,
        fields: &[(String, Datum)],
        meter: &Meter,
        counters: &mut Counters,
    ) -> Result<Option<Outcome>, String> {
        if self.pause.leaves_out() {
            counters.script_runs_left_out += 1;
            return Ok(None);
        }
        let absent = self.inputs.iter().map(|name| (name.as_str(), &NULL));
        let present = fields.iter().map(|(name, datum)| (name.as_str(), datum));
        match script.run(timed, absent.chain(present), &self.outputs, &self.state, meter) {
            Ok(mut outcome) => {
                self.state = std::mem::take(&mut outcome.state);
                self.pause = Pause::default();
                Ok(Some(outcome))
            }
            Err(stop) if stop.is_runaway => {
                counters.scripts_stopped += 1;
                Err(format!("{}{}", stop.reason, self.pause.after_stop()))
            }
            Err(stop) => Err(stop.reason),
        }
    }
}

fn named(outcome: Outcome) -> NamedRow {
    NamedRow { timed: outcome.timed, fields: outcome.fields }
}

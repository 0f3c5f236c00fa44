//! Processing classes: from rows of streams to rows of the output.

mod chart;
mod clock;
mod data_clean;
mod model_fit;
mod moving_average;
mod nmea;
mod pause;
mod scriptlet;

pub use chart::Chart;

use std::collections::VecDeque;

use super::super::plan::{Class, Plan};
use super::super::sql::Datum;
use super::super::sql::meter::Meter;
use super::checkpoint::{ClassPoint, NamedPoint};
use super::counters::Counters;
use super::named_row::NamedRow;
use crate::virtual_sensors::limits::CLOCKED_ROWS_MAX;
use clock::Clock;
use data_clean::DataClean;
use moving_average::MovingAverage;
use pause::Pause;
use scriptlet::Scriptlet;

#[derive(Debug)]
pub(super) enum State {
    Bridge { allow_nulls: bool },
    Scheduled { clock: Clock, newest: Option<NamedRow> },
    Clocked { clock: Clock, rows: VecDeque<NamedRow> },
    Counter { count: i64 },
    MovingAverage(MovingAverage),
    DataClean(DataClean),
    Nmea,
    Scriptlet(Box<Scriptlet>),
    Chart(chart::Points),
}

impl State {
    pub(super) fn new(plan: &Plan) -> Self {
        match &plan.class {
            Class::Bridge { allow_nulls } => Self::Bridge { allow_nulls: *allow_nulls },
            Class::Scheduled { rate, start } => {
                Self::Scheduled { clock: Clock::new(*rate, *start), newest: None }
            }
            Class::Clocked { rate } => {
                Self::Clocked { clock: Clock::new(*rate, None), rows: VecDeque::new() }
            }
            Class::Counter => Self::Counter { count: 0 },
            Class::MovingAverage { size, threshold } => {
                Self::MovingAverage(MovingAverage::new(*size, *threshold))
            }
            Class::DataClean(clean) => Self::DataClean(DataClean::new(*clean)),
            Class::Nmea => Self::Nmea,
            Class::Scriptlet(scripts) => Self::Scriptlet(Box::new(Scriptlet::new(scripts.clone(), plan))),
            Class::Chart(chart) => Self::Chart(chart::Points::new(chart.clone(), plan)),
        }
    }

    /// What the class remembers.
    pub(super) fn point(&self) -> ClassPoint {
        match self {
            Self::Bridge { .. } => ClassPoint::Bridge,
            Self::Scheduled { clock, newest } => {
                ClassPoint::Scheduled { next: clock.next(), newest: newest.as_ref().map(NamedPoint::of) }
            }
            Self::Clocked { clock, rows } => {
                ClassPoint::Clocked { next: clock.next(), rows: rows.iter().map(NamedPoint::of).collect() }
            }
            Self::Counter { count } => ClassPoint::Counter { count: *count },
            Self::MovingAverage(average) => ClassPoint::MovingAverage { value_bits: average.bits() },
            Self::DataClean(clean) => clean.point(),
            Self::Nmea => ClassPoint::Nmea,
            Self::Scriptlet(scriptlet) => scriptlet.point(),
            Self::Chart(points) => ClassPoint::Chart { rows: points.rows().map(NamedPoint::of).collect() },
        }
    }

    /// Takes what a class of the same kind remembered. Returns whether it was of the same kind.
    pub(super) fn restore(&mut self, point: &ClassPoint) -> bool {
        match (self, point) {
            (Self::Bridge { .. }, ClassPoint::Bridge) | (Self::Nmea, ClassPoint::Nmea) => {}
            (Self::Scheduled { clock, newest }, ClassPoint::Scheduled { next, newest: row }) => {
                clock.restore(*next);
                *newest = row.as_ref().map(NamedPoint::named);
            }
            (Self::Clocked { clock, rows }, ClassPoint::Clocked { next, rows: known }) => {
                clock.restore(*next);
                rows.extend(known.iter().take(CLOCKED_ROWS_MAX).map(NamedPoint::named));
            }
            (Self::Counter { count }, ClassPoint::Counter { count: known }) => *count = *known,
            (Self::MovingAverage(average), ClassPoint::MovingAverage { value_bits }) => {
                average.restore(value_bits);
            }
            (Self::DataClean(clean), ClassPoint::DataClean { values }) => clean.restore(values),
            (Self::Scriptlet(scriptlet), ClassPoint::Scriptlet { next, state, stops, pause }) => {
                scriptlet.restore(*next, state, Pause { stops: *stops, runs: *pause });
            }
            (Self::Chart(points), ClassPoint::Chart { rows }) => {
                rows.iter().for_each(|row| points.add(row.named()));
            }
            _ => return false,
        }
        true
    }

    /// A row of a stream comes. Rows of the output are added to `given`.
    pub(super) fn row(
        &mut self,
        stream: &str,
        row: NamedRow,
        now: i64,
        meter: &Meter,
        counters: &mut Counters,
        given: &mut Vec<NamedRow>,
    ) -> Result<(), String> {
        match self {
            Self::Bridge { allow_nulls: false } if row.fields.iter().any(|(_, datum)| datum.is_null()) => {
                counters.rows_with_nulls += 1;
            }
            Self::Bridge { .. } => given.push(row),
            Self::Scheduled { clock, newest } => {
                clock.begin(now);
                *newest = Some(row);
            }
            Self::Clocked { clock, rows } => {
                clock.begin(now);
                rows.push_back(row);
                if rows.len() > CLOCKED_ROWS_MAX {
                    counters.released_early += 1;
                    given.extend(rows.pop_front());
                }
            }
            Self::Counter { count } => {
                *count += 1;
                let fields = vec![("counter".into(), Datum::Int(*count))];
                given.push(NamedRow { timed: now, fields });
            }
            Self::MovingAverage(average) => given.extend(average.row(&row)?),
            Self::DataClean(clean) => clean.row(&row, given)?,
            Self::Nmea => given.extend(nmea::row(&row, counters)?),
            Self::Scriptlet(scriptlet) => given.extend(scriptlet.row(&row, now, meter, counters)?),
            Self::Chart(points) => given.extend(points.row(stream, row)),
        }
        Ok(())
    }

    /// When the class next gives a row by itself.
    pub(super) fn deadline(&self) -> Option<i64> {
        match self {
            Self::Scheduled { clock, .. } | Self::Clocked { clock, .. } => clock.next(),
            Self::Scriptlet(scriptlet) => scriptlet.deadline(),
            _ => None,
        }
    }

    /// The clock of the class makes a turn.
    pub(super) fn turn(
        &mut self,
        meter: &Meter,
        counters: &mut Counters,
        given: &mut Vec<NamedRow>,
    ) -> Result<(), String> {
        match self {
            Self::Scheduled { clock, newest } => {
                if let (Some(at), Some(newest)) = (clock.turn(), newest) {
                    given.push(NamedRow { timed: at, fields: newest.fields.clone() });
                }
            }
            Self::Clocked { clock, rows } => {
                clock.turn();
                given.extend(rows.drain(..));
            }
            Self::Scriptlet(scriptlet) => given.extend(scriptlet.turn(meter, counters)?),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn skip_to(&mut self, time: i64) -> u64 {
        match self {
            Self::Scheduled { clock, .. } | Self::Clocked { clock, .. } => clock.skip_to(time),
            Self::Scriptlet(scriptlet) => scriptlet.skip_to(time),
            _ => 0,
        }
    }

    /// The chart that the class draws.
    pub(super) fn chart(&self) -> Option<Chart> {
        match self {
            Self::Chart(points) => Some(points.chart()),
            _ => None,
        }
    }
}

//! A sensor continues after a start.
//!
//! [`Sensor::resume`] takes what it remembered, [`Sensor::fill`] gives it the elements back that its windows need, and
//! [`Sensor::settle`] ends the filling. Nothing of that gives rows.

use std::sync::Arc;

use super::super::plan::{Plan, SourceId};
use super::super::sql::Datum;
use super::checkpoint::{Checkpoint, NeededElements};
use super::{Sensor, TIMED_MAX};

impl Sensor {
    /// A sensor that continues from a checkpoint. One that is not a checkpoint of this plan is not used, and neither is none.
    pub fn resume(plan: Arc<Plan>, lateness: Option<i64>, checkpoint: Option<&Checkpoint>) -> Self {
        let mut sensor = Self::new(plan, lateness);
        let Some(point) = checkpoint.filter(|point| point.has_windows_of(&sensor.plan)) else {
            return sensor;
        };
        if !sensor.class.restore(&point.class) {
            return sensor;
        }
        for (stream, point) in sensor.streams.iter_mut().zip(&point.streams) {
            stream.restore(point);
        }
        if let (Some(reorder), Some(passed)) = (&mut sensor.reorder, point.passed) {
            reorder.pass(passed);
        }
        sensor.output.restore(point.last_row);
        sensor.is_restored = true;
        sensor
    }

    /// What the sensor remembers besides the elements of its windows.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            passed: self.passed(),
            streams: self.streams.iter().map(super::stream::Stream::point).collect(),
            class: self.class.point(),
            last_row: self.output.last(),
        }
    }

    /// In event time: elements of earlier times than this come too late, and elements of later ones wait.
    pub fn passed(&self) -> Option<i64> {
        self.reorder.as_ref().and_then(super::reorder::Reorder::passed)
    }

    /// Which elements [`fill`](Self::fill) must give to a source.
    pub fn reach(&self, id: SourceId) -> NeededElements {
        self.streams[id.stream].reach(id.source, self.is_restored)
    }

    /// An element from before comes back, in the order of the times. It makes no rows and is not counted.
    pub fn fill(&mut self, id: SourceId, timed: i64, field: &mut dyn FnMut(&str) -> Datum) {
        if timed.checked_abs().is_some_and(|timed| timed <= TIMED_MAX) {
            let row = self.row(id, timed, field);
            self.streams[id.stream].fill(&self.plan.streams[id.stream], id.source, timed, &row);
        }
    }

    /// A row of the output of before had this time: `unique-timestamps` leaves out a second one.
    pub fn had_row(&mut self, timed: i64) {
        if self.plan.unique_timestamps {
            self.output.had(timed);
        }
    }

    /// Ends the filling.
    pub fn settle(&mut self) {
        let plan = Arc::clone(&self.plan);
        for (stream, plan) in self.streams.iter_mut().zip(&plan.streams) {
            stream.settle(plan, self.is_restored);
        }
    }
}

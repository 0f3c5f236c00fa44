//! A sensor that runs, and what is seen of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hub::registry::Device;
use model::SeriesId;
use sensors::virtual_sensors::descriptor::Descriptor;
use sensors::virtual_sensors::plan::{Plan, SourceId};
use sensors::virtual_sensors::{Counters, Sensor};

use super::cursor::Cursor;
use super::destination::Destination;
use super::output::Output;
use super::pace::Pace;
use super::record::{InputPoint, SensorRecord};
use super::sensor_output::fields;
use crate::files::Candidate;
use crate::info::ExternalSource;
use crate::info::{SensorInfo, SensorState};
use crate::limits::FAULT_CHARACTERS_MAX;
use crate::metrics::SensorCounts;
use crate::shared::{Outputs, SourceSelector};

/// A sensor that runs.
pub(super) struct Running {
    pub(super) file: String,
    pub(super) candidate: Arc<Candidate>,
    pub(super) plan: Arc<Plan>,
    pub(super) sensor: Sensor,
    pub(super) destination: Destination,
    pub(super) sources: Vec<Source>,
    /// The sources whose elements come from outside.
    pub(super) external: Vec<Arc<ExternalSource>>,
    /// The names of all sensors.
    pub(super) outputs: Arc<Outputs>,
    /// The devices that it reads, by their series.
    pub(super) cursors: HashMap<SeriesId, Cursor>,
    pub(super) output: Output,
    /// The time of the newest element in milliseconds, and when it came.
    pub(super) newest: Option<(i64, Instant)>,
    pub(super) rows_out_of_order: u64,
    pub(super) devices_left_out: u64,
    /// Whether it has evaluated something since its last checkpoint.
    pub(super) is_changed: bool,
    /// Whether its devices or elements have changed in a way that no count shows, since callers saw it.
    pub(super) is_unseen: bool,
    /// How long its turns take.
    pub(super) pace: Pace,
    /// What the metrics have counted.
    pub(super) counted: SensorCounts,
    /// How many rows it had appended when rows beyond its `history-size` were deleted.
    pub(super) trimmed: Option<u64>,
}

/// A source of a sensor.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) selector: SourceSelector,
    /// The numbers of its fields, by which rows give their values.
    pub(super) numbers: HashMap<String, u16>,
    /// The source in words.
    pub(super) words: String,
}

impl Running {
    pub(super) fn name(&self) -> &str {
        &self.plan.name
    }

    /// In event time: the time up to which elements do not wait, if there is one.
    pub(super) fn passed(&self) -> Option<Option<i64>> {
        self.plan.lateness.map(|_| self.sensor.passed())
    }

    /// The sources that read a device.
    pub(super) fn sources_of(&self, device: &Device) -> Vec<SourceId> {
        let reading = self.sources.iter().filter(|source| source.selector.is_for(device, &self.outputs));
        reading.map(|source| source.id).collect()
    }

    /// What it continues from.
    pub(super) fn record(&self) -> SensorRecord {
        let passed = self.passed();
        let mut inputs: Vec<InputPoint> = self
            .cursors
            .values()
            .map(|cursor| InputPoint {
                table: cursor.table.to_string(),
                device: cursor.device.to_string(),
                us: cursor.evaluated_us(passed),
            })
            .collect();
        inputs.sort_by(|a, b| (&a.table, &a.device).cmp(&(&b.table, &b.device)));
        SensorRecord {
            descriptor: self.candidate.digest.clone(),
            inputs,
            last_row: self.output.last,
            checkpoint: self.sensor.checkpoint(),
        }
    }

    /// Its description for callers. `problem` states why the file, as it is now, is not used.
    pub(super) fn info(&self, problem: Option<&str>) -> SensorInfo {
        let mut info = SensorInfo {
            table: self.destination.device.profile.table.name().to_owned(),
            device: self.destination.device.name.clone(),
            state: SensorState::Running,
            problem: problem.map(str::to_owned),
            sources: self.external.iter().map(|source| source.info()).collect(),
            ..described(&self.file, &self.candidate, SensorState::Running)
        };
        self.refresh(&mut info);
        info
    }

    /// Brings up to date what changes while the sensor runs.
    pub(super) fn refresh(&self, info: &mut SensorInfo) {
        let has_device =
            |source: &&Source| self.cursors.values().any(|cursor| cursor.sources.contains(&source.id));
        let waits_for =
            self.sources.iter().filter(|source| !has_device(source)).map(|source| source.words.clone());
        info.waits_for = waits_for.collect();
        info.counters = self.counters();
        info.rows_out_of_order = self.rows_out_of_order;
        info.rows_refused = self.output.refused;
        info.devices_left_out = self.devices_left_out;
        info.turns_over_budget = self.pace.turns_over_budget;
        info.elements_held = self.sensor.elements_held();
        info.bytes_held = self.sensor.bytes_held();
        info.chart = self.sensor.chart().map(Arc::new);
    }

    /// What the sensor has done, with the faults of its rows on their way into the store.
    pub(super) fn counters(&self) -> Counters {
        let mut counters = self.sensor.counters();
        if counters.last_fault.is_none() {
            counters.last_fault = self.output.fault.clone();
        }
        counters.last_fault =
            counters.last_fault.map(|fault| fault.chars().take(FAULT_CHARACTERS_MAX).collect());
        counters
    }

    /// The counts for the metrics.
    pub(super) fn counts(&self) -> SensorCounts {
        let counters = self.sensor.counters();
        SensorCounts {
            elements: counters.elements,
            rows: counters.rows,
            faults: counters.faults,
            turns_over_budget: self.pace.turns_over_budget,
            left_out: [
                self.rows_out_of_order,
                counters.late,
                counters.released_early,
                counters.overflowed,
                counters.slides_skipped,
                counters.executions_refused,
                counters.rows_over_rate,
                counters.rows_of_known_time,
                counters.rows_with_nulls,
                counters.sentences_refused,
                counters.rows_without_position,
                counters.scripts_stopped,
                counters.script_runs_left_out,
                self.output.refused,
            ],
        }
    }
}

/// A sensor that does not run, as its file says it.
pub(super) fn described(file: &str, candidate: &Candidate, state: SensorState) -> SensorInfo {
    let Descriptor { description, addressing, .. } = &candidate.descriptor;
    let pairs = addressing.iter().map(|pair| (pair.key.value.clone(), pair.value.value.clone()));
    SensorInfo {
        name: candidate.plan.name.clone(),
        description: description.clone(),
        addressing: pairs.collect(),
        fields: fields(candidate),
        notes: candidate.notes().collect(),
        explanation: candidate.plan.explain(),
        ..absent(file, state)
    }
}

/// A file that says no sensor. It has the name of the file.
pub(super) fn absent(file: &str, state: SensorState) -> SensorInfo {
    let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
    SensorInfo {
        name: name.to_owned(),
        description: String::new(),
        addressing: Vec::new(),
        fields: Vec::new(),
        table: String::new(),
        device: String::new(),
        state,
        problem: None,
        file: file.to_owned(),
        notes: Vec::new(),
        waits_for: Vec::new(),
        sources: Vec::new(),
        explanation: String::new(),
        counters: Counters::default(),
        rows_out_of_order: 0,
        rows_refused: 0,
        devices_left_out: 0,
        turns_over_budget: 0,
        elements_held: 0,
        bytes_held: 0,
        chart: None,
        followers: Vec::new(),
    }
}

//! The output of a sensor, as its followers and callers see it.

use sensors::virtual_sensors::plan::{DatabaseOptions, StoragePlace};

use crate::files::Candidate;
use crate::followers::SensorOutput;
use crate::info::SensorField;

/// What the followers of a sensor need. A sensor that names no storage has that of the container.
pub(super) fn sensor_output(candidate: &Candidate, default: Option<&DatabaseOptions>) -> SensorOutput {
    let storage = match &candidate.plan.storage {
        Some(StoragePlace::Database(database)) => Some(database),
        Some(StoragePlace::Own) => None,
        None => default,
    };
    SensorOutput {
        sensor: candidate.plan.name.clone(),
        fields: fields(candidate),
        has_unique_timestamps: candidate.plan.unique_timestamps,
        history: candidate.plan.history,
        export: candidate.plan.export.clone(),
        storage: storage.cloned(),
    }
}

/// The fields of the output.
pub(super) fn fields(candidate: &Candidate) -> Vec<SensorField> {
    let fields = candidate.descriptor.processing.output.iter().map(|field| SensorField {
        name: field.name.value.clone(),
        data_type: field.data_type.clone(),
        unit: field.unit.clone().unwrap_or_default(),
        description: field.description.clone(),
    });
    fields.collect()
}

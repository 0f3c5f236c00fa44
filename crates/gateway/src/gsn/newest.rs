//! The newest row of a sensor, and the time of its oldest one.

use std::ops::ControlFlow;

use hub::Order;
use timeseries::{Source, SourceError};

use super::read::Selection;
use super::sensor::Sensor;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewestRow {
    pub(super) millis: i64,
    /// The text of the value of each field of the sensor.
    pub(super) values: Vec<Option<String>>,
}

/// The newest row of a sensor, if it has one.
///
/// # Errors
/// The store cannot read, or the engine ends the read.
pub(super) fn newest_row(source: &dyn Source, sensor: &Sensor) -> Result<Option<NewestRow>, SourceError> {
    let selection = Selection { newest: Some(1), order: Order::Descending, ..Selection::all(sensor.clone()) };
    let mut newest = None;
    selection.read(source, &mut |row| {
        let values = row.values.iter().zip(&selection.fields).map(|(value, field)| {
            let mut text = Vec::new();
            field.kind.write((*value)?, &mut text);
            String::from_utf8(text).ok()
        });
        newest = Some(NewestRow { millis: row.millis(), values: values.collect() });
        ControlFlow::Break(())
    })?;
    Ok(newest)
}

/// The time of the oldest row of a sensor, in milliseconds.
///
/// # Errors
/// The store cannot read, or the engine ends the read.
pub(super) fn oldest_time(source: &dyn Source, sensor: &Sensor) -> Result<Option<i64>, SourceError> {
    let selection = Selection { fields: Vec::new(), ..Selection::all(sensor.clone()) };
    let mut oldest = None;
    selection.read(source, &mut |row| {
        oldest = Some(row.millis());
        ControlFlow::Break(())
    })?;
    Ok(oldest)
}

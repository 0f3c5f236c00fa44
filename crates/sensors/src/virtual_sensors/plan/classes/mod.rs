//! Processing classes: which are there, and what to use instead of the others.

mod chart;
mod clocked;
mod data_clean;
mod scriptlet;
mod unsupported;

pub use chart::ChartPlan;
pub use data_clean::{DataCleanPlan, Model};
pub use scriptlet::ScriptletPlan;

pub(super) use clocked::with_table;

use chrono::DateTime;

use super::exports::{self, Export};
use super::params::{Params, RATE_MAX};
use crate::virtual_sensors::descriptor::{Descriptor, Located, Pair};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::WINDOW_ELEMENTS_MAX;

/// What is done with the rows of the streams.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// They are the output.
    Bridge {
        /// Whether a row may have a field without a value.
        allow_nulls: bool,
    },
    /// At each turn of a clock the newest row is the output, with the time of the turn.
    Scheduled {
        /// Milliseconds between turns.
        rate: i64,
        /// The first turn, in milliseconds since 1970; the next whole multiple of the rate without it.
        start: Option<i64>,
    },
    /// At each turn of a clock all rows since the last one are the output, with their own times.
    Clocked {
        /// Milliseconds between turns.
        rate: i64,
    },
    /// The output counts them.
    Counter,
    /// The first field is compared with the mean of those before it.
    MovingAverage {
        /// How many are before it.
        size: usize,
        /// The greatest difference, as a share of the value.
        threshold: f64,
    },
    /// A model is fitted to the first field, and values far from it are marked.
    DataClean(DataCleanPlan),
    /// Sentences of NMEA 0183 become positions.
    Nmea,
    /// A script computes the output.
    Scriptlet(ScriptletPlan),
    /// The newest rows are drawn.
    Chart(ChartPlan),
}

/// The class of a descriptor.
pub(super) fn class(
    descriptor: &Descriptor,
    notes: &mut Vec<Note>,
) -> Result<(Class, Option<Export>), Fault> {
    let processing = &descriptor.processing;
    let said = &processing.class_name;
    let short = short_name(said)?;
    let mut params = Params { params: &processing.params, class: short, place: said, asked: Vec::new() };
    let export = exports::export(short, &mut params, descriptor, notes)?;
    let class = match short {
        "Bridge" => Class::Bridge { allow_nulls: params.flag("allow-nulls", true)? },
        "StatsBridge" => {
            params.note(notes, "logging-interval", "the sensor is counted in the metrics");
            Class::Bridge { allow_nulls: true }
        }
        "MQTTExporter" | "Webhook" | "Email" | "StreamExporter" => Class::Bridge { allow_nulls: true },
        "ScheduledBridge" | "ScheduledStreamExporter" => {
            let rate = params.number("rate", 1, RATE_MAX)?;
            let start = params.take("start-time").map(start_time).transpose()?;
            Class::Scheduled { rate, start }
        }
        "ClockedBridge" => {
            params.needed("table_name")?;
            Class::Clocked { rate: params.number("rate", 1, RATE_MAX)? }
        }
        "Counter" => Class::Counter,
        "SMACleaner" => {
            let size = params.number("size", 1, WINDOW_ELEMENTS_MAX as i64)? as usize;
            Class::MovingAverage { size, threshold: params.share("error-threshold")? }
        }
        "DataClean" => Class::DataClean(data_clean::plan(&mut params, notes)?),
        "GPSNMEA" => Class::Nmea,
        "Scriptlet" | "ScriptletProcessor" => Class::Scriptlet(scriptlet::plan(&mut params)?),
        "Chart" => Class::Chart(chart::plan(&mut params, notes)?),
        name => return Err(unsupported::refuse(said, name)),
    };
    params.finish()?;
    Ok((class, export))
}

/// The name without GSN's package and the ending that all its classes have.
fn short_name(said: &Located<String>) -> Result<&str, Fault> {
    let name = said.value.as_str();
    let packages = [
        "ch.epfl.gsn.vsensor.",
        "gsn.vsensor.",
        "ch.epfl.gsn.networking.mqtt.",
        "ch.epfl.gsn.processor.",
        "gsn.processor.",
    ];
    let name = packages.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(name);
    if name.contains('.') {
        let reason = format!(
            "{name:?} is a class in Java, which is not run; write what it computes as SQL or as a ScriptletProcessor"
        );
        return Err(Fault::unsupported(said.place, reason));
    }
    let endings = ["VirtualSensor", "VSensor", "VS"];
    Ok(endings
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .filter(|name| !name.is_empty())
        .unwrap_or(name))
}

fn start_time(pair: &Pair) -> Result<i64, Fault> {
    let text = &pair.value.value;
    // GSN takes a day of one digit too.
    let time = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%:z"));
    time.map(|time| time.timestamp_millis()).map_err(|_| {
        let reason = format!("start-time is {text:?}; it is a time such as 2026-05-01T00:00:00Z");
        Fault::invalid(pair.value.place, reason)
    })
}

//! Tests of virtual sensors. Descriptors as files are in `testdata/virtual_sensors`.

mod classes;
mod container;
mod data_clean;
mod exact_sum;
mod exports;
mod files;
mod more_classes;
mod mutations;
mod naive;
mod resume;
mod running;
mod script_bounds;
mod scriptlet;
mod sql;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::SourceId;
use super::{Datum, Descriptor, Faults, OutputRow, Plan, Sensor};

/// The first source of the first stream.
const FIRST: SourceId = SourceId { stream: 0, source: 0 };

/// A descriptor with one stream over one source.
fn one_source(window: &str, source_query: &str, stream_query: &str, output: &[(&str, &str)]) -> String {
    let fields: String =
        output.iter().map(|(name, kind)| format!("<field name='{name}' type='{kind}'/>")).collect();
    format!(
        "<virtual-sensor name='v'><processing-class><unique-timestamps>false</unique-timestamps><output-structure>{fields}\
         </output-structure></processing-class><streams><stream name='s'><source alias='a' {window}><address wrapper='tacho'>\
         <predicate key='device'>d</predicate></address><query><![CDATA[{source_query}]]></query></source>\
         <query><![CDATA[{stream_query}]]></query></stream></streams></virtual-sensor>"
    )
}

fn plan(xml: &str) -> Plan {
    let descriptor = Descriptor::parse(xml).unwrap_or_else(|fault| panic!("{fault}\n{xml}"));
    Plan::new(&descriptor).unwrap_or_else(|fault| panic!("{fault}\n{xml}"))
}

/// The faults, one on each line.
fn fault(xml: &str) -> String {
    let planned = Descriptor::parse(xml).map_err(Faults::from).and_then(|descriptor| Plan::new(&descriptor));
    planned.expect_err("the descriptor has a fault").to_string()
}

/// A sensor with what it has given.
struct Run {
    sensor: Sensor,
    rows: Vec<OutputRow>,
}

impl Run {
    fn new(xml: &str) -> Self {
        Self { sensor: Sensor::new(Arc::new(plan(xml)), None), rows: Vec::new() }
    }

    fn with_lateness(xml: &str, lateness: i64) -> Self {
        Self { sensor: Sensor::new(Arc::new(plan(xml)), Some(lateness)), rows: Vec::new() }
    }

    /// An element whose time is the time of the clock.
    fn element(&mut self, timed: i64, fields: &[(&str, Datum)]) -> &mut Self {
        self.element_of(FIRST, timed, timed, fields)
    }

    fn element_of(&mut self, id: SourceId, timed: i64, now: i64, fields: &[(&str, Datum)]) -> &mut Self {
        let fields: BTreeMap<_, _> = fields.iter().cloned().collect();
        let mut field = |name: &str| fields.get(name).cloned().unwrap_or(Datum::Null);
        self.sensor.element(id, timed, now, &mut field, &mut self.rows);
        self
    }

    fn x(&mut self, timed: i64, x: i64) -> &mut Self {
        self.element(timed, &[("x", Datum::Int(x))])
    }

    fn tick(&mut self, now: i64) -> &mut Self {
        self.sensor.tick(now, &mut self.rows);
        self
    }

    /// What was given since the last call: the time, and the values as text.
    fn take(&mut self) -> Vec<String> {
        let line = |row: OutputRow| {
            let values: Vec<_> = row.values.iter().map(Datum::to_string).collect();
            format!("{}: {}", row.timed, values.join(" "))
        };
        std::mem::take(&mut self.rows).into_iter().map(line).collect()
    }
}

//! A virtual sensor: refused with a place in the text, or planned, and then it takes any elements.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sensors::virtual_sensors::{Container, Datum, Descriptor, Faults, Plan, Sensor};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = Container::from_xml(text);
    let planned = Descriptor::parse(text).map_err(Faults::from);
    let planned = planned.and_then(|descriptor| Plan::new(&descriptor));
    let plan = match planned {
        Ok(plan) => Arc::new(plan),
        Err(faults) => {
            assert!(!faults.all().is_empty());
            for fault in faults.all() {
                assert!(fault.place.line >= 1 && fault.place.column >= 1);
                assert!(fault.place.line as usize <= text.lines().count() + 1, "{fault}");
            }
            return;
        }
    };
    assert!(!plan.explain().is_empty());
    for lateness in [None, Some(50)] {
        let mut sensor = Sensor::new(plan.clone(), lateness);
        let mut rows = Vec::new();
        let ids: Vec<_> = plan.sources().map(|(id, _)| id).collect();
        for at in 0..24_i64 {
            for id in &ids {
                let mut field = |name: &str| match (at + name.len() as i64) % 4 {
                    0 => Datum::Null,
                    1 => Datum::Int(i64::MAX / 24 * at),
                    2 => Datum::Float(at as f64 / 3.0),
                    _ => Datum::Text(name.into()),
                };
                sensor.element(*id, at * 37 - at % 5 * 40, at * 37, &mut field, &mut rows);
            }
            rows.clear();
        }
        sensor.tick(100_000, &mut rows);
        sensor.finish(&mut rows);
        assert!(rows.iter().all(|row| row.values.len() == plan.output.len()));
    }
});

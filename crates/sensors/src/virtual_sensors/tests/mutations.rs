//! Files with accidental changes: refused with a place in the text, or planned and run. The fuzz target does the same for
//! longer.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::virtual_sensors::Container;

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/virtual_sensors");
    let names = [
        "good/street.xml",
        "good/street.toml",
        "good/two-sources.xml",
        "good/scheduled.toml",
        "good/script.toml",
    ];
    names.iter().map(|name| fs::read_to_string(folder.join(name)).expect("a descriptor")).collect()
}

/// A change: where, how much goes, and what comes.
type Edit = (prop::sample::Index, usize, String);

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (at, length, new) in edits {
        let start = at.index(chars.len().max(1)).min(chars.len());
        let end = (start + length).min(chars.len());
        chars.splice(start..end, new.chars());
    }
    chars.into_iter().collect()
}

fn run(plan: Plan, lateness: Option<i64>) {
    let plan = Arc::new(plan);
    let mut sensor = Sensor::new(plan.clone(), lateness);
    let mut rows = Vec::new();
    for at in 0..24_i64 {
        for (id, _) in plan.sources() {
            let mut field = |name: &str| match (at + name.len() as i64) % 4 {
                0 => Datum::Null,
                1 => Datum::Int(i64::MAX / 24 * at),
                2 => Datum::Float(at as f64 / 3.0),
                _ => Datum::Text(name.into()),
            };
            sensor.element(id, at * 37 - at % 5 * 40, at * 37, &mut field, &mut rows);
        }
    }
    sensor.tick(100_000, &mut rows);
    sensor.finish(&mut rows);
    assert!(rows.iter().all(|row| row.values.len() == plan.output.len()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn changed_files_are_refused_with_a_place_or_run(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, "[a-z0-9<>&'\"=.,*()# \n]{0,4}"), 0..4),
    ) {
        let texts = texts();
        let text = edited(file.get::<String>(&texts), &edits);
        let _ = Container::from_xml(&text);
        let planned = Descriptor::parse(&text).map_err(Faults::from);
        match planned.and_then(|descriptor| Plan::new(&descriptor)) {
            Ok(plan) => {
                run(plan.clone(), None);
                run(plan, Some(50));
            }
            Err(faults) => {
                prop_assert!(!faults.all().is_empty());
                for fault in faults.all() {
                    prop_assert!(fault.place.line >= 1 && fault.place.column >= 1);
                    prop_assert!(fault.place.line as usize <= text.lines().count() + 1, "{}", fault);
                }
            }
        }
    }
}

//! `--quick`: reduces a scenario for a first try that takes seconds.

use load::scenario::parse_duration;
use toml::{Table, Value};

use load::scenario::{Phase, PhaseKind, Scenario};

/// The longest measured part and warm-up of a phase, seconds.
const DURATION_S: u64 = 5;
const WARMUP_S: u64 = 1;
/// The largest rate, and the largest numbers of connections and steps of a phase.
const RATE: f64 = 2_000.0;
const CONNECTIONS: u32 = 50;
const STEPS: i64 = 3;
/// The largest number of keys or of rows of a table, and of tables.
const ROWS: f64 = 10_000.0;
const TABLES: i64 = 2;
/// The number of documents of an index.
const DOCUMENTS: f64 = 100_000.0;
/// The number of devices that a dashboard follows.
const DEVICES_EACH: i64 = 10;
/// The number of devices behind a gateway.
const GATEWAY_DEVICES: i64 = 500;
/// The number of sensors that are written.
const STREAMS: f64 = 20.0;
/// The size of a file for fio.
const FILE: &str = "64m";

/// The note in the result of such a run.
pub(crate) const NOTE: &str =
    "--quick: little data and short phases, for a first look; these figures are not to be quoted or compared";

/// The settings that reduce a scenario, to be applied before those of the user. The error states why there are none.
pub(crate) fn sets(scenario: &Scenario) -> Result<Vec<String>, String> {
    let driver = scenario.head.driver.as_str();
    match driver {
        "ledger" => {
            return Err("--quick: how long a ledger takes follows from its kills; use --kills 1".to_owned());
        }
        "reads" => {
            return Err("--quick: reads asks questions of data of a fixed size; use --phase with one of its phases and --set \
                        dataset.devices=N"
                .to_owned());
        }
        _ => {}
    }
    let mut sets: Vec<String> = scale(scenario).into_iter().collect();
    let caps_load = driver != "tcp";
    for phase in tables(&scenario.effective, "phase") {
        let place = format!("phase.{}", name(phase));
        shorten(phase, &place, &mut sets);
        if caps_load {
            cap(phase, &place, &mut sets);
        }
        for mix in tables(phase, "mix").into_iter().filter(|_| caps_load) {
            cap(mix, &format!("{place}.mix.{}", name(mix)), &mut sets);
        }
    }
    if driver == "sql" && integer(&scenario.dataset, "tables").is_none_or(|tables| tables > TABLES) {
        sets.push(format!("dataset.tables={TABLES}"));
    }
    if driver == "dashboards"
        && integer(&scenario.dataset, "devices_each").is_some_and(|devices| devices > DEVICES_EACH)
    {
        sets.push(format!("dataset.devices_each={DEVICES_EACH}"));
    }
    if integer(&scenario.dataset, "gateway_devices").is_some_and(|devices| devices > GATEWAY_DEVICES) {
        sets.push(format!("dataset.gateway_devices={GATEWAY_DEVICES}"));
    }
    for operation in tables(&scenario.effective, "operation").into_iter().filter(|job| job.contains_key("rw"))
    {
        sets.push(format!("operation.{}.size={FILE}", name(operation)));
    }
    Ok(sets)
}

/// A scale for which the data is loaded within a second or two. In driver `tcp`, connections and rates follow from it.
fn scale(scenario: &Scenario) -> Option<String> {
    let largest = match scenario.head.driver.as_str() {
        "redis" => {
            scenario
                .phases
                .iter()
                .flat_map(|phase| &phase.mixes)
                .filter_map(|mix| {
                    let keys =
                        mix.driver_keys.get("keys").or_else(|| scenario.dataset.get("keys"))?.as_array()?;
                    Some((keys.last()?.as_integer()? - keys.first()?.as_integer()?) as f64)
                })
                .reduce(f64::max)?
                / ROWS
        }
        "sql" => integer(&scenario.dataset, "table_size")? as f64 / ROWS,
        "hbase" => integer(&scenario.dataset, "rows")? as f64 / ROWS,
        "es" => integer(&scenario.dataset, "documents")? as f64 / DOCUMENTS,
        "gsn" => integer(&scenario.dataset, "streams")? as f64 / STREAMS,
        "opentsdb" | "influx" | "prometheus" => {
            let mixes = scenario.phases.iter().flat_map(|phase| &phase.mixes);
            mixes.filter_map(|mix| Some(integer(&mix.driver_keys, "timelines")? as f64)).reduce(f64::max)?
                / ROWS
        }
        "tcp" => f64::from(scenario.phases.iter().map(Phase::connections).max()?) / f64::from(CONNECTIONS),
        _ => return None,
    };
    let scale = (1.0 / largest.max(1.0)).min(scenario.head.scale);
    (scale < scenario.head.scale).then(|| format!("scale={scale:e}"))
}

fn shorten(phase: &Table, place: &str, sets: &mut Vec<String>) {
    // A phase that ends with its work may be over within a second.
    let warmup_s = if phase.contains_key("duration") { WARMUP_S } else { 0 };
    for (key, most_s) in [("duration", DURATION_S), ("warmup", warmup_s), ("hold", DURATION_S)] {
        let written = phase.get(key).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        if written
            .and_then(|text| parse_duration(&text).ok())
            .is_some_and(|time| time.as_secs_f64() > most_s as f64)
        {
            sets.push(format!("{place}.{key}={most_s}s"));
        }
    }
    if integer(phase, "steps").is_some_and(|steps| steps > STEPS) {
        sets.push(format!("{place}.steps={STEPS}"));
    }
}

fn cap(table: &Table, place: &str, sets: &mut Vec<String>) {
    for (key, most) in [("rate", RATE), ("rate_to", 2.0 * RATE), ("connections", f64::from(CONNECTIONS))] {
        let value =
            table.get(key).and_then(|value| value.as_float().or(value.as_integer().map(|it| it as f64)));
        if let Some(value) = value.filter(|value| *value > most) {
            sets.push(format!("{place}.{key}={most}"));
            // The requests of one connection: fewer connections do the same work.
            if let ("connections", Some(requests)) = (key, integer(table, "requests")) {
                sets.push(format!("{place}.requests={:.0}", (requests as f64 * value / most).ceil()));
            }
        }
    }
}

fn tables<'a>(table: &'a Table, key: &str) -> Vec<&'a Table> {
    table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table).collect()
}

fn name(table: &Table) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn integer(table: &Table, key: &str) -> Option<i64> {
    table.get(key)?.as_integer()
}

/// The longest duration of the phases of a scenario by their own keys, seconds, without phases that end with their
/// work.
pub(crate) fn planned_s(scenario: &Scenario) -> f64 {
    let measured = scenario.phases.iter().filter(|phase| phase.kind != PhaseKind::Load);
    measured.map(|phase| (phase.warmup + phase.duration.unwrap_or_default()).as_secs_f64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::scenario::BUILTIN;

    #[test]
    fn a_quick_load_has_a_request_for_every_key_that_is_read() {
        for name in ["gemini-hash", "gemini-str32", "gemini-str1250", "gemini-mix"] {
            let scenario = Scenario::load(name, &[]).unwrap();
            let quick = Scenario::load(name, &sets(&scenario).unwrap()).unwrap();
            let loads = quick.phases.iter().filter(|phase| phase.kind == PhaseKind::Load);
            let mixes: Vec<_> = loads.flat_map(|phase| &phase.mixes).collect();
            assert!(!mixes.is_empty(), "{name}");
            for mix in mixes {
                let keys = mix.driver_keys.get("keys").or_else(|| quick.dataset.get("keys")).unwrap();
                let keys = keys.as_array().unwrap().iter().map(|key| key.as_integer().unwrap());
                let count = quick.scaled(keys.reduce(|first, last| last - first).unwrap().cast_unsigned());
                let requests = mix.driver_keys["requests"].as_integer().unwrap().cast_unsigned();
                let sent = quick.scaled(requests) * u64::from(mix.connections);
                assert!(sent >= count, "{name} {}: {sent} requests for {count} keys", mix.name);
            }
        }
    }

    #[test]
    fn every_scenario_becomes_small_or_says_why_not() {
        for builtin in BUILTIN {
            let scenario = builtin.scenario().unwrap();
            let quick = match sets(&scenario) {
                Ok(sets) => Scenario::load(builtin.name, &sets).unwrap(),
                Err(why) => {
                    assert!(["ledger", "reads"].contains(&builtin.name) && why.contains("; use --"), "{why}");
                    continue;
                }
            };
            targets::driver_of(&quick).unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
            assert!(planned_s(&quick) <= 6.0 * quick.phases.len() as f64, "{}", builtin.name);
            assert!(planned_s(&quick) <= planned_s(&scenario) && quick.head.scale <= scenario.head.scale);
            let sizes = quick.phases.iter().map(Phase::connections);
            assert!(
                quick.head.driver == "tcp" || sizes.max().unwrap() <= 4 * CONNECTIONS,
                "{}",
                builtin.name
            );
            assert_eq!(
                sets(&quick).unwrap().iter().filter(|set| !set.contains(".size=")).count(),
                0,
                "{}",
                builtin.name
            );
        }
    }
}

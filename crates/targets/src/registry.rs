//! The drivers by name.

use load::scenario::{Scenario, TARGET_KEYS, no_keys};

use super::driver::{Driver, TargetKind};
use super::{
    broker, commands, dashboards, es, gsn, hbase, hitsdb, host, http, ledger, mqtt, reads, redis, sql, tcp,
    tsbs,
};

/// All kinds of targets.
const KINDS: [TargetKind; 18] = [
    mqtt::KIND,
    broker::KIND,
    commands::KIND,
    dashboards::KIND,
    redis::KIND,
    sql::KIND,
    hbase::KIND,
    http::KIND,
    es::KIND,
    hitsdb::OPENTSDB,
    hitsdb::INFLUX,
    hitsdb::PROMETHEUS,
    tsbs::KIND,
    gsn::KIND,
    tcp::KIND,
    host::KIND,
    ledger::KIND,
    reads::KIND,
];

/// Creates the driver of a scenario. The error states which part of the scenario it does not understand.
pub fn driver_of(scenario: &Scenario) -> Result<Box<dyn Driver>, String> {
    let name = scenario.head.driver.as_str();
    let kind = KINDS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| format!("there is no driver `{name}`; there are {}", names()))?;
    if !kind.target_keys {
        no_keys(&scenario.target.driver_keys, "[target]", TARGET_KEYS)?;
    }
    if !kind.operation_keys {
        scenario.operations.iter().try_for_each(|operation| operation.no_options())?;
    }
    if !kind.dataset_keys {
        no_keys(&scenario.dataset, "[dataset]", &[])?;
    }
    (kind.new)(scenario)
}

/// The names of all drivers as a list in a sentence.
fn names() -> String {
    let [first @ .., last] = KINDS.map(|kind| kind.name);
    format!("{} and {last}", first.join(", "))
}

/// The names of the results of a phase: several if its segments have their own results.
pub fn results(scenario: &Scenario, phase: &str) -> Result<Vec<String>, String> {
    let driver = driver_of(scenario)?;
    let phases = scenario.phases.iter().filter(|known| known.name == phase);
    let segments = phases.flat_map(|phase| driver.phase_capabilities(phase).segments);
    Ok(segments.map(|segment| segment.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_driver_is_refused_with_the_names_of_all() {
        let mut scenario = Scenario::load("http-qps", &[]).unwrap();
        "htpt".clone_into(&mut scenario.head.driver);
        assert_eq!(
            driver_of(&scenario).err().unwrap(),
            "there is no driver `htpt`; there are mqtt, broker, commands, dashboards, redis, sql, hbase, http, es, opentsdb, influx, prometheus, tsbs, gsn, tcp, host, ledger and reads"
        );
    }
}

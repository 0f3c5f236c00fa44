//! The drivers by name.

use super::driver::Driver;
use super::{es, hbase, host, http, ledger, mqtt, reads, redis, sql, tcp};
use crate::scenario::{OPERATION_KEYS, Scenario, TARGET_KEYS, no_keys};

/// Creates the driver of a scenario. The error says which part of the scenario it does not understand.
pub(crate) fn driver(scenario: &Scenario) -> std::result::Result<Box<dyn Driver>, String> {
    if !matches!(scenario.head.driver.as_str(), "mqtt" | "ledger") {
        no_keys(&scenario.target.driver_keys, "[target]", TARGET_KEYS)?;
    }
    match scenario.head.driver.as_str() {
        "mqtt" | "tcp" => no_keys_of_operations(scenario)?,
        "ledger" => no_keys(&scenario.dataset, "[dataset]", &[])?,
        _ => {}
    }
    match scenario.head.driver.as_str() {
        "redis" => Ok(Box::new(redis::RedisDriver::new(scenario)?)),
        "mqtt" => Ok(Box::new(mqtt::MqttDriver::new(scenario)?)),
        "sql" => Ok(Box::new(sql::SqlDriver::new(scenario)?)),
        "hbase" => Ok(Box::new(hbase::HbaseDriver::new(scenario)?)),
        "es" => Ok(Box::new(es::EsDriver::new(scenario)?)),
        "http" => Ok(Box::new(http::HttpDriver::new(scenario)?)),
        "host" => Ok(Box::new(host::HostDriver::new(scenario)?)),
        "tcp" => Ok(Box::new(tcp::TcpDriver::new(scenario)?)),
        "ledger" => Ok(Box::new(ledger::LedgerDriver::new(scenario)?)),
        "reads" => Ok(Box::new(reads::ReadsDriver::new(scenario)?)),
        other => Err(format!(
            "there is no driver `{other}`; there are mqtt, redis, sql, hbase, http, es, tcp, host, ledger and reads"
        )),
    }
}

/// Refuses further keys for operations of drivers that know only a name.
fn no_keys_of_operations(scenario: &Scenario) -> std::result::Result<(), String> {
    scenario.operations.iter().try_for_each(|operation| {
        no_keys(&operation.driver_keys, &format!("operation `{}`", operation.name), OPERATION_KEYS)
    })
}

/// The names of the results of a phase: several if its segments have their own results.
pub(crate) fn results(scenario: &Scenario, phase: &str) -> std::result::Result<Vec<String>, String> {
    let driver = driver(scenario)?;
    let segments = scenario.phases.iter().filter(|known| known.name == phase);
    Ok(segments.flat_map(|phase| driver.segments(phase, scenario)).map(|segment| segment.name).collect())
}

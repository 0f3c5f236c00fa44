//! A server for several generator processes: the process that started them has it, they are told where it is.

use serde_json::Value;

use super::command_line::configuration;
use super::driver::Driver;
use super::drivers::driver;
use crate::error::{Error, Result};
use crate::options::Context;
use crate::progress::Progress;
use crate::result::{Bundle, Fault, Target};
use crate::scenario::Scenario;

/// The driver that started the server, and what it said of it.
pub(crate) struct SelfHosted {
    driver: Box<dyn Driver>,
    target: Target,
    /// With the address of the server.
    scenario: Scenario,
    /// As it was asked for.
    configuration: Value,
}

impl SelfHosted {
    /// Refuses a scenario whose server the run would start: generators on other hosts could not reach it.
    pub(crate) fn refuse(scenario: &Scenario) -> Result<()> {
        if !shared_driver(scenario)?.starts_server() {
            return Ok(());
        }
        let what = "a server that the run starts listens on this host alone: with --worker-command name one with --target";
        Err(Error::Options(what.to_owned()))
    }

    /// Starts the server of a scenario that names none; `None` where there is one, or where none is needed.
    pub(crate) fn start(scenario: &Scenario, context: &Context, quiet: bool) -> Result<Option<Self>> {
        let wrong = |what: String| Error::Scenario { path: (&scenario.head.name).into(), what };
        let mut driver = shared_driver(scenario)?;
        if !driver.starts_server() {
            return Ok(None);
        }
        let configuration = configuration(scenario);
        let target = driver.open(context, &Progress::new(quiet))?;
        let mut effective = scenario.effective.clone();
        effective.insert("target".to_owned(), toml::Value::Table(driver.target_overrides()));
        let text = toml::to_string(&effective).expect("BUG: it was read from TOML");
        let mut shared = Scenario::parse(&text, &[]).map_err(wrong)?;
        shared.origin = scenario.origin.clone();
        Ok(Some(Self { driver, target, scenario: shared, configuration }))
    }

    /// The scenario with the address of the server.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Ends the server. How it ended and that it was started by the run goes into the result, and what was asked for in place
    /// of an address that is no more.
    pub(crate) fn stop(mut self, bundle: &mut Bundle) {
        let result = &mut bundle.result;
        result.target = self.target;
        result.scenario.configuration = self.configuration;
        if let Err(error) = self.driver.close() {
            result.faults.push(Fault { at_s: result.took_s, what: error.to_string() });
            result.settle();
        }
    }
}

/// The driver of a scenario whose load several processes can share.
fn shared_driver(scenario: &Scenario) -> Result<Box<dyn Driver>> {
    let driver =
        driver(scenario).map_err(|what| Error::Scenario { path: (&scenario.head.name).into(), what })?;
    driver.several_processes().map_err(Error::Options)?;
    Ok(driver)
}

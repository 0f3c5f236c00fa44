//! A server for several generator processes. The first process starts it and gives the others its address.

use serde_json::Value;

use load::progress::Progress;
use load::result::{Bundle, Fault, Target};
use load::scenario::Scenario;
use load::{Error, Result};
use targets::Context;
use targets::command_line::configuration;
use targets::driver::Driver;
use targets::driver_of;

/// The driver that started the server, and the description of the server.
pub(crate) struct SelfHosted {
    driver: Box<dyn Driver>,
    target: Target,
    /// The scenario with the server's address.
    scenario: Scenario,
    /// The configuration before the address was set.
    configuration: Value,
}

impl SelfHosted {
    /// Refuses a scenario that starts its own server: generators on other hosts cannot reach it.
    pub(crate) fn refuse(scenario: &Scenario) -> Result<()> {
        if !shared_driver(scenario)?.capabilities().starts_server {
            return Ok(());
        }
        let what = "a server that the run starts listens on this host alone: with --worker-command name one with --target";
        Err(Error::Options(what.to_owned()))
    }

    /// Starts the server of a scenario that names none. Returns `None` if the scenario names one or needs none.
    pub(crate) fn start(scenario: &Scenario, context: &Context, quiet: bool) -> Result<Option<Self>> {
        let wrong = |what: String| Error::Scenario { path: (&scenario.head.name).into(), what };
        let mut driver = shared_driver(scenario)?;
        if !driver.capabilities().starts_server {
            return Ok(None);
        }
        let configuration = configuration(scenario);
        let opened = driver.open(context, &Progress::new(quiet))?;
        let mut effective = scenario.effective.clone();
        effective.insert("target".to_owned(), toml::Value::Table(opened.target_overrides));
        let text = toml::to_string(&effective).expect("BUG: it was read from TOML");
        let mut shared = Scenario::parse(&text, &[]).map_err(wrong)?;
        shared.origin = scenario.origin.clone();
        Ok(Some(Self { driver, target: opened.target, scenario: shared, configuration }))
    }

    /// The scenario with the server's address.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Stops the server. The result gets the way in which it ended, and the original configuration instead of the
    /// temporary address.
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

/// Creates the driver of a scenario that several processes can share.
fn shared_driver(scenario: &Scenario) -> Result<Box<dyn Driver>> {
    let driver =
        driver_of(scenario).map_err(|what| Error::Scenario { path: (&scenario.head.name).into(), what })?;
    match driver.capabilities().one_process {
        Some(reason) => Err(Error::Options(reason.to_owned())),
        None => Ok(driver),
    }
}

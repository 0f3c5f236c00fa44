//! A server whose MQTT and REST interfaces a driver both uses, without TLS.

use std::net::SocketAddr;

use clients::target_url::{ASKED, MQTT, TargetUrl};
use load::progress::Progress;
use load::scenario::Scenario;
use load::{Error, Result};

use super::platform::{Fleet, Platform, TargetOptions};
use crate::Context;
use crate::plan::target_url;

/// The server with its two addresses.
pub(crate) struct RestPlatform {
    pub(crate) platform: Platform,
    pub(crate) mqtt: SocketAddr,
    pub(crate) http: SocketAddr,
}

impl RestPlatform {
    /// Checks the address of a scenario for a driver.
    pub(crate) fn check(scenario: &Scenario) -> std::result::Result<(), String> {
        if scenario.target.url.is_empty() {
            return Ok(());
        }
        refuse_tls(scenario, "target.url", &target_url(scenario, &MQTT)?)
    }

    /// Starts a server with settings of its environment if the scenario names none, or logs in to a running one, and creates the
    /// devices.
    pub(crate) fn open(
        scenario: &Scenario,
        (target, fleet): (&TargetOptions, &Fleet),
        settings: &'static [(&'static str, &'static str)],
        context: &Context,
        progress: &Progress,
    ) -> Result<Self> {
        let (mqtt, platform) = if scenario.target.url.is_empty() {
            Platform::start((target, fleet), settings, context, progress)?
        } else {
            let url = target_url(scenario, &MQTT).map_err(Error::Options)?;
            let mqtt = url.resolve()?;
            let platform = Platform::running(&url, (target, fleet), progress)?;
            let platform = platform.ok_or_else(|| {
                Error::Options(format!(
                    "driver {} uses the REST interface of a running server: give target.password (ours keeps it in \
                     admin-password in its data directory), and target.http if it is not on port 8080 of the same host",
                    scenario.head.driver
                ))
            })?;
            (mqtt, platform)
        };
        let door = TargetUrl::parse(&platform.http, &ASKED).map_err(Error::Options)?;
        refuse_tls(scenario, "target.http", &door).map_err(Error::Options)?;
        let http = door.resolve()?;
        Ok(Self { platform, mqtt, http })
    }
}

/// Refuses an address with TLS: all clients of these drivers share one plan, which has one kind of TLS.
fn refuse_tls(scenario: &Scenario, key: &str, url: &TargetUrl) -> std::result::Result<(), String> {
    match url.tls_options() {
        Some(_) => Err(format!(
            "{key}: driver {} speaks no TLS; give the address of a door without TLS",
            scenario.head.driver
        )),
        None => Ok(()),
    }
}

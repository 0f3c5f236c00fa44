//! The HTTP interface of the server behind the broker: the driver creates devices there and reads back acknowledged
//! points. The run starts the server, or it is already running.

use std::net::SocketAddr;
use std::path::PathBuf;

use clients::passwords;
use clients::target_url::{ASKED, MQTT, TargetUrl};
use clients::tls::{TlsConfig, TlsOptions, Trust};
use load::payload::SEQUENCE_KEY;
use load::progress::Progress;
use load::result::Target;
use load::sampling::server_pid;
use load::scenario::Scenario;
use load::{Error, Result};

use crate::sources::Prometheus;
use serde::Deserialize;

use super::Tally;
use super::verify::{self, Job, Verification};
use crate::Context;
use crate::command_line::{left_behind, shell_word};
use crate::devices::Client;
use crate::driver::Opened;
use crate::plan::target_url;
use crate::server::{ADMIN, DataDirectory, Server, ServerInstance};

/// Process names of brokers. Brokers in Erlang run as the Erlang machine.
const PROCESS_NAMES: [&str; 5] = ["mosquitto", "tacho", "nanomq", "flashmq", "beam"];

const HTTP_PORT: u16 = 8_080;
const HTTPS_PORT: u16 = 8_443;

/// Keys of `[target]` besides the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetOptions {
    http: Option<String>,
    user: Option<String>,
    password: Option<String>,
    provision: Option<bool>,
    pub(crate) verify: Option<bool>,
    data: Option<PathBuf>,
}

impl TargetOptions {
    /// Refuses contradicting keys.
    pub(crate) fn check(&self, has_target: bool) -> std::result::Result<(), String> {
        if let Some(url) = &self.http {
            TargetUrl::parse(url, &ASKED).map_err(|what| format!("target.http: {what}"))?;
        }
        if has_target && self.data.is_some() {
            return Err("target.data is for a server that the run starts: leave out the target".to_owned());
        }
        if !has_target && (self.http.is_some() || self.user.is_some() || self.password.is_some()) {
            return Err(
                "target.http, user and password describe a running server: give target.url too".to_owned()
            );
        }
        Ok(())
    }

    /// Refuses `provision` for a driver that creates devices of its own.
    pub(crate) fn refuse_provision(&self) -> std::result::Result<(), String> {
        match self.provision {
            Some(_) => Err("target.provision has no effect here: the run creates its own devices".to_owned()),
            None => Ok(()),
        }
    }

    /// Whether to create devices, on a running server or on one that the run starts.
    pub(super) fn provisions(&self, is_running: bool) -> bool {
        if is_running { self.provision_and_verify().0 } else { self.provision.unwrap_or(true) }
    }

    /// Whether to create devices on a running server, and whether to read back what it stored.
    fn provision_and_verify(&self) -> (bool, bool) {
        let has_login = self.http.is_some() || self.password.is_some();
        (self.provision.unwrap_or(has_login), self.verify.unwrap_or(has_login))
    }
}

/// The devices of a run: device n is called `<device_prefix>n` and logs in with the user name `<token_prefix>n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) device_prefix: String,
    pub(crate) token_prefix: String,
    /// The number to create.
    pub(crate) devices: u32,
    /// The number that connects, at most `devices`.
    pub(crate) connected: u32,
}

/// Describes a broker that the driver has opened, with its process if that runs on this machine.
pub(crate) fn opened_broker(address: SocketAddr, tls: Option<String>, platform: Option<&Platform>) -> Opened {
    let server = platform.and_then(|platform| platform.server.as_ref());
    let durability = platform.map(|platform| ("durability".to_owned(), platform.durability.clone()));
    Opened {
        target: Target {
            address: address.to_string(),
            product: server.map(|_| format!("tacho {}", env!("CARGO_PKG_VERSION"))),
            started_by_run: server.is_some(),
            settings: durability.into_iter().collect(),
            tls,
        },
        server_pid: server
            .map_or_else(|| server_pid(address, &PROCESS_NAMES), |server| Some(server.sampled().pid())),
        ..Opened::default()
    }
}

/// The finding about devices that stay on a running server, with the way to remove them.
pub(crate) fn leftover_finding(scenario: &Scenario, target: &TargetOptions, fleet: &Fleet) -> Option<String> {
    let (broker, last) = (target_url(scenario, &MQTT).ok()?, fleet.devices.checked_sub(1)?);
    let http = target.http.clone().unwrap_or_else(|| http_beside(&broker));
    let door = TargetUrl::parse(&http, &ASKED).ok()?;
    let (prefix, is_asked) = (&fleet.device_prefix, target.provision_and_verify().0);
    is_asked.then(|| {
        left_behind(
            &format!("the devices `{prefix}0` to `{prefix}{last}`, as far as they were not there before, and what they reported"),
            &format!(
                "for n in $(seq 0 {last}); do tacho device delete {}$n --url {}{}; done. Rows go with the time to live of their table \
                 (`tacho table set`)",
                shell_word(prefix),
                shell_word(door.base().trim_end_matches('/')),
                door.tls_options().map(tacho_flags).unwrap_or_default(),
            ),
        )
    })
}

/// The address of the HTTP interface beside a broker: on its host, with its TLS.
fn http_beside(broker: &TargetUrl) -> String {
    let host = broker.host_name();
    match broker.tls_query() {
        Some(query) => format!("https://{host}:{HTTPS_PORT}{query}"),
        None => format!("http://{host}:{HTTP_PORT}"),
    }
}

/// The options of `tacho` for a server with TLS, with a blank before each.
fn tacho_flags(options: &TlsOptions) -> String {
    match &options.trust {
        Trust::Everything => " --insecure".to_owned(),
        Trust::File(file) | Trust::AnyName(Some(file)) => {
            format!(" --cafile {}", shell_word(&file.display().to_string()))
        }
        Trust::System | Trust::AnyName(None) => String::new(),
    }
}

/// A server with known devices.
pub(crate) struct Platform {
    client: Client,
    /// The process, if the run started it. Dropping it kills the process.
    pub(crate) server: Option<Server>,
    /// The ids of the devices by number; `None` if nothing is read back.
    ids: Option<Vec<String>>,
    /// The first timestamp that no earlier run can have used, milliseconds.
    pub(super) floor_ts_ms: u64,
    /// The address of the HTTP interface, with the TLS parameters.
    pub(crate) http: String,
    /// The base of its URLs.
    base: String,
    /// TLS of the HTTP interface; `None` without TLS.
    tls: Option<TlsConfig>,
    /// The password of the first administrator, if the run started the server.
    password: String,
    /// The durability class of the server's acknowledgements.
    pub(crate) durability: String,
    /// Declared last, so that it is dropped after the server.
    _data_directory: Option<DataDirectory>,
}

impl Platform {
    /// Starts a server with settings of its environment and creates the devices. Returns the broker's address.
    pub(crate) fn start(
        (target, fleet): (&TargetOptions, &Fleet),
        settings: &'static [(&'static str, &'static str)],
        context: &Context,
        progress: &Progress,
    ) -> Result<(SocketAddr, Self)> {
        let data_directory = DataDirectory::new(target.data.as_deref())?;
        let mut instance = ServerInstance::new(&context.server_binary, data_directory.path())?;
        instance.settings = settings;
        let binary = context.server_binary.display();
        progress.step(format!("starting {binary} serve --data {}", data_directory.path().display()));
        let server = Server::start(&instance)?;
        let password = instance.admin_password()?;
        let client = Client::login(&instance.http_url(), ADMIN, &password)?;
        let provision_and_verify = (target.provisions(false), target.verify.unwrap_or(true));
        let mut platform = Self::of(client, instance.http_url(), fleet, provision_and_verify, progress)?;
        (platform.server, platform._data_directory, platform.password) =
            (Some(server), Some(data_directory), password);
        Ok((instance.mqtt, platform))
    }

    /// Logs in to a running server and creates the devices. Returns `None` if neither provisioning nor verification is
    /// wanted.
    pub(crate) fn running(
        broker: &TargetUrl,
        (target, fleet): (&TargetOptions, &Fleet),
        progress: &Progress,
    ) -> Result<Option<Self>> {
        let provision_and_verify = target.provision_and_verify();
        if provision_and_verify == (false, false) {
            return Ok(None);
        }
        let password = target.password.clone().or_else(passwords::administrator).ok_or_else(|| {
            Error::Options(
                "a running server needs a password to create devices and to read back (--password or TACHO_PASSWORD; ours keeps \
                 it in admin-password in its data directory), or target.provision=false and target.verify=false"
                    .to_owned(),
            )
        })?;
        let http = target.http.clone().unwrap_or_else(|| http_beside(broker));
        let door = TargetUrl::parse(&http, &ASKED).map_err(Error::Options)?;
        let (base, tls) = (door.base().trim_end_matches('/').to_owned(), door.tls_config()?);
        let client =
            Client::login_over(&base, tls.clone(), target.user.as_deref().unwrap_or(ADMIN), &password)?;
        let platform = Self::of(client, http, fleet, provision_and_verify, progress)?;
        Ok(Some(Self { base, tls, ..platform }))
    }

    fn of(
        client: Client,
        http: String,
        fleet: &Fleet,
        (provision, verify): (bool, bool),
        progress: &Progress,
    ) -> Result<Self> {
        let mut has_older = !provision;
        if provision && fleet.devices > 0 {
            let devices = fleet.devices;
            progress.step(format!("provisioning {devices} devices"));
            let provisioned = client.provision(devices, &fleet.device_prefix, &fleet.token_prefix)?;
            has_older = provisioned.existing > 0;
        }
        let durability = client.status()["durability"].as_str().unwrap_or("unknown").to_owned();
        let mut platform = Self {
            client,
            server: None,
            ids: None,
            floor_ts_ms: 0,
            base: http.clone(),
            http,
            tls: None,
            password: String::new(),
            durability,
            _data_directory: None,
        };
        if verify {
            let ids = platform.client.device_ids(&fleet.device_prefix, fleet.connected)?;
            if has_older {
                platform.go_after_earlier_runs(&ids, progress)?;
            }
            platform.ids = Some(ids);
        }
        Ok(platform)
    }

    /// The `[target]` for other processes: the devices exist already.
    pub(crate) fn target_overrides(&self, broker: &str) -> toml::Table {
        let text = |text: &str| toml::Value::String(text.to_owned());
        let mut told: toml::Table = [
            ("url", text(broker)),
            ("http", text(&self.http)),
            ("user", text(ADMIN)),
            ("password", text(&self.password)),
            ("provision", toml::Value::Boolean(false)),
            ("verify", toml::Value::Boolean(self.ids.is_some())),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect();
        let pid = self.server.as_ref().map(|server| i64::from(server.sampled().pid()));
        told.extend(pid.map(|pid| ("pid".to_owned(), toml::Value::Integer(pid))));
        told
    }

    /// The ids of the devices by number, and the value of `X-Authorization` for requests about them.
    pub(crate) fn devices(&self, fleet: &Fleet) -> Result<(Vec<String>, String)> {
        let ids = self.client.device_ids(&fleet.device_prefix, fleet.connected)?;
        Ok((ids, self.client.bearer()))
    }

    /// Makes the first timestamp of the run later than those of these devices: timestamps of earlier runs may lie in the future, and no
    /// point may be counted twice.
    fn go_after_earlier_runs(&mut self, ids: &[String], progress: &Progress) -> Result<()> {
        progress.step("looking for points of earlier runs".to_owned());
        for id in ids {
            let newest = self.client.newest_ts_ms(id, SEQUENCE_KEY)?;
            self.floor_ts_ms = self.floor_ts_ms.max(newest + 1);
        }
        Ok(())
    }

    /// The same for devices behind gateways of an earlier run, as far as they exist and points are read back.
    pub(super) fn go_after_earlier_gateways(
        &mut self,
        device_prefix: &str,
        count: u32,
        progress: &Progress,
    ) -> Result<()> {
        if self.ids.is_none() {
            return Ok(());
        }
        let ids = self.client.known_device_ids(device_prefix, count)?;
        self.go_after_earlier_runs(&ids, progress)
    }

    /// Finds the devices to read back, `<device_prefix>0` to `<device_prefix>count-1`, which the server has created since the run
    /// opened it. It does nothing if verification is not wanted.
    pub(super) fn find_devices(&mut self, device_prefix: &str, count: u32) -> Result<()> {
        if let Some(ids) = &mut self.ids {
            *ids = self.client.device_ids(device_prefix, count)?;
        }
        Ok(())
    }

    /// The client of its HTTP interface.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The counters of the server.
    pub(crate) fn metrics(&self) -> Prometheus {
        Prometheus::tacho(&self.base).with_tls(self.tls.clone())
    }

    /// Reads back what these devices sent since a time. Returns `None` if verification is not wanted.
    pub(super) fn verify(
        &self,
        tallies: &[(u32, Tally)],
        keys: &[&'static str],
        base_ts_ms: u64,
    ) -> Result<Option<Verification>> {
        let Some(ids) = &self.ids else { return Ok(None) };
        verify::verify(&Job { client: &self.client, ids, tallies, keys, base_ts_ms }).map(Some)
    }

    /// Stops a server that the run started. A failure is an error, because acknowledged points must be safe.
    pub(crate) fn stop(mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        match server.ended()? {
            Some(status) => Err(server.failed(format!("ended during the run ({status})"))),
            None => server.stop(),
        }
    }
}

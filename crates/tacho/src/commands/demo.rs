//! `tacho demo`: a server with a simulated fleet.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use hub::registry::BulkDevices;

use crate::config::Config;
use crate::data_args::DataArgs;
use crate::limits::DEMO_OTHER_FILES;
use crate::listen_args::ListenArgs;
use crate::output::Audience;
use crate::server::{OpenFiles, Server};
use crate::simulator::{Credentials, Plan, Simulator};
use crate::{fleet, logging, program};

/// The default port of PostgreSQL clients.
const POSTGRES_PORT: u16 = 5432;
/// The prefix of the device names.
const PREFIX: &str = "vehicle-";

/// Runs a server with a simulated fleet
///
/// Vehicles drive around a few towns and report over real MQTT connections: position, speed, gear, engine, fuel,
/// temperatures and sometimes a fault code. The dashboard shows them live and needs no login. Without --data the command
/// uses a temporary directory and removes it at the end (Ctrl-C).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho demo
  tacho demo --devices 50 --rate 2 --seed 7
  tacho demo --http 127.0.0.1:9090 --mqtt 127.0.0.1:0
  tacho demo --data ./demo-data        keeps the data for the next demo")]
pub(crate) struct DemoArgs {
    /// Number of vehicles
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    devices: u32,
    /// Reports per second of each vehicle
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = parse_rate)]
    rate: f64,
    /// Seed of the simulation: the same number gives the same fleet
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Prints one line of JSON when the demo is ready, as `tacho serve --json` does, with the number of devices and reports
    /// per second
    #[arg(long)]
    json: bool,
    /// Opens the dashboard in the browser
    #[arg(long)]
    open: bool,
    /// Data directory [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    listen: ListenArgs,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("\"{text}\" is no number"))?;
    if (0.001..=100.0).contains(&rate) {
        Ok(rate)
    } else {
        Err("a number from 0.001 to 100 is expected".into())
    }
}

/// Runs the demo until a signal ends it.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let temporary = match args.data {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new()
                .prefix("tacho-demo-")
                .tempdir()
                .context("cannot create a temporary directory")?,
        ),
    };
    let data = args.data.clone().or_else(|| Some(temporary.as_ref()?.path().into()));
    let mut config = DataArgs { data, config: args.config.clone() }.load()?;
    args.listen.apply(&mut config);
    config.http.public_read = true;
    if config.postgres.is_none() {
        config.open_postgres(free_postgres_address());
    }
    logging::start(&config)?;
    check_open_files(args.devices)?;
    let mut server = Server::start(&config, Audience::of(args.json))?;
    let ran = drive(args, &config, &mut server);
    let stopped = server.stop();
    ran.and(stopped)
}

/// The default port of PostgreSQL, or any free port if that one is taken.
fn free_postgres_address() -> SocketAddr {
    let usual = SocketAddr::from(([127, 0, 0, 1], POSTGRES_PORT));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from(([127, 0, 0, 1], 0)),
    }
}

/// Checks the open-file limit: both ends of each connection are in this process.
fn check_open_files(devices: u32) -> anyhow::Result<()> {
    let cap = OpenFiles::raise().cap;
    let possible = cap.saturating_sub(DEMO_OTHER_FILES) / 2;
    ensure!(
        u64::from(devices) <= possible,
        "{devices} vehicles need {} open files, but this process is capped at {cap} (RLIMIT_NOFILE, hard): use at most \
         --devices {possible} or raise the cap (ulimit -Hn)",
        u64::from(devices) * 2 + DEMO_OTHER_FILES
    );
    Ok(())
}

fn drive(args: &DemoArgs, config: &Config, server: &mut Server) -> anyhow::Result<()> {
    let count = args.devices as usize;
    let devices = BulkDevices { count, prefix: PREFIX, existing_ok: true, ..BulkDevices::default() };
    let devices = server.registry().add_devices(server.registry().default_tenant(), devices)?;
    let credentials = devices.into_iter().map(|provisioned| Credentials {
        name: provisioned.device.name.clone(),
        token: provisioned.token.to_string(),
    });
    let vehicles = fleet::vehicles(count, args.seed).into_iter().zip(credentials).collect();
    let period = Duration::from_secs_f64(1.0 / args.rate);
    let plan = Plan { address: address_of(server, "mqtt"), vehicles, period };
    let simulator = Simulator::start(plan).context("cannot start the fleet")?;
    server.announce(&[("devices", args.devices.into()), ("reportsPerSecond", reports(args).into())]);
    describe(args, config, server);
    let waited = server.wait_for_signal();
    let summary = simulator.stop();
    tracing::info!(?summary, "the fleet has stopped");
    waited
}

/// Reports per second of the whole fleet.
fn reports(args: &DemoArgs) -> f64 {
    f64::from(args.devices) * args.rate
}

/// The address of a door that is always open.
fn address_of(server: &Server, scheme: &str) -> SocketAddr {
    server.address(scheme).unwrap_or_else(|| panic!("BUG: no door listens for {scheme}"))
}

fn describe(args: &DemoArgs, config: &Config, server: &Server) {
    let (url, mqtt) = (format!("http://{}", address_of(server, "http")), address_of(server, "mqtt"));
    let (tacho, data) = (program::name(), program::path_word(&config.data));
    let psql = match server.address("postgres") {
        Some(address) => format!("\n  psql -h {} -p {} -U public tacho", address.ip(), address.port()),
        None => String::new(),
    };
    let audience = Audience::of(args.json);
    audience.tell(format_args!(
        "
{} vehicles send {} reports a second. Look at them:

  {url}

Log in there as the administrator, who may do more than look:

  user      {}
  password  {}

Connect a device of your own:

  {tacho} device add my-device --token my-token --data {data}
  mosquitto_pub -h {} -p {} -u my-token -q 1 -t v1/devices/me/telemetry -m '{{\"speed\":42.5}}'

Ask with SQL:

  {tacho} sql \"SELECT device, avg(speed) FROM telemetry GROUP BY device LIMIT 5\" --data {data}{psql}

See how the server is:

  {tacho} status --data {data}

Ctrl-C ends the demo{}.",
        args.devices,
        reports(args),
        hub::registry::ADMIN_LOGIN,
        password(args, config),
        mqtt.ip(),
        mqtt.port(),
        if args.data.is_none() { " and removes its data" } else { "" },
    ));
    if args.open {
        open_page(&url, audience);
    }
}

/// The text about the password: the password itself if its directory is temporary, otherwise the place of its file.
fn password(args: &DemoArgs, config: &Config) -> String {
    let file = config.data.join(hub::registry::ADMIN_PASSWORD_FILE);
    match std::fs::read_to_string(&file) {
        Ok(password) if args.data.is_none() => password.trim().to_owned(),
        Ok(_) => format!("in the file {}", file.display()),
        Err(_) => format!("the one that you chose ({} is gone)", file.display()),
    }
}

fn open_page(url: &str, audience: Audience) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    let started = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        audience.tell(format_args!("cannot open a browser ({opener}: {error}); open {url} yourself"));
    }
}

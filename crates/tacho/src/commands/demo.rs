//! `tacho demo`: a server with a simulated fleet.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use clients::tls::{TlsConfig, TlsOptions, Trust};
use gateway::tls::TlsFiles;
use hub::caller::Role;
use hub::registry::BulkDevices;

use crate::config::{Config, SENSORS_DIRECTORY};
use crate::data_args::DataArgs;
use crate::data_directory::create_directory;
use crate::limits::DEMO_OTHER_FILES;
use crate::listen_args::ListenArgs;
use crate::output::Audience;
use crate::self_signed::SelfSigned;
use crate::server::{OpenFiles, Server};
use crate::simulator::{Credentials, Plan, Simulator};
use crate::{demo_sensors, fleet, logging, program};

/// The usual MQTT ports and HTTP with TLS.
const MQTTS_PORT: u16 = 8883;
const HTTPS_PORT: u16 = 8443;
/// The folder of the certificate, in the data directory.
const TLS_FOLDER: &str = "tls";
/// The default port of PostgreSQL clients.
const POSTGRES_PORT: u16 = 5432;
/// A name that every certificate of a demo has.
const CERTIFIED: &str = "localhost";
/// The prefix of the device names.
const PREFIX: &str = "vehicle-";

/// Runs a server with a simulated fleet
///
/// Vehicles drive around a few towns and report over real MQTT connections: position, speed, gear, engine, fuel,
/// temperatures and sometimes a fault code. The dashboard shows them live and needs no login. Two virtual sensors compute the mean
/// speed of a vehicle; their files are in the folder sensors of the data directory, and the server follows their changes. Without
/// --data the command uses a temporary directory and removes it at the end (Ctrl-C).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho demo
  tacho demo --devices 50 --rate 2 --seed 7
  tacho demo --tls                     the vehicles connect with TLS
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
    /// Prints one JSON line when the demo is ready, as `tacho serve --json` does, with the number of devices and reports
    /// per second
    #[arg(long)]
    json: bool,
    /// Opens the dashboard in the browser
    #[arg(long)]
    open: bool,
    /// Serves MQTT, HTTP and PostgreSQL with TLS too, and connects the vehicles with it. The certificate is a self-signed one in
    /// the folder tls of the data directory; the demo makes it if it is not there
    #[arg(long)]
    tls: bool,
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
    let rate: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
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
    config.time_series.open = Some(Role::Operator);
    if config.postgres.is_none() {
        config.open_postgres(free_address(POSTGRES_PORT));
    }
    let certificate = if args.tls { Some(open_tls(&mut config)?) } else { None };
    logging::start(&config)?;
    check_open_files(args.devices)?;
    if config.sensors == config.data.join(SENSORS_DIRECTORY) {
        create_directory(&config.data)?;
        demo_sensors::write(&config.sensors)?;
    }
    let mut server = Server::start(&config, Audience::of(args.json))?;
    let ran = drive(args, &config, &mut server, certificate.as_ref());
    let stopped = server.stop();
    ran.and(stopped)
}

/// Makes or finds the certificate, and opens the TLS doors with it.
fn open_tls(config: &mut Config) -> anyhow::Result<SelfSigned> {
    ensure!(
        config.tls.is_none(),
        "the configuration has a certificate in [tls], and --tls makes one of its own: leave out one of the two"
    );
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    for address in [config.mqtt.listen.ip(), config.http.listen.ip()] {
        if !address.is_unspecified() && !names.contains(&address.to_string()) {
            names.push(address.to_string());
        }
    }
    let files = SelfSigned::find_or_make(&config.data.join(TLS_FOLDER), &names)?;
    let (certificate, key) = (files.certificate.clone(), files.key.clone());
    config.tls = Some(TlsFiles { certificate, key, ..TlsFiles::default() });
    config.mqtt.tls_listen.get_or_insert_with(|| free_address(MQTTS_PORT));
    config.http.tls_listen.get_or_insert_with(|| free_address(HTTPS_PORT));
    Ok(files)
}

/// The address with the usual port, or any free port if that one is taken.
fn free_address(port: u16) -> SocketAddr {
    let usual = SocketAddr::from(([127, 0, 0, 1], port));
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

fn drive(
    args: &DemoArgs,
    config: &Config,
    server: &mut Server,
    certificate: Option<&SelfSigned>,
) -> anyhow::Result<()> {
    let count = args.devices as usize;
    let devices = BulkDevices { count, prefix: PREFIX, existing_ok: true, ..BulkDevices::default() };
    let devices = server.registry().add_devices(server.registry().default_tenant(), devices)?;
    let credentials = devices.iter().map(|one| {
        let (name, token) = (one.device.name.clone(), one.credentials.token());
        let token = token.with_context(|| {
            format!("the device \"{name}\" has no access token; give it one with `tacho device token --new`")
        })?;
        Ok(Credentials { name, token: token.to_string() })
    });
    let credentials = credentials.collect::<anyhow::Result<Vec<_>>>()?;
    let vehicles = fleet::vehicles(count, args.seed).into_iter().zip(credentials).collect();
    let period = Duration::from_secs_f64(1.0 / args.rate);
    let (address, tls) = match certificate {
        None => (address_of(server, "mqtt"), None),
        Some(files) => {
            let options = TlsOptions { trust: Trust::File(files.ca.clone()), identity: None };
            (address_of(server, "mqtts"), Some(TlsConfig::load(&options)?.client(CERTIFIED)?))
        }
    };
    let plan = Plan { address, tls, vehicles, period };
    let simulator = Simulator::start(plan).context("cannot start the fleet")?;
    let mut more = vec![("devices", args.devices.into()), ("reportsPerSecond", reports(args).into())];
    more.extend(certificate.map(|files| ("cafile", files.ca.to_string_lossy().into())));
    server.announce(&more);
    describe(args, config, server, certificate);
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

/// What the printed commands need to reach the server.
struct ServerAddresses {
    url: String,
    mqtt: String,
    /// A line with curl.
    curl: String,
    psql: String,
    /// The options of `tacho status` besides the data directory.
    status: String,
}

impl ServerAddresses {
    fn plain(server: &Server) -> Self {
        let mqtt = address_of(server, "mqtt");
        let psql = server
            .address("postgres")
            .map(|address| format!("\n  psql -h {} -p {} -U public tacho", address.ip(), address.port()));
        Self {
            url: format!("http://{}", address_of(server, "http")),
            mqtt: format!("-h {} -p {}", mqtt.ip(), mqtt.port()),
            curl: String::new(),
            psql: psql.unwrap_or_default(),
            status: String::new(),
        }
    }

    fn encrypted(server: &Server, files: &SelfSigned) -> Self {
        let (mqtt, https) = (address_of(server, "mqtts"), address_of(server, "https"));
        let (ca, url) = (program::path_word(&files.ca), format!("https://{}", certified(https)));
        let psql = server.address("postgres").map(|address| {
            let words = format!(
                "host={} port={} user=public dbname=tacho sslmode=verify-full sslrootcert={}",
                certified_host(address),
                address.port(),
                conninfo_value(&files.ca)
            );
            format!("\n  psql {}", program::double_quoted(&words))
        });
        Self {
            mqtt: format!("--cafile {ca} -h {} -p {}", certified_host(mqtt), mqtt.port()),
            curl: format!("  curl --cacert {ca} {url}/healthz\n"),
            psql: psql.unwrap_or_default(),
            status: format!("--url {url} --cafile {ca} "),
            url,
        }
    }
}

/// A path as a value in a connection string of PostgreSQL.
fn conninfo_value(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.contains([' ', '\'', '\\']) {
        return format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    }
    text.into_owned()
}

/// A name of an address that its certificate has.
fn certified_host(address: SocketAddr) -> String {
    if address.ip().is_loopback() || address.ip().is_unspecified() {
        return CERTIFIED.to_owned();
    }
    address.ip().to_string()
}

/// Such a name with the port, for a URL.
fn certified(address: SocketAddr) -> String {
    match certified_host(address).as_str() {
        host if host.contains(':') => format!("[{host}]:{}", address.port()),
        host => format!("{host}:{}", address.port()),
    }
}

fn describe(args: &DemoArgs, config: &Config, server: &Server, certificate: Option<&SelfSigned>) {
    let ServerAddresses { url, mqtt, curl, psql, status } = certificate
        .map_or_else(|| ServerAddresses::plain(server), |files| ServerAddresses::encrypted(server, files));
    let (tacho, data) = (program::name(), program::path_word(&config.data));
    let sensors = config.sensors.display();
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
  mosquitto_pub {mqtt} -u my-token -q 1 -t v1/devices/me/telemetry -m '{{\"speed\":42.5}}'

Ask with SQL:

  {tacho} sql \"SELECT device, avg(speed) FROM telemetry GROUP BY device LIMIT 5\" --data {data}{psql}

See the virtual sensors; their files are in {sensors}:

  {tacho} sensor list --data {data}

See how the server is:

{curl}  {tacho} status {status}--data {data}

Ctrl-C ends the demo{}.",
        args.devices,
        reports(args),
        hub::registry::ADMIN_LOGIN,
        password(args, config),
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

//! `tacho status`: the state of a server.

mod report;

use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;

use crate::client::{Api, ApiError, RuntimeFile, ServerArgs, client_of};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{Permission, REGISTRY_FILE, check_permission, holder};
use crate::limits::{STATUS_RATE_SPAN, STATUS_TIMEOUT};
use crate::output::{fail, say};
use report::{Disk, Report, State};

/// Shows whether a server runs, whether it accepts data, and its state
///
/// The command asks the server that runs on the data directory, or the server of --url. It counts the points of one second.
/// The list of tables needs the administrator's login and is left out without it.
///
/// Exit codes: 0 the server is ready; 1 the server accepts no writes at present, does not answer, or does not run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho status
  tacho status --data /var/lib/tacho --json
  tacho status --url http://127.0.0.1:8080")]
pub(crate) struct StatusArgs {
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    match report(args).and_then(|report| Ok((say(text(&report, args.json))?, report))) {
        Ok(((), report)) if report.state == State::Ready => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    }
}

fn text(report: &Report, json: bool) -> String {
    match json {
        true => serde_json::to_string_pretty(report).expect("BUG: a report is plain JSON"),
        false => report.lines(),
    }
}

fn report(args: &StatusArgs) -> anyhow::Result<Report> {
    let config = args.data.load()?;
    let api = match &args.server.url {
        Some(_) => args.server.find_within(&config, STATUS_TIMEOUT)?,
        None => {
            ensure!(
                config.data.exists(),
                "there is no data directory {}; name one with --data, or a server with --url",
                config.data.display()
            );
            match local(&config)? {
                Ok(url) => client_of(&url, STATUS_TIMEOUT),
                Err(report) => return Ok(report),
            }
        }
    };
    let data = args.server.url.is_none().then_some(config.data.as_path());
    asked(&api, args, &config, data)
}

/// The address of the server on the data directory, or the report if no server answers there.
///
/// The directory's lock decides: the runtime file of a killed server is not proof of a running one.
fn local(config: &Config) -> anyhow::Result<Result<String, Report>> {
    let data = &config.data;
    check_permission(data, Permission::Read)?;
    let runtime = RuntimeFile::read(data)?;
    Ok(match (holder(data), runtime) {
        (Some(_), Some(runtime)) => Ok(runtime.url()),
        (Some(process), None) => Err(Report {
            reasons: vec![format!("process {process} has the directory and serves nothing (yet)")],
            process: process.parse().ok(),
            ..Report::of(State::Starting, data)
        }),
        (None, None) if !data.join(REGISTRY_FILE).exists() => {
            bail!("{} is not a data directory; name one with --data, or a server with --url", data.display())
        }
        (None, _) => Err(Report { disk: Disk::of(data).ok(), ..Report::of(State::Stopped, data) }),
    })
}

/// Asks the server for its state.
fn asked(api: &Api, args: &StatusArgs, config: &Config, data: Option<&Path>) -> anyhow::Result<Report> {
    let mut report = Report { url: Some(api.base().to_owned()), ..Report::default() };
    if let Some(data) = data {
        report.data = Some(data.into());
        report.process = RuntimeFile::read(data)?.map(|runtime| runtime.pid);
        report.disk = Disk::of(data).ok();
    }
    let (began, first) = match api.get("/api/status") {
        Ok(status) => (Instant::now(), status),
        Err(error @ ApiError::Transport { .. }) => {
            report.state = State::Silent;
            report.reasons = vec![format!("{:#}", anyhow::Error::new(error))];
            return Ok(report);
        }
        Err(error) => return Err(error.into()),
    };
    ensure!(first["store"].is_object(), api.unexpected("GET", "/api/status", "no state of a store"));
    sleep(STATUS_RATE_SPAN);
    let status = api.get("/api/status").context("the server answered once, and then no more")?;
    report.tell(&status);
    report.points_per_s = rate(&first, &status, began.elapsed());
    report.tables = tables(api, args, config);
    Ok(report)
}

fn rate(before: &Value, after: &Value, span: Duration) -> Option<f64> {
    let points = |status: &Value| status["points_total"].as_u64();
    let came = points(after)?.saturating_sub(points(before)?);
    Some((came as f64 / span.as_secs_f64() * 10.0).round() / 10.0)
}

/// The tables, if the login may see them.
fn tables(api: &Api, args: &StatusArgs, config: &Config) -> Option<Vec<report::Table>> {
    args.server.log_in(api, config).ok()?;
    let answer = api.get("/api/tacho/tables").ok()?;
    answer["tables"].as_array()?.iter().map(report::Table::of).collect()
}

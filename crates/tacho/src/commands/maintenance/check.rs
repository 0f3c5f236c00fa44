//! `tacho check`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use hub::maintenance::{keys_findings, registry_findings};
use hub::registry::problems_of;
use indicatif::{HumanBytes, HumanCount};
use serde_json::Value;
use store::backup::Digest;
use store::{CheckReport, Finding, Severity};
use store_local::RealDisk;
use store_local::backup::{check_backup, compare_with_list, read_list};

use super::finding::describe;
use crate::client::{Api, ServerArgs};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{
    Access, REGISTRY_FILE, directory_or_server, keys_directory, open_copy_of_keys, store_directory,
};
use crate::output::say;
use crate::program;
use crate::progress::Progress;

/// Verifies all files on disk, and changes nothing
///
/// The command reads the manifest, the series, every frame of the log, every block and every row of every part, and the
/// registry of devices. For each damage it names the file and the offset, the rows concerned, whether acknowledged data is
/// lost, and what to do. Exit code 1 means that there is damage.
///
/// Without a server the command reads the directory as it is, and recovers or removes nothing. It reads the key-value engine in
/// a copy in the temporary directory of the system. A running server checks its own
/// files while it serves.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho check --data /var/lib/tacho
  tacho check --backup /mnt/backup/tacho")]
pub(crate) struct CheckArgs {
    /// Checks the directory of a backup instead (`tacho backup`)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "config", "url", "user"])]
    backup: Option<PathBuf>,
    /// Refuses a backup whose list does not have this SHA-256 (`tacho backup` prints it)
    #[arg(long, value_name = "SHA256", requires = "backup", conflicts_with_all = ["data", "config", "url", "user"])]
    digest: Option<Digest>,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let report = match &args.backup {
        Some(backup) => of_backup(backup, args.digest)?,
        None => {
            let config = args.data.load()?;
            match directory_or_server(&args.server, &config, || stopped(&config))? {
                Access::Directory(report) => report,
                Access::Server(api) => running(&api)?,
            }
        }
    };
    if args.json {
        say(json_of(&report))?;
    } else {
        for finding in &report.findings {
            say(program::runnable(&describe(finding)))?;
        }
        say(summary(&report))?;
    }
    let damages = report.findings.iter().filter(|finding| finding.severity == Severity::Damage).count();
    match damages {
        0 => Ok(()),
        1 => bail!("there is damage in one place"),
        more => bail!("there is damage in {more} places"),
    }
}

fn stopped(config: &Config) -> anyhow::Result<CheckReport> {
    let store = store_directory(&config.data);
    let mut progress = Progress::new("checking");
    let segment_bytes = config.store.log_segment_bytes;
    let mut report = store_local::check(&RealDisk, &store, segment_bytes, &mut progress.watch())?;
    let registry = config.data.join(REGISTRY_FILE);
    report.findings.extend(registry_findings(&registry, problems_of(&registry)));
    report.findings.extend(match open_copy_of_keys(&config.data) {
        Ok(None) => Vec::new(),
        Ok(Some(copy)) => keys_findings(&copy.engine, &keys_directory(&config.data)),
        Err(error) => vec![Finding::damage(keys_directory(&config.data), None, format!("{error:#}"))],
    });
    Ok(report)
}

/// Checks a backup: its list has checksums of every file, and its store is one without a server.
fn of_backup(backup: &std::path::Path, digest: Option<Digest>) -> anyhow::Result<CheckReport> {
    let list = read_list(&RealDisk, backup, digest)?;
    let mut progress = Progress::new("checking");
    let mut findings = compare_with_list(&RealDisk, backup, &list, &mut progress.watch());
    for path in &list.left_out {
        let what = "this part was damaged when the backup was made and is not in it";
        findings.push(Finding::note(backup.join(path), what));
    }
    // Damaged files are not read any further.
    let report = match findings.iter().any(|finding| finding.severity == Severity::Damage) {
        true => CheckReport::default(),
        false => check_backup(Arc::new(RealDisk), backup, &list, &mut progress.watch())?,
    };
    findings.extend(report.findings.iter().cloned());
    Ok(CheckReport { findings, bytes: list.bytes(), ..report })
}

fn running(api: &Api) -> anyhow::Result<CheckReport> {
    let answer = api.post_for_stream("/api/tacho/check", b"")?;
    let mut progress = Progress::new("checking");
    for line in BufReader::new(answer.body).lines() {
        let line = line.context("the server broke the check off; its log says why")?;
        let line: Value = serde_json::from_str(&line).context("the server's answer is not understood")?;
        if let Some(error) = line["error"].as_str() {
            bail!("the server cannot check its files: {error}");
        }
        if line["report"].is_object() {
            return report_of(&line["report"]).context("the server's report is not understood");
        }
        progress.at(line["done"].as_u64().unwrap_or(0), line["total"].as_u64().unwrap_or(0));
    }
    bail!("the server broke the check off; its log says why")
}

fn report_of(json: &Value) -> Option<CheckReport> {
    let number = |name: &str| json[name].as_u64();
    let findings = json["findings"].as_array()?.iter().map(finding_of).collect::<Option<_>>()?;
    Some(CheckReport {
        findings,
        bytes: number("bytes")?,
        tables: number("tables")?,
        series: number("series")?,
        parts: number("parts")?,
        part_rows: number("partRows")?,
        log_segments: number("logSegments")?,
        log_rows: number("logRows")?,
        interrupted: false,
    })
}

fn finding_of(json: &Value) -> Option<Finding> {
    let text = |name: &str| json[name].as_str();
    let severity = if text("severity")? == "note" { Severity::Note } else { Severity::Damage };
    let finding = Finding::damage(text("path")?, json["offset"].as_u64(), text("what")?);
    let finding = finding.with(text("means")?, text("action")?).of(text("table"), json["rows"].as_u64());
    Some(Finding { severity, ..finding })
}

fn json_of(report: &CheckReport) -> Value {
    let mut json = gateway::http::report_json(report);
    json["damaged"] = report.is_damaged().into();
    json
}

fn summary(report: &CheckReport) -> String {
    let CheckReport { parts, part_rows, log_segments, log_rows, series, tables, .. } = report;
    let outcome = if report.is_damaged() { "" } else { ": no damage" };
    format!(
        "checked  {} in {parts} parts with {} rows, {log_segments} log segments with {} rows, {} series of {tables} tables{outcome}",
        HumanBytes(report.bytes),
        HumanCount(*part_rows),
        HumanCount(*log_rows),
        HumanCount(*series),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_server_is_read() {
        let finding = serde_json::json!({
            "severity": "damage", "path": "/d/parts/1", "offset": 32_768, "what": "bad block", "means": "lost",
            "action": "restore", "table": "t", "rows": 7,
        });
        let report = serde_json::json!({
            "findings": [finding], "bytes": 1, "tables": 2, "series": 3, "parts": 4, "partRows": 5, "logSegments": 6,
            "logRows": 7,
        });
        let report = report_of(&report).unwrap();
        assert!(report.is_damaged());
        assert_eq!(
            describe(&report.findings[0]),
            "DAMAGE  /d/parts/1 at byte 32768: bad block\n  means  lost\n  to do  restore"
        );
        assert!(report_of(&serde_json::json!({ "findings": [] })).is_none());
    }
}

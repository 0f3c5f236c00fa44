//! Whole runs against a stand-in for the server: an honest one passes, each kind of lie is noticed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bench::{Context, ledger, thingsboard};
use clap::Parser;

#[derive(Debug, Parser)]
struct LedgerLine {
    #[command(flatten)]
    options: ledger::Options,
}

#[derive(Debug, Parser)]
struct ThingsboardLine {
    #[command(flatten)]
    options: thingsboard::Options,
}

/// The stand-in as a program that can be started like ours.
fn fake_server(directory: &Path, lie: &str) -> Context {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/fake_server.py");
    let binary = directory.join("fake-server");
    let text = format!("#!/bin/sh\nFAKE_LIE={lie} exec python3 {} \"$@\"\n", script.display());
    fs::write(&binary, text).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    Context {
        server_binary: binary,
        worker_arguments: Vec::new(),
        command_line: vec!["test".to_owned()],
        commit: Some("c0ffee".to_owned()),
    }
}

fn run_ledger(lie: &str, kills: &str) -> bench::Result<(ledger::Report, PathBuf)> {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), lie);
    let out = directory.path().join("result");
    let out = out.to_str().unwrap();
    let words = ["ledger", "--kills", kills, "--seed", "3", "--devices", "3", "--quiet", "--out", out];
    let outcome = ledger::run(&LedgerLine::parse_from(words).options, &context);
    if let Ok((report, directory)) = &outcome {
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(directory.join("result.json")).unwrap()).unwrap();
        assert_eq!(json["kept"], report.kept());
        assert_eq!(json["commit"], "c0ffee");
        assert_eq!(report.data.exists(), !report.kept(), "the data is kept exactly when it is evidence");
    }
    outcome
}

#[test]
fn an_honest_server_keeps_the_ledger_through_kills() {
    let (report, _) = run_ledger("", "3").unwrap();
    assert!(report.kept(), "{report}");
    assert_eq!(report.kills.len(), 3);
    assert!(report.at_end.acked > 100, "{report}");
    assert_eq!(report.at_end.acked, report.after_stop.acked);
    assert!(report.kills.iter().all(|kill| kill.during_startup || kill.check.is_some()));
}

#[test]
fn each_lie_breaks_the_ledger_by_its_own_name() {
    let found = |lie: &str| run_ledger(lie, "1").unwrap().0;
    let lose = found("lose");
    assert!(!lose.kept() && lose.at_end.lost > 0 && lose.at_end.invented == 0, "{lose}");
    let invent = found("invent");
    assert!(!invent.kept() && invent.at_end.invented == 1 && invent.at_end.lost == 0, "{invent}");
    let duplicate = found("duplicate");
    assert!(!duplicate.kept() && duplicate.at_end.duplicated > 0, "{duplicate}");
    let change = found("change");
    assert!(!change.kept() && change.at_end.wrong > 0 && change.at_end.lost == 0, "{change}");
}

#[test]
fn a_server_that_cannot_stop_in_order_is_an_error() {
    let error = run_ledger("drain", "1").unwrap_err().to_string();
    assert!(error.contains("exit status: 7") && error.contains("SIGTERM"), "{error}");
}

fn run_thingsboard(lie: &str, more: &str) -> (bench::report::Report, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), lie);
    let out = directory.path().join("result");
    let line = format!("thingsboard --duration 2s --warmup 500ms --quiet --out {} {more}", out.display());
    let options = ThingsboardLine::parse_from(line.split_whitespace()).options;
    let (report, bundle) = thingsboard::run(&options, &context).unwrap();
    let mut files: Vec<String> = fs::read_dir(&bundle)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let bytes: u64 = files.iter().map(|file| fs::metadata(bundle.join(file)).unwrap().len()).sum();
    assert!(bytes < 200_000, "a bundle of {bytes} bytes is too large to be committed");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "program and result; the data is gone");
    (report, files)
}

#[test]
fn an_open_run_is_verified_and_leaves_a_bundle() {
    let (report, files) = run_thingsboard("", "--devices 120 --rate 1000 --fixed");
    let verification = report.verification.as_ref().unwrap();
    assert_eq!(verification.first_difference, None);
    assert_eq!((report.counts.planned, report.counts.completed, verification.stored), (2_500, 2_500, 2_500));
    assert_eq!((report.counts.measured_completed, report.latency.samples), (2_000, 2_000));
    assert_eq!((verification.sampled_devices, verification.wrong_rows), (2, 0));
    assert!(verification.sampled_rows > 10);
    assert_eq!(report.target.durability, "os");
    assert!(report.cost.server_cpu_us_per_message.unwrap() > 0.0);
    assert_eq!(
        files,
        ["lag.hgrm", "latency.hgrm", "result.json", "series.csv", "service.hgrm", "summary.txt"]
    );
}

#[test]
fn a_closed_run_is_verified_too_and_a_liar_is_invalid() {
    let (report, _) = run_thingsboard("", "--devices 4 --closed --window 8");
    let verification = report.verification.as_ref().unwrap();
    assert!(report.verdict.valid, "{report}");
    assert_eq!(verification.stored, report.counts.completed);

    let (report, _) = run_thingsboard("lose", "--devices 4 --closed --window 8");
    assert!(!report.verdict.valid && report.verification.as_ref().unwrap().missing > 0, "{report}");
    assert!(report.to_string().contains("INVALID\n  - "), "{report}");
    assert!(report.to_string().contains("acknowledged messages are not stored"), "{report}");
}

#[test]
fn an_idle_run_reports_memory_per_connection() {
    let (report, _) = run_thingsboard("", "--devices 20 --idle");
    assert!(report.verdict.valid, "{report}");
    assert!(report.cost.server_rss_per_connection_bytes.unwrap() > 0.0, "{report}");
}

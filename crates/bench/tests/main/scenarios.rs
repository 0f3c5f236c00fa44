//! Whole runs against a fake server: an honest one passes, and each kind of lie is detected.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bench::Context;
use bench::command::{BenchCommand, run};
use clap::Parser;
use load::result::{Arrival, Bundle};

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

/// The fake server as a program that is started like ours.
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
        ..Context::default()
    }
}

/// Runs `tacho bench run ledger`. Returns its answer and its bundle.
fn run_ledger(lie: &str, kills: u32) -> (Result<(), String>, Bundle) {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), lie);
    let out = directory.path().join("result");
    let line = format!(
        "bench run ledger --kills {kills} --seed 3 --devices 3 --quiet --out {} {PATIENT}",
        out.display()
    );
    let line = Line::try_parse_from(line.split_whitespace()).unwrap();
    let answer = run(&line.command, &context, &mut Vec::new()).map_err(|error| error.to_string());
    let bundle = Bundle::read(&out).unwrap_or_else(|error| panic!("{answer:?}: {error}"));
    assert_eq!(answer.is_ok(), bundle.result.validity().is_quotable(), "{bundle}");
    assert_eq!(bundle.result.tool.commit.as_deref(), Some("c0ffee"));
    (answer, bundle)
}

/// Whether a run kept the data directory of its ledger. Removes it.
fn evidence(bundle: &Bundle) -> bool {
    let kept = bundle.result.findings.iter().find_map(|finding| {
        finding.strip_prefix("The data directory ")?.split_once(" is kept").map(|(name, _)| name)
    });
    kept.is_some_and(|name| fs::remove_dir_all(name).is_ok())
}

#[test]
fn an_honest_server_keeps_the_ledger_through_kills() {
    let (answer, bundle) = run_ledger("", 3);
    answer.unwrap();
    assert_eq!(found(&bundle, "kills"), "3");
    let phase = bundle.main_phase().unwrap();
    let of_class = |name: &str| phase.operations.iter().find(|o| o.name == name).unwrap().counts.completed;
    assert!(of_class("publish") > 100 && (1..=3).contains(&of_class("restart")), "{bundle}");
    assert_eq!(phase.arrival, Arrival::Loops, "devices and the killer: Little's law says nothing of both");
    assert_eq!(
        bundle.result.verification.len(),
        1 + 3 * 4,
        "after a kill, at the end, after an orderly stop"
    );
    assert!(!bundle.seconds.is_empty() && !evidence(&bundle), "{bundle}");
    assert_eq!(bundle.result.target.settings["durability"], "os");
}

#[test]
fn each_lie_breaks_the_ledger_by_its_own_name() {
    for (lie, name) in [
        ("lose", "acknowledged points that are not readable"),
        ("invent", "readable points that were never sent"),
        ("duplicate", "points readable more than once"),
        ("change", "points readable with another value"),
    ] {
        let (answer, bundle) = run_ledger(lie, 1);
        assert!(answer.unwrap_err().contains("not valid"));
        assert!(bundle.to_string().starts_with("INVALID"), "{bundle}");
        let at_end = bundle.result.verification.iter().filter(|check| check.what.contains("at the end"));
        let failed: Vec<&str> =
            at_end.filter(|check| !check.passed).map(|check| check.what.as_str()).collect();
        assert_eq!(failed, [format!("{name}, at the end (run)")], "{bundle}");
        assert!(
            bundle.result.findings.iter().any(|finding| finding.starts_with("at the end: device ")),
            "{bundle}"
        );
        assert!(evidence(&bundle), "the data is kept when it is evidence: {bundle}");
    }
}

#[test]
fn a_server_that_cannot_stop_in_order_breaks_the_ledger() {
    let (answer, bundle) = run_ledger("drain", 1);
    assert!(answer.unwrap_err().contains("not valid"));
    let [fault] = &bundle.result.faults[..] else { panic!("{bundle}") };
    assert!(fault.what.contains("exit status: 7") && fault.what.contains("SIGTERM"), "{fault:?}");
    assert_eq!(found(&bundle, "not readable, at the end"), "0", "what was found before stays");
    assert!(evidence(&bundle), "{bundle}");
}

#[test]
fn a_server_that_dies_by_itself_breaks_the_ledger() {
    // On a busy machine it may be killed several times before the first message.
    let (answer, bundle) = run_ledger("die", 20);
    assert!(answer.unwrap_err().contains("not valid"));
    let [fault] = &bundle.result.faults[..] else { panic!("{bundle}") };
    assert!(fault.what.contains("before it was killed"), "{fault:?}");
    assert!(bundle.to_string().contains("kills (run): 20 expected, "), "{bundle}");
    assert!(evidence(&bundle), "{bundle}");
}

#[test]
fn a_ledger_is_made_by_one_process() {
    let line = Line::try_parse_from("bench run ledger --workers 2".split_whitespace()).unwrap();
    let error = run(&line.command, &Context::default(), &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("leave out --workers"), "{error}");
}

/// Limits that a busy machine meets.
const PATIENT: &str = "--set gates.lag_p99_us_max=60000000 --set gates.steal_share_max=1 --set gates.generator_core_max=100 \
                       --set gates.sent_share_min=0";

/// Runs `tacho bench run thingsboard` with a server that it starts. Returns its answer and its bundle.
fn run_thingsboard(lie: &str, more: &str) -> (Result<(), String>, Bundle) {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), lie);
    let out = directory.path().join("result");
    let line = format!(
        "bench run thingsboard --duration 2s --warmup 500ms --quiet --out {} {PATIENT} {more}",
        out.display()
    );
    let line = Line::try_parse_from(line.split_whitespace()).unwrap();
    let answer = run(&line.command, &context, &mut Vec::new()).map_err(|error| error.to_string());
    (answer.clone(), Bundle::read(&out).unwrap_or_else(|error| panic!("{answer:?}: {error}")))
}

fn found(bundle: &Bundle, what: &str) -> String {
    let check = bundle.result.verification.iter().find(|check| check.what.contains(what));
    check.unwrap_or_else(|| panic!("{bundle}")).found.clone()
}

#[test]
fn an_open_run_is_verified_and_leaves_a_bundle() {
    let (answer, bundle) = run_thingsboard("", "--devices 120 --rate 1000 --fixed");
    answer.unwrap();
    let phase = bundle.main_phase().unwrap();
    let counts = &phase.total.counts;
    assert_eq!((counts.planned, counts.completed), (2_000, 2_000), "those of the measured part");
    for what in ["are not stored", "never sent", "wrong values"] {
        assert_eq!(found(&bundle, what), "0", "{bundle}");
    }
    let said = bundle.result.findings.join("\n");
    assert!(
        said.contains("120 devices sent 2500 messages, 2500 were acknowledged, 2500 points are stored"),
        "{said}"
    );
    assert!(said.contains("of 2 devices were compared value by value"), "{said}");
    assert_eq!(bundle.result.target.settings["durability"], "os");
    assert!(bundle.result.target.started_by_run && phase.cost.target_cpu_us_per_operation.unwrap() > 0.0);
}

#[test]
fn a_closed_run_is_verified_too_and_a_liar_is_invalid() {
    let (answer, bundle) = run_thingsboard("", "--devices 4 --closed --window 8");
    answer.unwrap();
    assert_eq!(found(&bundle, "are not stored"), "0");
    let (answer, bundle) = run_thingsboard("lose", "--devices 4 --closed --window 8");
    assert!(answer.unwrap_err().contains("not valid"));
    assert!(found(&bundle, "are not stored").parse::<u64>().unwrap() > 0, "{bundle}");
    assert!(bundle.to_string().contains("INVALID"), "{bundle}");
}

/// Runs `tacho bench run gateway`, small, with a server that it starts. Returns its answer and its bundle.
fn run_gateway(lie: &str, more: &str) -> (Result<(), String>, Bundle) {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), lie);
    let out = directory.path().join("result");
    let line = format!(
        "bench run gateway --quiet --out {} --set dataset.version='3.1.1' --set dataset.gateway_devices=119 \
         --set dataset.devices_per_message=50 --set phase.run.arrival=fixed --set phase.run.rate=40 \
         --set phase.run.warmup=0s --set phase.run.duration=1s --set phase.most.warmup=0s --set phase.most.duration=1s {PATIENT} {more}",
        out.display()
    );
    let line = Line::try_parse_from(line.split_whitespace()).unwrap();
    let answer = run(&line.command, &context, &mut Vec::new()).map_err(|error| error.to_string());
    (answer.clone(), Bundle::read(&out).unwrap_or_else(|error| panic!("{answer:?}: {error}")))
}

#[test]
fn a_gateway_connects_its_devices_and_each_point_of_its_messages_is_counted() {
    let (answer, bundle) = run_gateway("", "");
    answer.unwrap();
    let [connect, open, most] = &bundle.result.phases[..] else { panic!("{bundle}") };
    assert_eq!(connect.total.counts.completed, 119, "each device once: {bundle}");
    assert!(open.total.counts.completed > 0 && most.total.counts.completed > 0, "{bundle}");
    for (phase, place) in [(open, "run"), (most, "most")] {
        for what in ["are not stored", "never sent", "wrong values"] {
            assert_eq!(found(&bundle, &format!("{what} ({place})")), "0", "{bundle}");
        }
        // An answer after the end of the phase belongs to points that are stored, and to no completed operation of the phase.
        let begin = format!("{place}: 119 devices sent ");
        let sent = bundle.result.findings.iter().find_map(|finding| finding.strip_prefix(&begin));
        let (sent, rest) =
            sent.and_then(|sent| sent.split_once(' ')).unwrap_or_else(|| panic!("{begin}: {bundle}"));
        assert!(sent.parse::<u64>().unwrap() >= 50 * phase.total.counts.completed, "{bundle}");
        let said = format!("points, {sent} were acknowledged, {sent} points are stored");
        assert!(rest.starts_with(&said), "{said}: {bundle}");
        let rate = format!(
            "{place}: {:.0} points/s were acknowledged, 50 in a message",
            50.0 * phase.total.completed_per_s
        );
        assert!(bundle.result.findings.iter().any(|finding| finding.starts_with(&rate)), "{rate}: {bundle}");
    }
}

#[test]
fn points_of_a_gateway_that_are_lost_or_changed_make_the_run_invalid() {
    for (lie, what) in
        [("lose", "acknowledged points that are not stored (run)"), ("change", "wrong values (run)")]
    {
        let (answer, bundle) = run_gateway(lie, "--phase run");
        assert!(answer.unwrap_err().contains("not valid"));
        assert!(found(&bundle, what).parse::<u64>().unwrap() > 0, "{lie}: {bundle}");
    }
}

#[test]
fn several_processes_share_a_server_that_the_run_starts() {
    let program = crate::faults::program();
    let directory = tempfile::tempdir().unwrap();
    let mut context = fake_server(directory.path(), "");
    // The same program serves as the server and as the worker.
    let both = directory.path().join("both");
    let (worker, server) = (program.display(), context.server_binary.display());
    let text = format!("#!/bin/sh\n[ \"$1\" = worker ] && exec {worker} \"$@\"\nexec {server} \"$@\"\n");
    fs::write(&both, text).unwrap();
    fs::set_permissions(&both, fs::Permissions::from_mode(0o755)).unwrap();
    (context.server_binary, context.worker_arguments) = (both, vec!["worker".to_owned()]);
    // The commit of the main process.
    context.commit = None;
    let out = directory.path().join("result");
    let line = format!(
        "bench run thingsboard --workers 2 --devices 6 --rate 200 --fixed --duration 1s --warmup 0s --quiet --out {} {PATIENT}",
        out.display()
    );
    let line = Line::try_parse_from(line.split_whitespace()).unwrap();
    run(&line.command, &context, &mut Vec::new()).unwrap();
    let bundle = Bundle::read(&out).unwrap();
    assert_eq!((bundle.result.generators.len(), bundle.result.target.started_by_run), (2, true), "{bundle}");
    let phase = bundle.main_phase().unwrap();
    assert_eq!((phase.connections, phase.total.counts.completed), (6, 200), "{bundle}");
    assert!(phase.cost.target_cpu_us_per_operation.unwrap() > 0.0);
    for generator in ["are not stored (run, generator 1)", "are not stored (run, generator 2)"] {
        assert_eq!(found(&bundle, generator), "0", "each reads back what its devices sent");
    }
    let text = fs::read_to_string(out.join("result.json")).unwrap();
    assert!(!text.contains("secret"), "a password has no place in a result");
}

#[test]
fn an_idle_run_reports_memory_per_connection() {
    let (answer, bundle) = run_thingsboard("", "--devices 20 --idle");
    answer.unwrap();
    assert!(bundle.main_phase().unwrap().cost.target_rss_bytes_per_connection.is_some(), "{bundle}");
}

#[test]
fn a_server_that_cannot_stop_in_order_makes_the_run_invalid() {
    let (answer, bundle) = run_thingsboard("drain", "--devices 4");
    assert!(answer.unwrap_err().contains("not valid"));
    let faults: Vec<&str> = bundle.result.faults.iter().map(|fault| fault.what.as_str()).collect();
    assert!(
        faults.iter().any(|what| what.contains("exit status: 7") && what.contains("SIGTERM")),
        "{faults:?}"
    );
}

#[test]
fn a_running_server_is_logged_in_to_and_points_of_earlier_runs_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let context = fake_server(directory.path(), "");
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    let (mqtt, http) = (crate::databases::free_port(), crate::databases::free_port());
    let mut server = std::process::Command::new(&context.server_binary)
        .arg("serve")
        .arg("--data")
        .arg(&data)
        .env("TACHO_MQTT_LISTEN", format!("127.0.0.1:{mqtt}"))
        .env("TACHO_HTTP_LISTEN", format!("127.0.0.1:{http}"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::net::TcpStream::connect(("127.0.0.1", mqtt)).is_err() {
        assert!(std::time::Instant::now() < deadline, "the stand-in does not listen");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let say = |password: &str, out: &str| {
        let out = directory.path().join(out);
        let line = format!(
            "bench run thingsboard --target mqtt://127.0.0.1:{mqtt} --http http://127.0.0.1:{http} --password {password} \
             --devices 5 --rate 200 --duration 1s --warmup 0s --quiet --out {} {PATIENT}",
            out.display()
        );
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        run(&line.command, &context, &mut Vec::new()).map(|()| Bundle::read(&out).unwrap())
    };
    let error = say("guess", "wrong").unwrap_err().to_string();
    assert!(error.contains("/api/auth/login") && error.contains("401"), "{error}");
    for out in ["first", "second"] {
        let bundle = say("secret", out).unwrap();
        assert_eq!(
            (found(&bundle, "are not stored"), found(&bundle, "never sent")),
            ("0".into(), "0".into())
        );
        let text = fs::read_to_string(directory.path().join(out).join("result.json")).unwrap();
        assert!(!text.contains("secret"), "a password has no place in a result");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

//! Tests of the results of `capacity` and `ab` after external failures.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use load::result::Bundle;

use crate::acker::{Acker, Behaviour};
use crate::faults::{interrupted, program, small_disk, unmount};
use crate::peers::required;

const PATIENCE: Duration = Duration::from_secs(60);
/// Few devices, and gates that a busy machine passes.
const SMALL: &str = "--set phase.run.connections=4 --set phase.run.warmup=0s --set gates.lag_p99_us_max=60000000 \
                     --set gates.steal_share_max=1 --set gates.generator_core_max=100 --set gates.sent_share_min=0 \
                     --set gates.arrival_max=1000000";
/// Slices that are shorter than by default.
const SLICED: &str = "--set phase.run.arrival=closed --slice-ms 5";
/// With a warm-up both sides run before the first slice.
const WARMED: &str = "--set phase.run.arrival=closed --slice-ms 5 --set phase.run.warmup=20ms";

fn start(acker: &Acker, command: &str, out: &Path, more: &str) -> Child {
    let target = format!("mqtt://{}", acker.address);
    let child = Command::new(program())
        .args([command, "thingsboard", "--target", &target, "--out", out.to_str().unwrap()])
        .args(SMALL.split_whitespace())
        .args(more.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Standard output and standard error of a failed command.
fn said(output: &Output) -> (String, String) {
    let [text, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(1), "{text}{errors}");
    (text, errors)
}

/// Whether a search of one step at 200/s found any answer: a busy machine may miss the objective.
fn is_answered(text: &str) -> bool {
    ["capacity is at least 200/s", "no rate meets the objective, not even 200/s"]
        .iter()
        .any(|answer| text.contains(answer))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn sides(out: &Path) -> [Bundle; 2] {
    assert_eq!(names(out), ["A", "B"], "no answer that is none");
    ["A", "B"].map(|side| Bundle::read(&out.join(side)).unwrap())
}

#[test]
fn a_full_disk_does_not_take_the_answer_of_a_comparison_along() {
    let home = tempfile::tempdir().unwrap();
    let disk = small_disk(home.path());
    let acker = Acker::start(Behaviour::default());
    let child = start(&acker, "ab", &disk.join("ab"), &format!("{SLICED} --blocks-max 10"));
    let output = child.wait_with_output().unwrap();
    let left = fs::read_dir(disk.join("ab")).map(Iterator::count);
    unmount(&disk);
    let (text, errors) = said(&output);
    assert!(text.contains("A against A differs by") && !text.contains("result:"), "{text}{errors}");
    assert!(errors.contains("ab.json could not be written") && errors.contains("free some"), "{errors}");
    assert_eq!(left.unwrap(), 0, "{errors}");
}

#[test]
fn a_capacity_that_cannot_be_written_is_said_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let (out, acker) = (home.path().join("capacity"), Acker::start(Behaviour::default()));
    let line = "--slo p50<=30s --start 200 --rate-max 200 --step 1s --steps-max 1";
    let child = start(&acker, "capacity", &out, line);
    wait_until("the load does not begin", || acker.messages() > 10);
    // A directory is not overwritten.
    fs::create_dir(out.join("capacity.json")).unwrap();
    let (text, errors) = said(&child.wait_with_output().unwrap());
    assert!(is_answered(&text), "{text}{errors}");
    assert!(errors.contains("capacity.json could not be written"), "{errors}");
    assert_eq!(names(&out), ["capacity.json", "step-01"], "no half file");
}

#[test]
fn ctrl_c_leaves_both_sides_of_a_comparison_in_slices() {
    let home = tempfile::tempdir().unwrap();
    let (out, acker) = (home.path().join("ab"), Acker::start(Behaviour::default()));
    let child = start(&acker, "ab", &out, WARMED);
    wait_until("the load does not begin", || acker.messages() > 20_000);
    let (_, errors) = said(&interrupted(child));
    assert!(errors.contains("interrupted (Ctrl-C): there is no answer"), "{errors}");
    assert!(errors.contains(&format!("is in {}", out.display())), "{errors}");
    let sides = sides(&out);
    for side in &sides {
        let partial = side.result.partial.as_ref().unwrap();
        assert_eq!(partial.reason, "interrupted (Ctrl-C)");
        assert!(!side.result.validity().is_quotable() && side.result.faults.is_empty(), "{side}");
    }
    let completed = sides.map(|side| side.main_phase().unwrap().total.counts.completed);
    assert!(completed.iter().sum::<u64>() > 0, "{completed:?}");
}

#[test]
fn a_server_that_dies_leaves_both_sides_of_a_comparison_and_its_second() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("ab");
    let acker = Acker::start(Behaviour { hang_up_after: Some(3_000), ..Behaviour::default() });
    let child = start(&acker, "ab", &out, WARMED);
    let (_, errors) = said(&child.wait_with_output().unwrap());
    // The error depends on when the connections are lost: within a slice, or while its last answers arrive.
    let says = |what: &str| errors.contains(what);
    assert!(says("the server closed all connections") || says("connections were lost"), "{errors}");
    let sides = sides(&out);
    let named = sides.iter().any(|side| {
        let Some(fault) = side.result.faults.first() else { return false };
        assert!(0.0 < fault.at_s && fault.at_s <= side.result.took_s, "{fault:?}");
        errors.contains(&format!("second {:.0}: {}", fault.at_s, fault.what))
    });
    assert!(named, "{errors}");
    assert!(errors.contains(&format!("is in {}", out.display())), "{errors}");
    assert!(sides.iter().all(|side| !side.result.validity().is_quotable()));
}

#[test]
fn an_interrupted_search_keeps_what_is_known() {
    let home = tempfile::tempdir().unwrap();
    let (out, acker) = (home.path().join("capacity"), Acker::start(Behaviour::default()));
    let line = "--slo p50<=30s --start 200 --rate-max 400 --step 1s";
    let child = start(&acker, "capacity", &out, line);
    wait_until("the first step does not end", || out.join("step-01").is_dir());
    let before = acker.messages();
    wait_until("the second step does not begin", || acker.messages() > before + 10);
    let (text, errors) = said(&interrupted(child));
    assert!(errors.contains(&format!("is in {}", out.display())), "{errors}");
    let json = fs::read_to_string(out.join("capacity.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["partial"].as_str().unwrap().starts_with("interrupted (Ctrl-C)"), "{json}");
    assert!(json["answer"].is_null() && json["steps"].as_array().unwrap().len() == 1, "{json}");
    let sentences = json["sentences"].as_str().unwrap();
    assert!(sentences.contains("until then, in 1 steps") && sentences.contains("200/s"), "{sentences}");
    assert!(text.contains(sentences), "{text}");
    let last = Bundle::read(&out.join("step-02")).unwrap();
    assert_eq!(last.result.partial.unwrap().reason, "interrupted (Ctrl-C)");
}

/// Standard output and standard error of a command on a terminal.
fn on_terminal(line: &str) -> String {
    let program = program();
    let line = format!("{} {line}", program.display());
    let script = required("script", "bsdutils");
    let output = Command::new(script).args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}

#[test]
fn a_terminal_shows_which_step_is_under_way_and_plain_output_one_line_for_each() {
    let home = tempfile::tempdir().unwrap();
    let acker = Acker::start(Behaviour::default());
    let line = "--slo p50<=30s --start 200 --rate-max 200 --step 2s --steps-max 1";
    let child = start(&acker, "capacity", &home.path().join("plain"), line);
    let plain = child.wait_with_output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&plain.stderr));
    assert_eq!((text.matches("step ").count(), errors.as_ref()), (1, ""), "{text}");
    let terminal = on_terminal(&format!(
        "capacity thingsboard --target mqtt://{} --out {} {SMALL} {}",
        acker.address,
        home.path().join("terminal").display(),
        line.replace("p50<=30s", "'p50<=30s'")
    ));
    assert!(terminal.contains("step 1, 200/s for 2 s:    1/2 s"), "{terminal}");
    assert!(terminal.contains("step  1") && is_answered(&terminal), "{terminal}");
}

#[test]
fn rates_of_one_process_are_said_to_be_its_own() {
    let home = tempfile::tempdir().unwrap();
    let acker = Acker::start(Behaviour::default());
    let line = "--workers 2 --no-provision --no-verify --set phase.run.rate=200 --set phase.run.duration=2s";
    let child = start(&acker, "run", &home.path().join("run"), line);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("process 1 of 2: run: 2 connections open, the load begins"), "{errors}");
    assert!(errors.contains("process 1 of 2:    1/2 s"), "{errors}");
    assert!(errors.lines().all(|line| line.starts_with("process 1 of 2: ")), "{errors}");
}

/// The parts of each kept run: the number of processes, and the connections of all.
fn shared(out: &Path) -> Vec<(usize, u32)> {
    let runs = names(out).into_iter().filter(|name| !name.ends_with(".json"));
    let bundles = runs.map(|name| Bundle::read(&out.join(name)).unwrap());
    bundles.map(|bundle| (bundle.result.generators.len(), bundle.main_phase().unwrap().connections)).collect()
}

#[test]
fn several_processes_make_each_run_of_a_series() {
    let home = tempfile::tempdir().unwrap();
    let acker = Acker::start(Behaviour::default());
    let out = home.path().join("capacity");
    let line = "--workers 2 --slo p50<=30s --start 200 --rate-max 200 --step 1s --steps-max 1";
    let child = start(&acker, "capacity", &out, line);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(is_answered(&text), "{text}{errors}");
    assert_eq!(shared(&out), [(2, 4)], "{text}");

    let out = home.path().join("ab");
    let line = "--workers 2 --set phase.run.rate=200 --set phase.run.duration=200ms --primary throughput --blocks-max 1";
    let output = start(&acker, "ab", &out, line).wait_with_output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("A against A differs by"), "{text}{errors}");
    assert_eq!(shared(&out), [(2, 4); 8], "three blocks of A against A, one of A against B: {text}");
}

#[test]
fn one_process_has_both_sides_of_a_comparison_in_slices() {
    let home = tempfile::tempdir().unwrap();
    let acker = Acker::start(Behaviour::default());
    for processes in ["--workers=2", "--worker-command=false"] {
        let line = format!("{SLICED} {processes}");
        let child = start(&acker, "ab", &home.path().join("ab"), &line);
        let (_, errors) = said(&child.wait_with_output().unwrap());
        assert!(errors.contains("--workers") && errors.contains("--slice-ms 0"), "{errors}");
    }
    assert_eq!((acker.messages(), names(&home.path().join("ab")).len()), (0, 0));
}

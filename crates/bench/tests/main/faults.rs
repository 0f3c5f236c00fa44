//! Tests of runs with external failures. They do not set the clock, which would affect the whole machine
//! (`runner::result_collector` has the rule and its test).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use load::result::Bundle;
use rustix::process::{Pid, Signal, kill_process};

use crate::acker::{Acker, Behaviour};
use crate::peers::required;

const PATIENCE: Duration = Duration::from_secs(60);

/// The load generator as a separate process: `examples/bench.rs`, which `cargo test` builds beside the tests.
pub(crate) fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/bench");
    assert!(program.is_file(), "{} is not built: cargo build -p bench --examples", program.display());
    program
}

fn start(acker: &Acker, out: &str) -> Child {
    start_with(acker, out, &[])
}

fn start_with(acker: &Acker, out: &str, more: &[&str]) -> Child {
    let options = "--devices 4 --rate 200 --fixed --warmup 0s --duration 300s --no-provision --no-verify";
    let child = Command::new(program())
        .args([
            "run",
            "thingsboard",
            "--quiet",
            "--out",
            out,
            "--target",
            &format!("mqtt://{}", acker.address),
        ])
        .args(options.split_whitespace())
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while acker.messages() < 100 {
        assert!(Instant::now() < deadline, "the load does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

pub(crate) fn interrupted(child: Child) -> Output {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn ctrl_c_leaves_a_result_that_is_marked_partial() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("result");
    let acker = Acker::start(Behaviour::default());
    let child = start(&acker, out.to_str().unwrap());
    let output = interrupted(child);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("PARTIAL") && text.contains("interrupted (Ctrl-C)"), "{text}");
    let bundle = Bundle::read(&out).unwrap();
    assert_eq!(bundle.result.partial.as_ref().unwrap().reason, "interrupted (Ctrl-C)");
    let completed = bundle.main_phase().unwrap().total.counts.completed;
    assert!((50..60_000).contains(&completed), "{completed} of the 60,000 that were planned");
}

/// Without a terminal only the process itself receives the signal; processes on another host never receive any.
#[test]
fn ctrl_c_reaches_the_processes_that_commands_started() {
    let (home, acker) = (tempfile::tempdir().unwrap(), Acker::start(Behaviour::default()));
    let (out, program) = (home.path().join("result"), program());
    let command = format!("--workers=2\n--worker-command=cd / && env NAME=x {} worker", program.display());
    let more: Vec<&str> = command.lines().collect();
    let child = start_with(&acker, out.to_str().unwrap(), &more);
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let bundle = Bundle::read(&out).unwrap();
    assert_eq!(bundle.result.partial.as_ref().unwrap().reason, "interrupted (Ctrl-C)");
    assert_eq!((bundle.result.generators.len(), bundle.main_phase().unwrap().connections), (3, 4));
    assert!(bundle.result.faults.is_empty(), "{bundle}");
}

/// A file system of 8 KiB. Only root may mount one, so these tests fail for other users, who can skip them with `--
/// --skip a_full_disk`.
pub(crate) fn small_disk(home: &Path) -> PathBuf {
    let disk = home.join("disk");
    fs::create_dir(&disk).unwrap();
    let is_root = rustix::process::getuid().is_root();
    assert!(
        is_root,
        "this test mounts a file system of 8 KiB: run it as root or add `-- --skip a_full_disk`"
    );
    let mount = required("mount", "mount");
    let output =
        Command::new(mount).args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(&disk).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a file system of 8 KiB cannot be mounted here: {errors}");
    disk
}

pub(crate) fn unmount(disk: &Path) {
    assert!(Command::new("umount").arg(disk).status().unwrap().success());
}

#[test]
fn a_full_disk_leaves_the_figures_on_standard_error_and_no_half_result() {
    let home = tempfile::tempdir().unwrap();
    let disk = small_disk(home.path());
    let acker = Acker::start(Behaviour::default());
    let output = interrupted(start(&acker, disk.join("result").to_str().unwrap()));
    let left = fs::read_dir(&disk).unwrap().count();
    unmount(&disk);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(left, 0, "{errors}");
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("No space left on device") && errors.contains("publish"), "{errors}");
}

#[test]
fn a_server_that_dies_is_a_fault_at_its_second() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("result");
    let acker = Acker::start(Behaviour { hang_up_after: Some(60), ..Behaviour::default() });
    let child = start(&acker, out.to_str().unwrap());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let bundle = Bundle::read(&out).unwrap();
    let [fault] = &bundle.result.faults[..] else { panic!("{:?}", bundle.result.faults) };
    assert!(fault.what.contains("the server closed all connections"), "{fault:?}");
    assert!(!bundle.result.validity().is_quotable());
}

#[test]
fn a_name_that_cannot_be_resolved_is_said_so() {
    let program = program();
    let line = "run thingsboard --no-provision --no-verify --target mqtt://no-such-host.invalid:1883";
    let output = Command::new(program).args(line.split_whitespace()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no-such-host.invalid:1883` cannot be resolved"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

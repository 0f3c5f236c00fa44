//! What `capacity` and `ab` leave behind when something outside of them goes wrong.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::acker::{Acker, Behaviour};
use crate::databases::skipped;
use crate::faults::program;

const PATIENCE: Duration = Duration::from_secs(60);
/// Few devices, and gates that a busy machine passes too.
const SMALL: &str = "--set phase.run.connections=4 --set phase.run.warmup=0s --set gates.lag_p99_us_max=60000000 \
                     --set gates.steal_share_max=1 --set gates.generator_core_max=100 --set gates.sent_share_min=0 \
                     --set gates.arrival_max=1000000";
/// Both sides in turns, and shorter than by default.
const SLICED: &str = "--set phase.run.arrival=closed --slice-ms 5";

fn start(acker: &Acker, command: &str, out: &Path, more: &str) -> Option<Child> {
    let target = format!("mqtt://{}", acker.address);
    let child = Command::new(program()?)
        .args([command, "thingsboard", "--target", &target, "--out", out.to_str().unwrap()])
        .args(SMALL.split_whitespace())
        .args(more.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Some(child.unwrap())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Standard output and standard error of a command that failed.
fn said(output: &Output) -> (String, String) {
    let [text, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(1), "{text}{errors}");
    (text, errors)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_does_not_take_the_answer_of_a_comparison_along() {
    let home = tempfile::tempdir().unwrap();
    let disk = home.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(&disk).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        skipped::<()>("a small file system (mounting needs root)");
        return;
    }
    let acker = Acker::start(Behaviour::default());
    let child = start(&acker, "ab", &disk.join("ab"), &format!("{SLICED} --blocks-max 10"));
    let output = child.map(|child| child.wait_with_output().unwrap());
    let left = fs::read_dir(disk.join("ab")).map(Iterator::count);
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    let Some(output) = output else { return };
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
    let Some(child) = start(&acker, "capacity", &out, line) else { return };
    wait_until("the load does not begin", || acker.messages() > 10);
    // Nothing is written over a directory.
    fs::create_dir(out.join("capacity.json")).unwrap();
    let (text, errors) = said(&child.wait_with_output().unwrap());
    assert!(text.contains("capacity is at least 200/s"), "{text}{errors}");
    assert!(errors.contains("capacity.json could not be written"), "{errors}");
    assert_eq!(names(&out), ["capacity.json", "step-01"], "no half file");
}

//! Tests of what ends a process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Set in the process that does the work.
const CHILD: &str = "TACHO_TEST_CHILD";
const SIGABRT: i32 = 6;

/// Runs `work` in a process of its own, which exits with code 0 after it, and returns what became of that process.
///
/// The process is the calling test, started again: everything the test does before this call is done there as well.
///
/// # Panics
/// When not called on the thread of a test.
pub fn in_own_process(work: impl FnOnce()) -> Output {
    if std::env::var_os(CHILD).is_some() {
        work();
        std::process::exit(0);
    }
    let test = std::thread::current().name().expect("a test's thread has its name").to_owned();
    let executable = std::env::current_exe().expect("a test has a file");
    let mut child = Command::new(executable);
    child.args(["--exact", &test, "--nocapture"]).env(CHILD, "yes").env_remove("RUST_BACKTRACE");
    child.output().expect("the test starts again")
}

/// Asserts that a process was aborted, and returns what it wrote to standard error.
///
/// # Panics
/// When it ended in any other way.
pub fn told_before_abort(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(SIGABRT), "{}: {told}", output.status);
    told
}

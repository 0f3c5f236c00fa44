//! Tests of code that ends its process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// The environment variable of the process that does the work.
const CHILD: &str = "TACHO_TEST_CHILD";
const SIGABRT: i32 = 6;

/// Runs `work` in a process of its own, and returns the output and the status of that process. The process exits with code 0
/// after the work.
///
/// The process runs the calling test again, so it also executes everything that the test does before this call.
///
/// # Panics
/// When the calling thread is not the thread of a test.
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

/// Asserts that a process was aborted, and returns its standard error.
///
/// # Panics
/// When the process ended in another way.
pub fn told_before_abort(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(SIGABRT), "{}: {told}", output.status);
    told
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use model::PanicEndsProcess;
    use model::panics::contain_panic;

    use super::*;

    struct GuardsWhileDropped;

    impl Drop for GuardsWhileDropped {
        fn drop(&mut self) {
            drop(PanicEndsProcess::begin());
        }
    }

    #[test]
    fn a_panic_ends_the_process_only_while_it_is_guarded() {
        let ended = in_own_process(|| {
            drop(PanicEndsProcess::begin());
            let after = catch_unwind(|| panic!("after the guard"));
            let amid = catch_unwind(|| {
                let _guards = GuardsWhileDropped;
                panic!("before the guard");
            });
            let _guard = PanicEndsProcess::begin();
            let elsewhere = std::thread::spawn(|| panic!("on another thread")).join();
            let contained = contain_panic(|| -> () { panic!("contained") });
            assert!(
                after.is_err() && amid.is_err() && elsewhere.is_err() && contained == Err("contained".into())
            );
            let _within = catch_unwind(|| {
                let _guard = PanicEndsProcess::begin();
                panic!("within the guard");
            });
        });
        assert!(told_before_abort(&ended).contains("within the guard"));
    }

    #[test]
    fn work_that_returns_exits_with_0() {
        assert_eq!(in_own_process(|| {}).status.code(), Some(0));
    }
}

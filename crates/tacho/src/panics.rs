//! Logs panics of the server, which are bugs, and ends the process after those that could damage data.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::pin::Pin;
use std::task::{Context, Poll};

use model::PanicEndsProcess;
use model::panics::{Ends, panic_ends};

/// Installs a hook that logs each panic, and that aborts the process if the panic must end it. Call it after logging has
/// started.
pub(crate) fn log_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if tracing::enabled!(tracing::Level::ERROR) {
            log(panic);
        } else {
            default(panic);
        }
        if panic_ends() == Ends::Process {
            // The process ends before the stack is unwound, so that no other thread sees a half-done change.
            std::process::abort();
        }
    }));
}

fn log(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("a panic without words");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name");
    // Captured only if RUST_BACKTRACE is set.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(&backtrace);
    let consequence = match panic_ends() {
        Ends::Process => {
            "the process ends now; start it again, what was acknowledged as durable is on the disk"
        }
        Ends::Work => "its work is given up, the server continues",
        Ends::Thread => "what this thread did for one client ended, the others are served",
    };
    let backtrace = backtrace.map(tracing::field::display);
    tracing::error!(panic = message, place, thread, backtrace, "BUG: a panic; {consequence}");
}

/// A task without which the server cannot run. Its panic ends the process.
pub(crate) struct Essential<F>(Pin<Box<F>>);

impl<F> Essential<F> {
    pub(crate) fn new(task: F) -> Self {
        Self(Box::pin(task))
    }
}

impl<F: Future> Future for Essential<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _guard = PanicEndsProcess::begin();
        self.0.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use testkit::own_process::{in_own_process, told_before_abort};

    use super::*;
    use crate::config::{LogFormat, Sources};

    fn log_as(format: LogFormat) {
        let mut config = Sources::default().load().unwrap();
        config.log.format = format;
        crate::logging::start(&config).unwrap();
    }

    #[test]
    fn a_contained_panic_is_only_logged() {
        let ended = in_own_process(|| {
            log_as(LogFormat::Json);
            let name = || std::thread::Builder::new().name("one-answer".into());
            assert!(name().spawn(|| panic!("{} of them", 2)).unwrap().join().is_err());
        });
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{told}");
        let line: serde_json::Value = serde_json::from_str(told.trim()).unwrap();
        assert_eq!((&line["level"], &line["thread"]), (&"ERROR".into(), &"one-answer".into()));
        assert!(line["place"].as_str().unwrap().contains("panics.rs:"), "{line}");
        assert_eq!(line["panic"], "2 of them");
        assert!(line["message"].as_str().unwrap().ends_with("the others are served"), "{line}");
    }

    #[test]
    fn a_panic_of_an_essential_task_ends_the_process_before_anything_is_unwound() {
        struct Unwound;
        impl Drop for Unwound {
            fn drop(&mut self) {
                std::process::exit(0);
            }
        }
        let ended = in_own_process(|| {
            log_as(LogFormat::Text);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
            let task = runtime.spawn(Essential::new(async {
                tokio::task::yield_now().await;
                let _unwound = Unwound;
                panic!("the door's own bug");
            }));
            let _ = runtime.block_on(task);
        });
        let told = told_before_abort(&ended);
        assert!(told.contains("the door's own bug") && told.contains("the process ends now"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

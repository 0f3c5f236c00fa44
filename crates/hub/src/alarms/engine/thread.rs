//! The thread of the engine.

use std::sync::Arc;
use std::thread::JoinHandle;

use model::PanicEndsProcess;

use super::event_loop::Engine;
use super::shared::Shared;
use crate::taps::Tap;
use crate::thread_end::ThreadEnd;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RuleThread {
    tap: Arc<Tap>,
    thread: Option<JoinHandle<()>>,
}

impl RuleThread {
    pub(crate) fn start(shared: Shared) -> Self {
        let tap = Arc::clone(&shared.tap);
        let run = {
            let tap = Arc::clone(&tap);
            move || {
                let _guard = PanicEndsProcess::begin();
                if let Err(stopped) = Engine::new(shared).run() {
                    // Nothing is lost: the rows are read again after the next start.
                    if let ThreadEnd::Failed(error) = stopped {
                        tracing::error!(%error, "alarm rules are not evaluated any more until the next start");
                    }
                    tap.unwant(|_, _| true);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("alarm-rules".into())
            .spawn(run)
            .expect("BUG: a thread name without zero bytes and enough memory at start-up");
        Self { tap, thread: Some(thread) }
    }
}

impl Drop for RuleThread {
    fn drop(&mut self) {
        self.tap.stop();
        if let Some(thread) = self.thread.take() {
            // The thread cannot have panicked: a panic ends the process.
            drop(thread.join());
        }
    }
}

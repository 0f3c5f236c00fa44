//! SIGTERM and SIGINT: the first one stops the server cleanly, the second one ends the process at once.

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The exit code after the second signal.
const SECOND_SIGNAL: i32 = 1;

/// Receives the first signal.
#[derive(Debug)]
pub(super) struct Signals {
    first: oneshot::Receiver<&'static str>,
}

impl Signals {
    /// Handles signals from now on. Call it before anything is opened, so that no signal ends the process in the middle of its
    /// work.
    pub(super) fn take(runtime: &Runtime) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let listen = |kind| signal(kind).context("cannot listen to signals");
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let (sender, first) = oneshot::channel();
        runtime.spawn(async move {
            // The receiver is gone if the server is stopping for another reason.
            let _ = sender.send(either(&mut terminate, &mut interrupt).await);
            let name = either(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal = name, "ending at once; what was acknowledged is safe");
            std::process::exit(SECOND_SIGNAL);
        });
        Ok(Self { first })
    }

    /// Waits for the first signal and returns its name.
    pub(super) async fn first(&mut self) -> anyhow::Result<&'static str> {
        (&mut self.first).await.context("BUG: nobody listens to signals")
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

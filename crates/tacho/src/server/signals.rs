//! SIGTERM and SIGINT: the first asks for a clean end, the second ends at once.

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The exit code of a process that was told twice.
const TOLD_TWICE: i32 = 1;

/// The first signal, when it comes.
#[derive(Debug)]
pub(super) struct Signals {
    first: oneshot::Receiver<&'static str>,
}

impl Signals {
    /// Takes signals from now on. Before anything is opened, so that there is no moment at which a signal tears the
    /// process out of its work.
    pub(super) fn take(runtime: &Runtime) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let listen = |kind| signal(kind).context("cannot listen to signals");
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let (told, first) = oneshot::channel();
        runtime.spawn(async move {
            // Nobody waits for it any more when the server is stopping for another reason.
            let _ = told.send(either(&mut terminate, &mut interrupt).await);
            let name = either(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal = name, "ending at once; what was acknowledged is safe");
            std::process::exit(TOLD_TWICE);
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

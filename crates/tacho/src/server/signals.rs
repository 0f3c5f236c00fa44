//! SIGTERM and SIGINT: the first asks for a clean end, the second ends at once.

use anyhow::Context;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that was told twice.
const TOLD_TWICE: i32 = 1;

/// Waits for the first signal and returns its name. From then on the next one ends the process.
pub(super) async fn first(handle: &Handle) -> anyhow::Result<&'static str> {
    let listen = |kind| signal(kind).context("cannot listen to signals");
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let name = either(&mut terminate, &mut interrupt).await;
    handle.spawn(async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::warn!(signal = name, "ending at once; what was acknowledged is safe");
        std::process::exit(TOLD_TWICE);
    });
    Ok(name)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

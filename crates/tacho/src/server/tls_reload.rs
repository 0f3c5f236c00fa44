//! Reads certificate and key again: after SIGHUP, and when a file has changed.

use std::sync::Arc;

use anyhow::Context;
use gateway::tls::Tls;
use gateway::tls::limits::RELOAD_INTERVAL;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

/// SIGHUP, which this process handles from now on. Call it inside of the runtime.
pub(super) fn hangup() -> anyhow::Result<Signal> {
    signal(SignalKind::hangup()).context("cannot listen to signals")
}

/// Reloads for as long as the server runs. A failure keeps the running certificate.
pub(super) async fn run(tls: Arc<Tls>, mut hangup: Signal) {
    loop {
        let cause = tokio::select! {
            _ = hangup.recv() => "SIGHUP",
            () = sleep(RELOAD_INTERVAL) => "a file has changed",
        };
        if cause != "SIGHUP" && !tls.has_new_files() {
            continue;
        }
        match tls.reload() {
            Ok(()) => tracing::info!(cause, "new TLS connections get the certificate that was read"),
            Err(error) => {
                tracing::error!(%error, cause, "cannot reload the TLS certificate; the running one stays in use");
            }
        }
    }
}

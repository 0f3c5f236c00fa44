//! Ctrl-C ends a query.

use anyhow::{Context, bail};

/// Waits until `work` ends or the user presses Ctrl-C. Dropping `work` closes its connection, which ends the query on the
/// server.
pub(super) async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        done = work => done,
        pressed = tokio::signal::ctrl_c() => {
            pressed.context("cannot listen to Ctrl-C")?;
            bail!("cancelled")
        }
    }
}

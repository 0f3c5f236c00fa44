//! What every exporter does: reads the durable rows of its sensor in batches, and moves the cursor when the target has taken them.

use std::future::Future;
use std::sync::Arc;

use hub::caller::Caller;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use virtual_sensors::{FollowRequest, FollowerReport, OutputFollower, OutputRow, OutputRows, VirtualSensors};

use crate::backoff::Backoff;
use crate::limits::{EXPORTER_LOOK_INTERVAL, EXPORTER_PAUSE_MAX, EXPORTER_ROWS_AT_ONCE};

/// Writes rows to a target: a database, a broker or an address.
pub(crate) trait Exporter: Send {
    /// Prepares the target, such as its table. It is called before the first rows, and after each failure.
    fn prepare(&mut self) -> impl Future<Output = Result<(), String>> + Send;

    /// Takes rows. After a failure the same rows are written again.
    fn write(&mut self, rows: &[OutputRow]) -> impl Future<Output = Result<(), String>> + Send;

    /// Rows that [`Self::write`] gets at once. The cursor moves after each write, so these may come again after a crash.
    fn rows_at_once(&self) -> usize {
        EXPORTER_ROWS_AT_ONCE
    }

    /// Rows that the target has refused for good. Rows of a failed write do not count.
    fn refused(&self) -> u64 {
        0
    }

    /// Why the target has refused the last one of them, if the exporter knows it.
    fn refusal(&self) -> Option<&str> {
        None
    }
}

/// Follows a sensor until it is removed. The caller ends it earlier by dropping it.
pub(crate) async fn follow(
    sensors: Arc<VirtualSensors>,
    request: FollowRequest,
    mut exporter: impl Exporter,
) {
    let Some(follower) = begin(&sensors, &request).await else { return };
    let mut report = FollowerReport::default();
    let mut backoff = Backoff::new(EXPORTER_PAUSE_MAX);
    loop {
        let Err(error) = deliver(&follower, &mut exporter, &mut report).await;
        let worked = std::mem::replace(&mut report.is_connected, false);
        if worked || report.failures == 0 {
            tracing::warn!(
                sensor = request.sensor,
                follower = request.follower,
                error,
                "rows wait until they can be delivered"
            );
        }
        report.failures += 1;
        report.last_error = Some(error);
        follower.report(report.clone());
        sleep(backoff.pause(worked)).await;
    }
}

/// The follower of a sensor; `None` if the sensor was removed.
async fn begin(sensors: &Arc<VirtualSensors>, request: &FollowRequest) -> Option<Arc<OutputFollower>> {
    let mut backoff = Backoff::new(EXPORTER_PAUSE_MAX);
    loop {
        let (sensors, request) = (Arc::clone(sensors), request.clone());
        let caller = Caller::local(sensors.tenant());
        match blocking(move || sensors.follow_output(&caller, request)).await {
            Ok(follower) => return follower.map(Arc::new),
            Err(error) => tracing::warn!(error, "the output of a virtual sensor cannot be followed yet"),
        }
        sleep(backoff.pause(false)).await;
    }
}

/// Delivers rows until something fails.
async fn deliver(
    follower: &Arc<OutputFollower>,
    exporter: &mut impl Exporter,
    report: &mut FollowerReport,
) -> Result<std::convert::Infallible, String> {
    exporter.prepare().await?;
    loop {
        let rows = next(follower, exporter.rows_at_once()).await?;
        if !rows.rows.is_empty() {
            exporter.write(&rows.rows).await?;
            note_refused(&*exporter, report);
            delivered(follower, rows).await?;
        } else if report.is_connected {
            // The exporter reads after the wait, woken or not: a missed wake costs no row.
            drop(timeout(EXPORTER_LOOK_INTERVAL, follower.appended()).await);
            continue;
        }
        report.is_connected = true;
        follower.report(report.clone());
    }
}

/// Shows callers the rows that the target has refused, with the reason of the last one.
fn note_refused(exporter: &impl Exporter, report: &mut FollowerReport) {
    let refused = exporter.refused();
    if refused > report.refused
        && let Some(reason) = exporter.refusal()
    {
        report.last_error = Some(reason.to_owned());
    }
    report.refused = refused;
}

async fn next(follower: &Arc<OutputFollower>, rows_max: usize) -> Result<OutputRows, String> {
    let follower = Arc::clone(follower);
    blocking(move || follower.next(rows_max)).await
}

async fn delivered(follower: &Arc<OutputFollower>, rows: OutputRows) -> Result<(), String> {
    let follower = Arc::clone(follower);
    blocking(move || follower.delivered(&rows)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, hub::Error> + Send + 'static,
) -> Result<T, String> {
    let done = spawn_blocking(work).await.map_err(|error| format!("the work was given up: {error}"))?;
    done.map_err(|error| error.to_string())
}

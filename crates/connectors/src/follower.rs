//! The follower of the output of a sensor: takes its durable rows in batches, and moves the cursor when the outside has taken them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hub::Hub;
use hub::caller::Caller;
use hub::virtual_sensors::{FollowRequest, FollowerReport, OutputFollower, OutputRow, OutputRows};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// Rows that the outside gets at once.
const ROWS_AT_ONCE: usize = 2_000;
/// The first pause after a failure. It doubles with each failure that follows.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a follower waits for a wake before it looks by itself: other writers of the table wake nobody.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The outside.
pub(crate) trait Sink: Send {
    /// Prepares the outside, such as its table. It is called before the first rows, and after each failure.
    fn prepare(&mut self) -> impl Future<Output = Result<(), String>> + Send;

    /// Takes rows. They may come again.
    fn write(&mut self, rows: &[OutputRow]) -> impl Future<Output = Result<(), String>> + Send;

    /// Rows that the outside has refused for good.
    fn refused(&self) -> u64 {
        0
    }
}

/// Follows a sensor until the sensor is gone. The caller ends it earlier by dropping it.
pub(crate) async fn follow(hub: Arc<Hub>, request: FollowRequest, mut sink: impl Sink) {
    let mut report = FollowerReport::default();
    let mut pause = PAUSE_MIN;
    let follower = loop {
        let (hub, request) = (Arc::clone(&hub), request.clone());
        let caller = Caller::local(hub.registry().default_tenant());
        match blocking(move || hub.follow_output(&caller, request)).await {
            Ok(Some(follower)) => break Arc::new(follower),
            Ok(None) => return,
            Err(error) => tracing::warn!(error, "the output of a virtual sensor cannot be followed yet"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    };
    pause = PAUSE_MIN;
    loop {
        let Err(error) = deliver(&follower, &mut sink, &mut report).await;
        if report.is_connected || report.failures == 0 {
            tracing::warn!(
                sensor = request.sensor,
                follower = request.follower,
                error,
                "rows wait until they can be delivered"
            );
        }
        if report.is_connected {
            pause = PAUSE_MIN;
        }
        report.is_connected = false;
        report.failures += 1;
        report.last_error = Some(error);
        follower.report(report.clone());
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Delivers rows until something fails.
async fn deliver(
    follower: &Arc<OutputFollower>,
    sink: &mut impl Sink,
    report: &mut FollowerReport,
) -> Result<std::convert::Infallible, String> {
    sink.prepare().await?;
    loop {
        let rows = next(follower).await?;
        if !rows.rows.is_empty() {
            sink.write(&rows.rows).await?;
            report.refused = sink.refused();
            delivered(follower, rows).await?;
        } else if report.is_connected {
            // A wake that is missed is made up for.
            drop(timeout(LOOK_INTERVAL, follower.appended()).await);
            continue;
        }
        report.is_connected = true;
        follower.report(report.clone());
    }
}

async fn next(follower: &Arc<OutputFollower>) -> Result<OutputRows, String> {
    let follower = Arc::clone(follower);
    blocking(move || follower.next(ROWS_AT_ONCE)).await
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

//! One source: it is read, and after a failure it is read again.

use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use hub::Hub;
use hub::caller::Caller;
use tokio::time::sleep;
use virtual_sensors::{ExternalSource, VirtualSensors};

use super::read::read;
use super::sink::ElementSink;
use crate::backoff::Backoff;
use crate::databases::Pools;
use crate::limits::RETRY_PAUSE_MAX;

/// Reads a source until its task is aborted.
pub(super) async fn run(
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    caller: Caller,
    (pools, targets): (Arc<Pools>, Arc<AllowedTargets>),
    source: Arc<ExternalSource>,
) {
    let mut sink = ElementSink::new(hub, sensors, caller, Arc::clone(&source));
    let mut backoff = Backoff::new(RETRY_PAUSE_MAX);
    loop {
        let failure = match read(&source.external, (&pools, &targets), &mut sink).await {
            Ok(()) => return sink.report(),
            Err(failure) => failure,
        };
        let worked = sink.fail(&failure);
        let pause = backoff.pause(worked);
        // A source that fails again and again is named once.
        if worked || sink.failures() == 1 {
            let (sensor, source) = (&source.sensor, source.source());
            tracing::warn!(
                sensor,
                source,
                "the source of a virtual sensor has failed, it is read again in {pause:?}: {failure}"
            );
        }
        sleep(pause).await;
    }
}

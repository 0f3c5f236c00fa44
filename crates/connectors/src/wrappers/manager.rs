//! Starts and stops a task for each source, as sensors are loaded, changed and removed.

use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use hub::Hub;
use hub::caller::Caller;
use virtual_sensors::VirtualSensors;

use super::source;
use crate::databases::Pools;
use crate::tasks;

/// Reads the sources of the sensors until the runtime ends.
pub(crate) async fn manage(
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    pools: Arc<Pools>,
    targets: Arc<AllowedTargets>,
) {
    let caller = Caller::local(sensors.tenant());
    let sources = match sensors.external_sources(&caller) {
        Ok(sources) => sources,
        Err(error) => return tracing::error!(%error, "no source of a virtual sensor is read"),
    };
    let begin = |source| {
        let (hub, sensors) = (Arc::clone(&hub), Arc::clone(&sensors));
        let clients = (Arc::clone(&pools), Arc::clone(&targets));
        Some(source::run(hub, sensors, caller.clone(), clients, source))
    };
    tasks::manage(sources, |source| &source.device.name, begin).await;
}

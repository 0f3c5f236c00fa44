//! Starts and stops a task for each source, as sensors are loaded, changed and removed.

use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;

use super::source;
use crate::databases::Pools;
use crate::tasks;

/// Reads the sources of the sensors until the runtime ends.
pub(crate) async fn manage(hub: Arc<Hub>, pools: Arc<Pools>) {
    let caller = Caller::local(hub.registry().default_tenant());
    let sources = match hub.external_sources(&caller) {
        Ok(sources) => sources,
        Err(error) => return tracing::error!(%error, "no source of a virtual sensor is read"),
    };
    let begin = |source| Some(source::run(Arc::clone(&hub), caller.clone(), Arc::clone(&pools), source));
    tasks::manage(sources, |source| &source.device.name, begin).await;
}

//! Starts and stops a task for each source, as sensors are loaded, changed and removed.

use std::collections::HashMap;
use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use hub::virtual_sensors::ExternalSource;
use tokio::task::JoinHandle;

use super::source;

/// Follows the sources of the sensors until the hub is gone.
pub(crate) async fn manage(hub: Arc<Hub>) {
    let caller = Caller::local(hub.registry().default_tenant());
    let mut sources = match hub.external_sources(&caller) {
        Ok(sources) => sources,
        Err(error) => return tracing::error!(%error, "no connector of a virtual sensor runs"),
    };
    let mut tasks: HashMap<String, (Arc<ExternalSource>, JoinHandle<()>)> = HashMap::new();
    loop {
        let wanted = Arc::clone(&sources.borrow_and_update());
        let is_wanted = |source: &Arc<ExternalSource>| wanted.iter().any(|wanted| wanted == source);
        let ended: Vec<String> = tasks
            .iter()
            .filter(|(_, (source, _))| !is_wanted(source))
            .map(|(name, _)| name.clone())
            .collect();
        for name in ended {
            if let Some((_, task)) = tasks.remove(&name) {
                task.abort();
                // Its port and its files are free before another task needs them. An aborted task ends with an error.
                drop(task.await);
            }
        }
        for source in wanted.iter() {
            if !tasks.contains_key(&source.device.name) {
                let task = source::run(Arc::clone(&hub), caller.clone(), Arc::clone(source));
                let task = tokio::spawn(task);
                tasks.insert(source.device.name.clone(), (Arc::clone(source), task));
            }
        }
        if sources.changed().await.is_err() {
            return;
        }
    }
}

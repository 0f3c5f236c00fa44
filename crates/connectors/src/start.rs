//! The threads of all connectors, and their end.

use std::io;
use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use hub::Hub;
use tokio::runtime::{Builder, Runtime};
use virtual_sensors::VirtualSensors;

use crate::databases::{self, Pools};
use crate::exporters;
use crate::limits::{BLOCKING_THREADS_MAX, STOP_TIMEOUT, WORKERS};
use crate::wrappers;

/// The connectors of a running server.
#[derive(Debug)]
pub struct Connectors {
    runtime: Runtime,
}

impl Connectors {
    /// Starts the connectors of the virtual sensors that run, now and whenever these change. They connect only to servers that `targets`
    /// allows.
    ///
    /// # Errors
    /// The machine cannot start more threads.
    pub fn start(
        hub: &Arc<Hub>,
        sensors: &Arc<VirtualSensors>,
        targets: &Arc<AllowedTargets>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("connectors")
            .enable_all()
            .build()?;
        let pools = Arc::new(Pools::new(targets));
        runtime.spawn(wrappers::manage(
            Arc::clone(hub),
            Arc::clone(sensors),
            Arc::clone(&pools),
            Arc::clone(targets),
        ));
        runtime.spawn(databases::manage(Arc::clone(sensors), Arc::clone(&pools)));
        runtime.spawn(exporters::manage(Arc::clone(sensors), pools, Arc::clone(targets)));
        Ok(Self { runtime })
    }

    /// Ends the connectors. What is not stored is read again after the next start, from sources that can be read again.
    pub fn stop(self) {
        self.runtime.shutdown_timeout(STOP_TIMEOUT);
    }
}

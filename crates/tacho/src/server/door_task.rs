//! A door that runs as a task of the server's runtime: HTTP and PostgreSQL.

use std::io;
use std::pin::Pin;

use anyhow::Context;
use gateway::door::{Door, ListenAddress, Stopping};
use gateway::tls::Listeners;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::panics::Essential;

/// The future that is ready when the door must stop.
pub(super) type StopFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The schemes of a door's addresses, such as `http` and `https`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schemes {
    pub(super) plain: &'static str,
    pub(super) tls: &'static str,
}

/// A door and the task that serves it.
#[derive(Debug)]
pub(super) struct DoorTask {
    door: hub::Door,
    addresses: Vec<ListenAddress>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl DoorTask {
    /// Serves listeners. `serve` runs until the future that it gets is ready.
    pub(super) fn start<S: Future<Output = io::Result<()>> + Send + 'static>(
        door: hub::Door,
        schemes: Schemes,
        listeners: Listeners<std::net::TcpListener>,
        runtime: &Runtime,
        serve: impl FnOnce(Listeners<tokio::net::TcpListener>, StopFuture) -> S,
    ) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let mut addresses = Vec::new();
        let mut open = |scheme, listener: std::net::TcpListener| {
            addresses.push(ListenAddress { scheme, address: listener.local_addr()? });
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let failed = || format!("cannot start the door {}", door.name());
        let plain = open(schemes.plain, listeners.plain).with_context(failed)?;
        let tls =
            listeners.tls.map(|(listener, tls)| Ok::<_, io::Error>((open(schemes.tls, listener)?, tls)));
        let listeners = Listeners { plain, tls: tls.transpose().with_context(failed)? };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown: StopFuture = Box::pin(async {
            // A dropped sender means the same.
            drop(stopped.await);
        });
        let task = runtime.spawn(Essential::new(serve(listeners, shutdown)));
        Ok(Self { door, addresses, stop, task })
    }
}

impl Door for DoorTask {
    fn door(&self) -> hub::Door {
        self.door
    }

    fn addresses(&self) -> &[ListenAddress] {
        &self.addresses
    }

    fn stop(self: Box<Self>) -> Stopping {
        let Self { door, stop, task, .. } = *self;
        if stop.send(()).is_err() {
            tracing::error!("the door {} had ended by itself", door.name());
        }
        // A task that was given up is an error like any other failure.
        Box::pin(async move { task.await.map_err(io::Error::other)? })
    }
}

//! A door that runs as a task of the server's runtime: HTTP and PostgreSQL.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use anyhow::Context;
use gateway::tls::Listeners;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::panics::Essential;

/// The future that is ready when the door has to stop.
pub(super) type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A door and the task that serves it.
#[derive(Debug)]
pub(super) struct DoorTask {
    name: &'static str,
    pub(super) address: SocketAddr,
    /// The address of connections with TLS.
    pub(super) tls_address: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl DoorTask {
    /// Serves listeners. `serve` runs until the future that it gets is ready.
    pub(super) fn start<S: Future<Output = io::Result<()>> + Send + 'static>(
        name: &'static str,
        listeners: Listeners<std::net::TcpListener>,
        runtime: &Runtime,
        serve: impl FnOnce(Listeners<tokio::net::TcpListener>, Stopped) -> S,
    ) -> anyhow::Result<Self> {
        let _guard = runtime.enter();
        let open = |listener: std::net::TcpListener| {
            let address = listener.local_addr()?;
            listener.set_nonblocking(true)?;
            Ok::<_, io::Error>((tokio::net::TcpListener::from_std(listener)?, address))
        };
        let failed = || format!("cannot start the {name} door");
        let (plain, address) = open(listeners.plain).with_context(failed)?;
        let (tls, tls_address) = match listeners.tls {
            Some((listener, tls)) => {
                let (listener, address) = open(listener).with_context(failed)?;
                (Some((listener, tls)), Some(address))
            }
            None => (None, None),
        };
        let listeners = Listeners { plain, tls };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown: Stopped = Box::pin(async {
            // A dropped sender means the same.
            drop(stopped.await);
        });
        let task = runtime.spawn(Essential::new(serve(listeners, shutdown)));
        Ok(Self { name, address, tls_address, stop, task })
    }

    /// Asks the door to stop. The future waits for its end.
    pub(super) fn stop(self) -> impl Future<Output = anyhow::Result<()>> {
        let Self { name, stop, task, .. } = self;
        if stop.send(()).is_err() {
            tracing::error!("the {name} door had ended by itself");
        }
        async move {
            let served = task.await.with_context(|| format!("BUG: the {name} door was given up"))?;
            served.with_context(|| format!("the {name} door failed"))
        }
    }
}

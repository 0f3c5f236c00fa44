//! A door that runs as a task of the server's runtime: HTTP and PostgreSQL.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use anyhow::Context;
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
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl DoorTask {
    /// Serves a listener. `serve` runs until the future that it gets is ready.
    pub(super) fn start<S: Future<Output = io::Result<()>> + Send + 'static>(
        name: &'static str,
        listener: std::net::TcpListener,
        runtime: &Runtime,
        serve: impl FnOnce(tokio::net::TcpListener, Stopped) -> S,
    ) -> anyhow::Result<Self> {
        let address =
            listener.local_addr().with_context(|| format!("cannot learn the port of the {name} door"))?;
        let _guard = runtime.enter();
        let listener =
            listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
        let listener = listener.with_context(|| format!("cannot start the {name} door"))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown: Stopped = Box::pin(async {
            // A dropped sender means the same.
            drop(stopped.await);
        });
        let task = runtime.spawn(Essential::new(serve(listener, shutdown)));
        Ok(Self { name, address, stop, task })
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

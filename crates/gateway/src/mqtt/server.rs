//! Starts and stops the MQTT door.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use hub::Hub;
use model::PanicEndsProcess;
use tokio::sync::Semaphore;

use super::accept_thread::AcceptThread;
use super::clients::Clients;
use super::entrance::MqttEntrance;
use super::limits;
use super::options::MqttOptions;
use super::provisioner::Provisioner;
use super::state::MqttState;
use super::worker::{Worker, WorkerParts};
use crate::acceptor::Gate;
use crate::door::{Door, ListenAddress, Stopping};
use crate::tls::Listeners;

/// A running MQTT door.
#[derive(Debug)]
pub struct MqttDoor {
    /// The address without TLS, then the one with TLS if there is one.
    addresses: Vec<ListenAddress>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Its `Debug` output is short.
struct Shared {
    state: Arc<MqttState>,
    accept_waker: mio::Waker,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl MqttDoor {
    /// Starts serving `listeners`.
    ///
    /// # Errors
    /// An option is out of range, or the system has no thread or descriptor left.
    pub fn start(
        hub: Arc<Hub>,
        listeners: impl Into<Listeners<TcpListener>>,
        options: MqttOptions,
    ) -> io::Result<Self> {
        options.check()?;
        let listeners = listeners.into();
        let addresses = addresses(&listeners)?;
        let mut workers = Vec::new();
        for _ in 0..options.workers.max(1) {
            workers.push(WorkerParts::new()?);
        }
        let handles = workers.iter().map(|parts| Arc::clone(&parts.handle)).collect();
        let state = Arc::new(MqttState {
            gate: Gate::new(Arc::clone(&hub), hub::Door::Mqtt, options.limits),
            refusing: Arc::new(Semaphore::new(limits::REFUSING_MAX)),
            provisioner: Provisioner::new(Arc::clone(&hub)),
            hub,
            options,
            clients: Clients::default(),
            workers: handles,
            given: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            opened: Instant::now(),
        });
        let mut threads = Vec::new();
        for (index, parts) in workers.into_iter().enumerate() {
            state.hub.watch(Arc::clone(&parts.handle) as Arc<dyn hub::ProgressWatcher>);
            state.hub.broker().watch(Arc::clone(&parts.handle) as Arc<dyn hub::KvProgressWatcher>);
            let state = Arc::clone(&state);
            let thread = std::thread::Builder::new().name(format!("mqtt-{index}"));
            threads.push(thread.spawn(move || {
                let _guard = PanicEndsProcess::begin();
                Worker::new(state, index, parts).run();
            })?);
        }
        let (accept_thread, accept_waker) = AcceptThread::new(Arc::clone(&state), listeners)?;
        threads.push(std::thread::Builder::new().name("mqtt-accept".into()).spawn(move || {
            let _guard = PanicEndsProcess::begin();
            accept_thread.run();
        })?);
        Ok(Self { addresses, shared: Arc::new(Shared { state, accept_waker }), threads })
    }

    /// The address of connections without TLS.
    pub fn local_address(&self) -> SocketAddr {
        self.addresses[0].address
    }

    /// The entrance for WebSockets of the HTTP door.
    pub fn entrance(&self) -> MqttEntrance {
        MqttEntrance::new(Arc::clone(&self.shared.state))
    }

    /// Stops the door: it accepts and reads no more, sends the acks of received messages once they are durable, sends
    /// DISCONNECT with 0x8B (server shutting down) to MQTT 5 clients, and closes all connections.
    pub fn stop(self) {
        self.begin_stop();
        self.join();
    }

    fn begin_stop(&self) {
        self.shared.state.stopping.store(true, Ordering::Release);
        // A failed wake-up only delays the stop: every loop checks at least once a second.
        drop(self.shared.accept_waker.wake());
        for worker in &self.shared.state.workers {
            worker.wake();
        }
    }

    fn join(self) {
        for thread in self.threads {
            // No thread has panicked: a panic ends the process.
            let _ = thread.join();
        }
    }
}

impl Door for MqttDoor {
    fn door(&self) -> hub::Door {
        hub::Door::Mqtt
    }

    fn addresses(&self) -> &[ListenAddress] {
        &self.addresses
    }

    fn stop(self: Box<Self>) -> Stopping {
        self.begin_stop();
        Box::pin(async move {
            // Blocks the thread that waits for the doors; it has nothing else to do.
            self.join();
            Ok(())
        })
    }
}

fn addresses(listeners: &Listeners<TcpListener>) -> io::Result<Vec<ListenAddress>> {
    let plain = Some(("mqtt", &listeners.plain));
    let tls = listeners.tls.as_ref().map(|(listener, _)| ("mqtts", listener));
    let opened = plain.into_iter().chain(tls);
    opened.map(|(scheme, listener)| Ok(ListenAddress { scheme, address: listener.local_addr()? })).collect()
}

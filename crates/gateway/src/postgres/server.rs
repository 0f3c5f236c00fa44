//! Starts and stops the PostgreSQL door, and serves its connections.

use std::io;
use std::sync::Arc;

use hub::Hub;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::error::PgError;
use super::frontend::First;
use super::limits::{ACCEPT_PAUSE, DRAIN_TIMEOUT, REJECT_TIMEOUT, REJECTING_MAX, STARTUP_TIMEOUT};
use super::login::log_in;
use super::options::PostgresOptions;
use super::state::PostgresState;
use super::wire::{Ended, Wire};
use crate::acceptor::{Accepted, Acceptor, ConnectionPermit, Rejection, Stop, StopSignal};

/// Serves `listener` until `shutdown` ends. Then it accepts no more, lets running statements finish, and cuts off the rest
/// after `DRAIN_TIMEOUT`.
pub async fn serve(
    hub: Arc<Hub>,
    listener: TcpListener,
    options: PostgresOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let reject_permits = Arc::new(Semaphore::new(REJECTING_MAX));
    let (stop, stopping) = watch::channel(Stop::Not);
    let acceptor = Acceptor {
        hub: Arc::clone(&hub),
        door: hub::Door::Postgres,
        listeners: listener.into(),
        connections_max: options.connections_max,
        connections_per_address_max: options.connections_per_address_max,
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let state = Arc::new(PostgresState::new(hub, options));
    let serve = |Accepted { stream, .. }: Accepted, permit| {
        tokio::spawn(serve_connection(Arc::clone(&state), stream, permit, stopping.clone()));
    };
    let reject = |Accepted { stream, .. }: Accepted, rejection| {
        state.refused(match rejection {
            Rejection::Door => "connections",
            Rejection::Address => "connections_per_address",
        });
        // Without a permit the connection is closed without an answer.
        if let Ok(permit) = Arc::clone(&reject_permits).try_acquire_owned() {
            tokio::spawn(reject_connection(Arc::clone(&state), stream, rejection, permit));
        }
    };
    acceptor.run(stop, shutdown, serve, reject).await
}

async fn serve_connection(
    state: Arc<PostgresState>,
    stream: TcpStream,
    permit: ConnectionPermit,
    stop: StopSignal,
) {
    let _permit = permit;
    let mut cut = stop.clone();
    let ended = tokio::select! {
        ended = converse(&state, stream, stop) => ended,
        () = Stop::Now.reached(&mut cut) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "postgres: connection ended");
    }
}

async fn converse(state: &Arc<PostgresState>, stream: TcpStream, mut stop: StopSignal) -> Result<(), Ended> {
    // The session collects answers before it sends them; waiting for more only delays them.
    stream.set_nodelay(true)?;
    let logging_in = timeout(STARTUP_TIMEOUT, log_in(state, Wire::new(stream)));
    let session = tokio::select! {
        session = logging_in => session.unwrap_or(Ok(None))?,
        () = Stop::Drain.reached(&mut stop) => None,
    };
    match session {
        Some(mut session) => session.run(&mut stop).await,
        None => Ok(()),
    }
}

/// Answers a rejected connection. A client can read the answer after its startup message; most send it at once.
async fn reject_connection(
    state: Arc<PostgresState>,
    stream: TcpStream,
    rejection: Rejection,
    permit: OwnedSemaphorePermit,
) {
    let _permit = permit;
    let message = match rejection {
        Rejection::Door => {
            let limit = state.options.connections_max;
            format!("all {limit} connections of this door are in use; try again in a moment")
        }
        Rejection::Address => {
            let limit = state.options.connections_per_address_max;
            format!(
                "this address has {limit} connections, the limit for one (postgres.connections_per_address_max)"
            )
        }
    };
    let mut wire = Wire::new(stream);
    let refusing = async {
        // Reading the client's input keeps the close from resetting the connection before the client has read the answer.
        while let First::Tls | First::Kerberos = wire.first().await? {
            wire.decline().await?;
        }
        Ok::<_, Ended>(wire.refuse(PgError::fatal("53300", message)).await?)
    };
    // A client without a startup message is closed without an answer.
    drop(timeout(REJECT_TIMEOUT, refusing).await);
}

//! Starts and stops the PostgreSQL door, and serves its connections.

use std::io;
use std::sync::Arc;

use hub::Hub;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use wire::postgres::First;

use super::error::PgError;
use super::limits::{ACCEPT_PAUSE, DRAIN_TIMEOUT, REJECT_TIMEOUT, REJECTING_MAX, STARTUP_TIMEOUT};
use super::login::log_in;
use super::options::PostgresOptions;
use super::state::PostgresState;
use super::wire::{Ended, Wire};
use crate::acceptor::{Accepted, Acceptor, ConnectionPermit, Gate, NotIdentified, Stop, StopSignal};
use crate::door::LimitExceeded;

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
    let gate = Gate::new(Arc::clone(&hub), hub::Door::Postgres, options.limits);
    let acceptor = Acceptor {
        gate: Arc::clone(&gate),
        listeners: listener.into(),
        proxies: options.proxies.clone(),
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let state = Arc::new(PostgresState::new(hub, options, gate));
    let reject = |accepted, exceeded| {
        // Without a permit the connection is closed without an answer.
        let permit = Arc::clone(&reject_permits).try_acquire_owned().ok();
        tokio::spawn(reject_connection(Arc::clone(&state), accepted, exceeded, permit));
    };
    let serve = |accepted, permit| {
        let reject_permits = Arc::clone(&reject_permits);
        tokio::spawn(serve_connection(
            Arc::clone(&state),
            accepted,
            permit,
            reject_permits,
            stopping.clone(),
        ));
    };
    acceptor.run(stop, shutdown, serve, reject).await
}

async fn serve_connection(
    state: Arc<PostgresState>,
    mut accepted: Accepted,
    mut permit: ConnectionPermit,
    reject_permits: Arc<Semaphore>,
    stop: StopSignal,
) {
    let (mut drain, mut cut) = (stop.clone(), stop.clone());
    let identified = tokio::select! {
        identified = state.gate.identify(&mut accepted, &mut permit) => identified,
        () = Stop::Drain.reached(&mut drain) => return,
    };
    match identified {
        Ok(()) => {}
        Err(NotIdentified::Header) => return,
        Err(NotIdentified::Exceeded(exceeded)) => {
            drop(permit);
            accepted.is_proxied = false;
            let permit = reject_permits.try_acquire_owned().ok();
            return reject_connection(state, accepted, exceeded, permit).await;
        }
    }
    let ended = tokio::select! {
        ended = converse(&state, accepted, stop) => ended,
        () = Stop::Now.reached(&mut cut) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "postgres: connection ended");
    }
}

async fn converse(state: &Arc<PostgresState>, accepted: Accepted, mut stop: StopSignal) -> Result<(), Ended> {
    // The session collects answers before it sends them; waiting for more only delays them.
    accepted.stream.set_nodelay(true)?;
    let logging_in = timeout(STARTUP_TIMEOUT, log_in(state, Wire::new(accepted.stream, accepted.peer)));
    let session = tokio::select! {
        session = logging_in => session.unwrap_or(Ok(None))?,
        () = Stop::Drain.reached(&mut stop) => None,
    };
    match session {
        Some(mut session) => session.run(&mut stop).await,
        None => Ok(()),
    }
}

/// Counts a rejected connection and, with a permit, answers it. A client can read the answer after its startup message; most
/// send it at once.
async fn reject_connection(
    state: Arc<PostgresState>,
    mut accepted: Accepted,
    exceeded: LimitExceeded,
    permit: Option<OwnedSemaphorePermit>,
) {
    state.gate.refused(&exceeded, Some(accepted.peer));
    if permit.is_none() || state.gate.read_header(&mut accepted).await.is_err() {
        return;
    }
    let mut wire = Wire::new(accepted.stream, accepted.peer);
    let refusing = async {
        // Reading the client's input keeps the close from resetting the connection before the client has read the answer.
        while let First::Tls | First::Kerberos = wire.first().await? {
            wire.decline().await?;
        }
        Ok::<_, Ended>(wire.refuse(PgError::fatal("53300", exceeded.to_string())).await?)
    };
    // A client without a startup message is closed without an answer.
    drop(timeout(REJECT_TIMEOUT, refusing).await);
}

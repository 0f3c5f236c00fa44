//! Connections: accepting, bounding, and ending them.

use std::io;
use std::sync::Arc;

use hub::Hub;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::error::PgError;
use super::limits::{ACCEPT_PAUSE, DRAIN_TIMEOUT, STARTUP_TIMEOUT, TURN_AWAY_TIMEOUT, TURNED_AWAY_MAX};
use super::login::log_in;
use super::wire::{Ended, Wire};
use super::{Door, PostgresOptions};
use crate::seats::{NoSeat, Seated, Seats, Stop};

/// Tells a session when the door stops.
pub(super) type StopSignal = watch::Receiver<Stop>;

/// Serves `listener` until `shutdown` ends. Then accepts nothing more, lets statements in flight finish, and returns after
/// at most `DRAIN_TIMEOUT` (and a moment to drop what is left).
pub async fn serve(
    hub: Arc<Hub>,
    listener: TcpListener,
    options: PostgresOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let doormen = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let (stop, stopping) = watch::channel(Stop::Not);
    let seats = Seats {
        door: "postgres",
        listener,
        connections_max: options.connections_max,
        connections_per_address_max: options.connections_per_address_max,
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let door = Arc::new(Door::new(hub, options));
    let serve = |stream, seat| {
        let seated = Seated::new(Arc::clone(&door.hub), hub::Door::Postgres, seat);
        tokio::spawn(serve_connection(Arc::clone(&door), stream, seated, stopping.clone()));
    };
    let turn_away = |stream, no_seat| {
        door.refused(match no_seat {
            NoSeat::Door => "connections",
            NoSeat::Source => "connections_per_address",
        });
        // Who comes while so many are being told is closed without a word.
        if let Ok(place) = Arc::clone(&doormen).try_acquire_owned() {
            tokio::spawn(turn_away(Arc::clone(&door), stream, no_seat, place));
        }
    };
    seats.fill(stop, shutdown, serve, turn_away).await
}

async fn serve_connection(door: Arc<Door>, stream: TcpStream, seated: Seated, stop: StopSignal) {
    let _seated = seated;
    let mut cut = stop.clone();
    let ended = tokio::select! {
        ended = converse(&door, stream, stop) => ended,
        () = Stop::Now.reached(&mut cut) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "postgres: connection ended");
    }
}

async fn converse(door: &Arc<Door>, stream: TcpStream, mut stop: StopSignal) -> Result<(), Ended> {
    // Answers are collected before they are sent; waiting for more only delays them.
    stream.set_nodelay(true)?;
    let logging_in = timeout(STARTUP_TIMEOUT, log_in(door, Wire::new(stream)));
    let session = tokio::select! {
        session = logging_in => session.unwrap_or(Ok(None))?,
        () = Stop::Drain.reached(&mut stop) => None,
    };
    match session {
        Some(mut session) => session.run(&mut stop).await,
        None => Ok(()),
    }
}

/// Says no to a connection too many. The client understands it once it has said its startup; most send it at once.
async fn turn_away(door: Arc<Door>, stream: TcpStream, no_seat: NoSeat, place: OwnedSemaphorePermit) {
    let _place = place;
    let message = match no_seat {
        NoSeat::Door => {
            let limit = door.options.connections_max;
            format!("all {limit} connections of this door are in use; try again in a moment")
        }
        NoSeat::Source => {
            let limit = door.options.connections_per_address_max;
            format!(
                "this address has {limit} connections, the limit for one (postgres.connections_per_address_max)"
            )
        }
    };
    let mut wire = Wire::new(stream);
    let refusing = async {
        // Reading what the client has sent keeps closing from resetting the connection before the answer is read.
        while let super::frontend::First::Encryption = wire.first().await? {
            wire.decline().await?;
        }
        Ok::<_, Ended>(wire.refuse(PgError::fatal("53300", message)).await?)
    };
    // Who says nothing is closed without a word.
    drop(timeout(TURN_AWAY_TIMEOUT, refusing).await);
}

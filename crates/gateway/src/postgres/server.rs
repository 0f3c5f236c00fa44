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

/// How far the door has come with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Serving.
    Serve,
    /// What runs ends; idle sessions are closed.
    Drain,
    /// Whatever is left is dropped.
    Now,
}

/// Tells a session when the door stops.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<Stage>);

impl Stop {
    /// Returns when no further message is to be taken.
    pub(super) async fn drain(&mut self) {
        self.reached(Stage::Drain).await;
    }

    async fn reached(&mut self, stage: Stage) {
        // The sender lives until all connections are gone; an error would mean that the door is gone.
        let _ = self.0.wait_for(|now| *now >= stage).await;
    }
}

/// Serves `listener` until `shutdown` ends. Then accepts nothing more, lets statements in flight finish, and returns after
/// at most `DRAIN_TIMEOUT` (and a moment to drop what is left).
pub async fn serve(
    hub: Arc<Hub>,
    listener: TcpListener,
    options: PostgresOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let seats_max = u32::try_from(options.connections_max.max(1)).unwrap_or(u32::MAX >> 4);
    let seats = Arc::new(Semaphore::new(seats_max as usize));
    let doormen = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let (stage, stop) = watch::channel(Stage::Serve);
    let door = Arc::new(Door::new(hub, options));
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        match (accepted, Arc::clone(&seats).try_acquire_owned()) {
            (Ok((stream, _)), Ok(seat)) => {
                tokio::spawn(serve_connection(Arc::clone(&door), stream, seat, Stop(stop.clone())));
            }
            (Ok((stream, _)), Err(_)) => {
                door.refused("connections");
                // Who comes while so many are being told is closed without a word.
                if let Ok(place) = Arc::clone(&doormen).try_acquire_owned() {
                    tokio::spawn(turn_away(Arc::clone(&door), stream, place));
                }
            }
            (Err(error), _) => {
                tracing::warn!(%error, "postgres: cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    stage.send_replace(Stage::Drain);
    let all_gone = || timeout(DRAIN_TIMEOUT, seats.acquire_many(seats_max));
    if all_gone().await.is_err() {
        let left = seats_max as usize - seats.available_permits();
        tracing::warn!(left, "postgres: connections are cut off because they did not end in time");
        stage.send_replace(Stage::Now);
        let _ = all_gone().await;
    }
    Ok(())
}

async fn serve_connection(door: Arc<Door>, stream: TcpStream, seat: OwnedSemaphorePermit, stop: Stop) {
    let _seat = seat;
    let counters = door.hub.metrics().door(hub::Door::Postgres);
    counters.connections.inc();
    counters.connections_opened.inc();
    let mut cut = stop.clone();
    let ended = tokio::select! {
        ended = converse(&door, stream, stop) => ended,
        () = cut.reached(Stage::Now) => Ok(()),
    };
    counters.connections.dec();
    if let Err(error) = ended {
        tracing::debug!(%error, "postgres: connection ended");
    }
}

async fn converse(door: &Arc<Door>, stream: TcpStream, mut stop: Stop) -> Result<(), Ended> {
    // Answers are collected before they are sent; waiting for more only delays them.
    stream.set_nodelay(true)?;
    let logging_in = timeout(STARTUP_TIMEOUT, log_in(door, Wire::new(stream)));
    let session = tokio::select! {
        session = logging_in => session.unwrap_or(Ok(None))?,
        () = stop.drain() => None,
    };
    match session {
        Some(mut session) => session.run(&mut stop).await,
        None => Ok(()),
    }
}

/// Says no to a connection too many. The client understands it once it has said its startup; most send it at once.
async fn turn_away(door: Arc<Door>, stream: TcpStream, place: OwnedSemaphorePermit) {
    let _place = place;
    let limit = door.options.connections_max;
    let message = format!("all {limit} connections of this door are in use; try again in a moment");
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

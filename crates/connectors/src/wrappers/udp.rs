//! The wrapper `udp`: datagrams that come to a port.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::failure::Failure;
use super::payload;
use super::sink::ElementSink;
use crate::limits::{UDP_BYTES_MAX, UDP_WAITING_MAX};

/// The field with the whole datagram, as in GSN.
const RAW_FIELD: &str = "raw_packet";

/// Reads a port. Datagrams that come while the store is busy wait; if too many wait, they are dropped and counted.
pub(super) async fn read(port: u16, sink: &mut ElementSink) -> Result<(), Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).await;
    let socket =
        socket.map_err(|error| Failure::while_(format_args!("cannot read the UDP port {port}"), error))?;
    sink.connected();
    let (waiting, mut taken) = mpsc::channel(UDP_WAITING_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    let receive = receive(socket, waiting, Arc::clone(&dropped));
    tokio::pin!(receive);
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    loop {
        tokio::select! {
            failed = &mut receive => return failed,
            _ = taken.recv_many(&mut datagrams, UDP_WAITING_MAX) => {}
        }
        let mut rest = datagrams.drain(..);
        while !rest.as_slice().is_empty() {
            let all = fill(&mut rest, sink);
            sink.dropped(dropped.swap(0, Ordering::Relaxed));
            // The port is read meanwhile.
            tokio::select! {
                failed = &mut receive => return failed,
                stored = sink.store(&all) => stored?,
            }
        }
    }
}

/// Adds datagrams until as many wait as one append takes, and returns their bytes.
fn fill(datagrams: &mut impl Iterator<Item = Vec<u8>>, sink: &mut ElementSink) -> Vec<u8> {
    let mut all = Vec::new();
    for datagram in datagrams {
        if let Err(reason) = payload::add(&datagram, RAW_FIELD, None, sink) {
            sink.refuse(&format!("a datagram: {reason}"), &datagram);
        }
        all.extend_from_slice(&datagram);
        if sink.is_full() {
            break;
        }
    }
    all
}

async fn receive(
    socket: UdpSocket,
    waiting: mpsc::Sender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
) -> Result<(), Failure> {
    let mut buffer = vec![0; UDP_BYTES_MAX];
    loop {
        let received = socket.recv(&mut buffer).await;
        let bytes = received.map_err(|error| Failure::while_("cannot read the UDP port", error))?;
        if waiting.try_send(buffer[..bytes].to_vec()).is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

//! The wire codecs with vectors in text files and with arbitrary input.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod http1;
mod http2;
mod mqtt_arbitrary;
mod mqtt_client;
mod mqtt_encode;
mod mqtt_packets;
mod mqtt_streams;
mod mqtt_vectors;
mod proxy;
mod websocket;

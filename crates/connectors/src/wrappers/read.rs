//! Which wrapper reads a source.

use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use virtual_sensors::ExternalWrapper;

use super::failure::Failure;
use super::http::Client;
use super::sink::ElementSink;
use super::{csv, http_get, jdbc, mqtt, periodic, remote, replay, udp};
use crate::databases::Pools;
use crate::limits::HTTP_ELEMENT_BYTES_MAX;

/// Reads a source until it fails. Another wrapper is another variant here.
pub(super) async fn read(
    external: &ExternalWrapper,
    (pools, targets): (&Pools, &Arc<AllowedTargets>),
    sink: &mut ElementSink,
) -> Result<(), Failure> {
    match external {
        ExternalWrapper::Csv(file) => csv::read(file, sink).await,
        ExternalWrapper::HttpGet { url, rate_ms, cafile } => {
            let client = Client::new(targets, cafile.as_deref(), HTTP_ELEMENT_BYTES_MAX).await?;
            http_get::read(&client, url.reveal(), *rate_ms, sink).await
        }
        ExternalWrapper::Mqtt(topic) => mqtt::read(targets, topic, sink).await,
        ExternalWrapper::Udp { port } => udp::read(*port, sink).await,
        ExternalWrapper::SystemTime { period_ms } => periodic::read(&periodic::Clock, *period_ms, sink).await,
        ExternalWrapper::MemoryUsage { period_ms } => {
            periodic::read(&periodic::Memory, *period_ms, sink).await
        }
        ExternalWrapper::FreeDiskSpace { period_ms } => {
            periodic::read(&periodic::Disk, *period_ms, sink).await
        }
        ExternalWrapper::Multiformat { period_ms } => {
            periodic::read(&periodic::Random, *period_ms, sink).await
        }
        ExternalWrapper::Replay { device, speed } => replay::read(device, *speed, sink).await,
        ExternalWrapper::Jdbc(jdbc) => jdbc::read(jdbc, pools, sink).await,
        ExternalWrapper::Remote(remote) => remote::read(targets, remote, sink).await,
    }
}

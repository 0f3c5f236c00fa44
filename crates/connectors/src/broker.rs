//! Connections to MQTT brokers, encrypted or not.

use clients::outgoing::AllowedTargets;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use virtual_sensors::BrokerTls;

use crate::addresses::addresses;
use crate::tls;

/// The bytes of a connection of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to a broker, with TLS if it is given.
///
/// # Errors
/// The broker cannot be reached, or its certificate is not right.
pub(crate) async fn connect(
    targets: &AllowedTargets,
    host: &str,
    port: u16,
    tls: Option<&BrokerTls>,
) -> Result<Box<dyn Stream>, String> {
    let addresses = addresses(targets, host, port).await?;
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| error.to_string())?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let stream = tls::encrypt(stream, host, tls).await?;
    Ok(Box::new(stream))
}

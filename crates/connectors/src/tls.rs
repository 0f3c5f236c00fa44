//! Encrypted connections to brokers. The certificate of the server is always checked.

use clients::tls::{Identity, TlsConfig, TlsError, TlsFailure, TlsOptions, Trust};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use virtual_sensors::BrokerTls;

/// Encrypts a connection. The files are read for each connection, so renewed ones are used.
///
/// # Errors
/// A file cannot be used, or the certificate of the server is not right.
pub(crate) async fn encrypt(
    stream: TcpStream,
    host: &str,
    tls: &BrokerTls,
) -> Result<TlsStream<TcpStream>, String> {
    let (options, host) = (options(tls), host.to_owned());
    let read = move || TlsConfig::load(&options)?.client(&host);
    let client = spawn_blocking(read).await;
    let client = client.map_err(|error| format!("the certificates were not read: {error}"))?;
    let client = client.map_err(|error: TlsError| error.to_string())?;
    let connector = TlsConnector::from(client.config().shared());
    let encrypted = connector.connect(client.name(), stream).await;
    encrypted.map_err(|error| TlsFailure::explain(error).to_string())
}

fn options(tls: &BrokerTls) -> TlsOptions {
    let trust = tls.cafile.as_ref().map_or(Trust::System, |file| Trust::File(file.into()));
    let identity = tls
        .identity
        .as_ref()
        .map(|(certificate, key)| Identity { certificate: certificate.into(), key: key.into() });
    TlsOptions { trust, identity }
}

//! Certificates and keys of encrypted connections. The certificate of the server is always checked.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use virtual_sensors::BrokerTls;

use crate::limits::PEM_BYTES_MAX;

/// Encrypts a connection. The files are read for each connection, so renewed ones are used.
///
/// # Errors
/// A file cannot be used, or the certificate of the server is not right.
pub(crate) async fn encrypt(
    stream: TcpStream,
    host: &str,
    tls: &BrokerTls,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| format!("{host:?} is not a name that a certificate can have"))?;
    let tls = tls.clone();
    let config = spawn_blocking(move || config(&tls)).await;
    let config = config.map_err(|error| format!("the certificates were not read: {error}"))??;
    let encrypted = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    encrypted.map_err(|error| explain(&error, host))
}

/// All certificates of a PEM file, at least one.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub(crate) fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(format!("{path} has no certificate (no line \"-----BEGIN CERTIFICATE-----\")"))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{path} is not a PEM file: {error}")),
    }
}

fn config(tls: &BrokerTls) -> Result<ClientConfig, String> {
    let roots = match &tls.cafile {
        Some(path) => authorities(path)?,
        None => system_authorities()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &tls.identity else { return Ok(builder.with_no_client_auth()) };
    let config = builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?);
    config.map_err(|error| format!("the key {key} cannot be used with {certificate}: {error}"))
}

fn authorities(path: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{path} has a certificate that is not an authority: {error}"))?;
    }
    Ok(roots)
}

fn system_authorities() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Systems keep some certificates that no verifier takes.
    let (taken, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match taken {
        0 => Err("this system has no certificates of authorities; name them in cafile".to_owned()),
        _ => Ok(roots),
    }
}

fn private_key(path: &str) -> Result<PrivateKeyDer<'static>, String> {
    let key = PrivateKeyDer::from_pem_slice(&read(path)?);
    key.map_err(|error| format!("{path} has no private key that can be read without a password: {error}"))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("cannot read {path}: {error}");
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > PEM_BYTES_MAX {
        return Err(format!("{path} has more than {PEM_BYTES_MAX} bytes (PEM_BYTES_MAX)"));
    }
    Ok(text)
}

/// Why a handshake failed, and what to do.
pub(crate) fn explain(error: &io::Error, host: &str) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "the server ended the TLS handshake; look at its log, and at the port".to_owned();
    }
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        // A signature is bad if another authority of the same name made it.
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => {
            "no trusted authority signed the certificate of the server; name the file of its authority in cafile"
                .to_owned()
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => {
            format!("the certificate of the server is not for {host:?}; connect with a name of the certificate")
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => "the certificate of the server has expired or is not valid yet".to_owned(),
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS on this port".to_owned(),
        _ => format!("the TLS handshake failed: {error}"),
    }
}

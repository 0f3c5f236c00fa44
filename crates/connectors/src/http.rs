//! The HTTP client of wrappers and exporters: it trusts the authorities of a file, or those of the system.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls_native_certs::load_native_certs;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Agent, Error};

use crate::tls;

/// A client that keeps its connections, for addresses of one server. It reads the file: call it on a thread that may block.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn agent(config: ConfigBuilder<AgentScope>, cafile: Option<&str>) -> Result<Agent, String> {
    let authorities = match cafile {
        Some(path) => Arc::new(tls::certificates(path)?.iter().map(|one| owned(one)).collect()),
        None => system_authorities(),
    };
    let tls = TlsConfig::builder().root_certs(RootCerts::Specific(authorities)).build();
    let user_agent = concat!("tachograph/", env!("CARGO_PKG_VERSION"));
    Ok(config.http_status_as_error(false).user_agent(user_agent).tls_config(tls).build().new_agent())
}

/// Why a server gave no answer; for a certificate also what to do.
pub(crate) fn explain(error: Error, host: &str) -> String {
    match error {
        Error::Rustls(error) => tls::explain(&io::Error::other(error), host),
        Error::Io(error) if is_of_tls(&error) => tls::explain(&error, host),
        error => error.to_string(),
    }
}

fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
}

/// The authorities of the system, read once.
fn system_authorities() -> Arc<Vec<Certificate<'static>>> {
    static AUTHORITIES: OnceLock<Arc<Vec<Certificate<'static>>>> = OnceLock::new();
    let read = || Arc::new(load_native_certs().certs.iter().map(|one| owned(one)).collect());
    Arc::clone(AUTHORITIES.get_or_init(read))
}

fn owned(der: &[u8]) -> Certificate<'static> {
    Certificate::from_der(der).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    /// Serves some connections of HTTPS as `localhost`; returns the port and the PEM text of its authority.
    fn https_server(connections: usize) -> (u16, String) {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let own = own.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming().take(connections) {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(session, socket.unwrap());
                // A client that does not trust the server ends the handshake.
                if stream.read(&mut [0; 1_024]).is_ok() {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                    let _ = stream.write_all(answer);
                }
            }
        });
        (port, pem)
    }

    fn get(url: &str, cafile: Option<&str>) -> Result<String, String> {
        let config = Agent::config_builder().timeout_global(Some(Duration::from_secs(30)));
        let answer = agent(config, cafile)?.get(url).call().map_err(|error| explain(error, url))?;
        Ok(answer.into_body().read_to_string().unwrap())
    }

    #[test]
    fn https_trusts_the_authorities_of_a_file_and_without_one_those_of_the_system() {
        let (port, pem) = https_server(3);
        let directory = tempfile::tempdir().unwrap();
        let (right, other) = (directory.path().join("ca.pem"), directory.path().join("other.pem"));
        std::fs::write(&right, pem).unwrap();
        let key = KeyPair::generate().unwrap();
        std::fs::write(&other, CertificateParams::default().self_signed(&key).unwrap().pem()).unwrap();
        let url = format!("https://localhost:{port}/");
        assert_eq!(get(&url, right.to_str()), Ok("ok".to_owned()));
        for cafile in [None, other.to_str()] {
            let refused = get(&url, cafile).unwrap_err();
            assert!(refused.contains("name the file of its authority in cafile"), "{cafile:?}: {refused}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        std::fs::write(&path, "nothing").unwrap();
        let refused = get("https://localhost:1/", path.to_str()).unwrap_err();
        assert!(refused.contains("ca.pem has no certificate"), "{refused}");
    }
}

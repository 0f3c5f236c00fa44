//! Tests of certificate and key files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use clients::tls::read_certificates;
use rcgen::{Certificate, CertificateParams, KeyPair, date_time_ymd};
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection, SignatureScheme};
use tempfile::TempDir;

use super::*;

fn certificate(until_year: i32, key: &KeyPair) -> Certificate {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until_year, 1, 1);
    params.self_signed(key).unwrap()
}

fn write(directory: &Path, certificate: &Certificate, key: &KeyPair) -> TlsFiles {
    let files = TlsFiles {
        certificate: directory.join("server.pem"),
        key: directory.join("server-key.pem"),
        ..TlsFiles::default()
    };
    fs::write(&files.certificate, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}

fn valid_files() -> (TempDir, TlsFiles) {
    let directory = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let files = write(directory.path(), &certificate(2090, &key), &key);
    (directory, files)
}

fn error_of(files: &TlsFiles) -> String {
    Tls::load(files.clone()).unwrap_err().to_string()
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let (directory, files) = valid_files();
    let absent = TlsFiles { key: directory.path().join("absent.pem"), ..files.clone() };
    assert!(error_of(&absent).starts_with(&format!("cannot read {}: ", absent.key.display())));
    let swapped =
        TlsFiles { certificate: files.key.clone(), key: files.certificate.clone(), ..TlsFiles::default() };
    assert!(error_of(&swapped).contains("server-key.pem: it has no certificate"));
    let no_key = TlsFiles { key: files.certificate.clone(), ..files.clone() };
    assert!(error_of(&no_key).contains("server.pem: it has no private key"));
    let client_certificates = ClientCertificates::Required;
    let no_ca = TlsFiles { client_certificates, client_ca: Some(files.key.clone()), ..files.clone() };
    assert!(error_of(&no_ca).contains("server-key.pem: it has no certificate"));
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
    assert!(error_of(&files).contains("server.pem: the PEM text is damaged"));
    fs::write(&files.certificate, vec![b'x'; 5 * 1024 * 1024]).unwrap();
    assert!(error_of(&files).contains("server.pem: it has more than 4194304 bytes"));
}

#[test]
fn an_expired_certificate_is_refused_with_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let files = write(directory.path(), &certificate(2021, &key), &key);
    assert!(error_of(&files).contains("server.pem expired at 2021-01-01T00:00:00Z"), "{}", error_of(&files));
}

#[test]
fn a_reload_replaces_the_identity_only_if_the_files_are_usable() {
    let (directory, files) = valid_files();
    let tls = Tls::load(files.clone()).unwrap();
    let first = tls.server_config();
    assert!(!tls.has_new_files());

    let other_key = KeyPair::generate().unwrap();
    fs::write(&files.key, format!("\n{}", other_key.serialize_pem())).unwrap();
    assert!(tls.has_new_files());
    assert!(matches!(tls.reload(), Err(TlsError::Mismatch { .. })));
    assert!(std::sync::Arc::ptr_eq(&first, &tls.server_config()), "the identity from before stays");
    assert!(!tls.has_new_files(), "files that failed are not tried again until they change");

    write(directory.path(), &certificate(2091, &other_key), &other_key);
    tls.reload().unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &tls.server_config()));
}

/// A client's certificate with a key, which need not be that of the certificate.
#[derive(Debug)]
struct Presented(Arc<CertifiedKey>);

impl ResolvesClientCert for Presented {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A handshake in memory. Returns what the server knows about the client, or why it refuses the client.
fn handshake_with(
    files: &TlsFiles,
    client: Option<(&Certificate, &KeyPair)>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<usize, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(read_certificates(&files.certificate).unwrap().remove(0)).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            let key = ring::sign::any_supported_type(&key).unwrap();
            let certified = CertifiedKey::new(vec![certificate.der().clone()], key);
            config.with_client_cert_resolver(Arc::new(Presented(Arc::new(certified))))
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server = ServerConnection::new(Tls::load(files.clone()).unwrap().server_config()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().expect("the client trusts the server");
        }
    }
    Ok(server.peer_certificates().map_or(0, <[_]>::len))
}

#[test]
fn any_valid_certificate_of_a_client_is_taken_with_its_key() {
    let (_directory, files) = valid_files();
    let (key, other_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (valid, expired) = (certificate(2090, &key), certificate(2021, &key));
    let mut later = CertificateParams::new(["car".to_owned()]).unwrap();
    later.not_before = date_time_ymd(2089, 1, 1);
    let later = later.self_signed(&key).unwrap();
    let optional = TlsFiles { client_certificates: ClientCertificates::Optional, ..files.clone() };
    for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
        let with = |files, client| handshake_with(files, client, versions);
        assert_eq!(with(&optional, Some((&valid, &key))), Ok(1));
        assert_eq!(with(&optional, None), Ok(0));
        assert_eq!(with(&files, Some((&valid, &key))), Ok(0), "the server does not ask");
        let text = |refused: Result<usize, rustls::Error>| refused.unwrap_err().to_string();
        assert!(text(with(&optional, Some((&valid, &other_key)))).contains("BadSignature"));
        assert!(text(with(&optional, Some((&expired, &key)))).contains("Expired"));
        assert!(text(with(&optional, Some((&later, &key)))).contains("NotValidYet"));
    }
}

#[test]
fn certificates_of_no_named_authority_are_refused_and_required_ones_must_come() {
    let (directory, files) = valid_files();
    let (key, other_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (ours, other) = (certificate(2090, &key), certificate(2090, &other_key));
    let path = directory.path().join("authorities.pem");
    fs::write(&path, ours.pem()).unwrap();
    let with = |client_certificates, client| {
        let files = TlsFiles { client_certificates, client_ca: Some(path.clone()), ..files.clone() };
        handshake_with(&files, client, &[&rustls::version::TLS13])
    };
    for wanted in [ClientCertificates::Optional, ClientCertificates::Required] {
        assert_eq!(with(wanted, Some((&ours, &key))), Ok(1));
        assert!(with(wanted, Some((&other, &other_key))).is_err());
    }
    assert_eq!(with(ClientCertificates::Optional, None), Ok(0));
    assert_eq!(with(ClientCertificates::Required, None), Err(rustls::Error::NoCertificatesPresented));
}

//! Tests of certificate and key files.

use std::fs;
use std::path::Path;

use rcgen::{Certificate, CertificateParams, KeyPair, date_time_ymd};
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
        client_ca: None,
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
        TlsFiles { certificate: files.key.clone(), key: files.certificate.clone(), client_ca: None };
    assert!(error_of(&swapped).contains("server-key.pem: it has no certificate"));
    let no_key = TlsFiles { key: files.certificate.clone(), ..files.clone() };
    assert!(error_of(&no_key).contains("server.pem: it has no private key"));
    let no_ca = TlsFiles { client_ca: Some(files.key.clone()), ..files.clone() };
    assert!(error_of(&no_ca).contains("server-key.pem: it has no certificate"));
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
    assert!(error_of(&files).contains("server.pem: the PEM text is damaged"));
    fs::write(&files.certificate, vec![b'x'; 2 * 1024 * 1024]).unwrap();
    assert!(error_of(&files).contains("server.pem: it has more than 1048576 bytes"));
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

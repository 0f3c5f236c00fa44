//! The certificates of clients.

use std::sync::Arc;

use clients::tls::{PemError, read_authorities};
use hub::certificate::Certificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::files::{ClientCertificates, TlsFiles};

/// The check of client certificates in a handshake; `None` asks for none.
pub(super) fn client_verifier(files: &TlsFiles) -> Result<Option<Arc<dyn ClientCertVerifier>>, PemError> {
    let is_required = match files.client_certificates {
        ClientCertificates::Off => return Ok(None),
        ClientCertificates::Optional => false,
        ClientCertificates::Required => true,
    };
    let provider = Arc::new(ring::default_provider());
    let Some(path) = &files.client_ca else {
        let algorithms = provider.signature_verification_algorithms;
        return Ok(Some(Arc::new(AnyCertificate { is_required, algorithms })));
    };
    let roots = read_authorities(path)?;
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if is_required { builder } else { builder.allow_unauthenticated() };
    builder.build().map(Some).map_err(|error| PemError::content(path, error.to_string()))
}

/// Accepts every certificate that is valid now. The client proves that it has the key. A door may know a certificate by its
/// fingerprint, and must believe nothing else that is in it.
#[derive(Debug)]
struct AnyCertificate {
    is_required: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let read = Certificate::from_der(end_entity).map_err(|_| CertificateError::BadEncoding)?;
        let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now_s < *read.validity_s.start() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now_s > *read.validity_s.end() {
            return Err(CertificateError::Expired.into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

//! The configuration of clients.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::{ClientConfig, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ConfigBuilder, RootCertStore, WantsVerifier};

use super::error::TlsError;
use super::pem::{PemError, read_authorities, read_certificates, read_key};
use super::session::TlsSession;
use super::verifier::Lenient;

/// Which certificate of a server a client takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// One that an authority of the system signed, for the name of the server.
    #[default]
    System,
    /// One that an authority of this file signed, for the name of the server.
    File(PathBuf),
    /// One that an authority of this file signed, for any name; `None` for the authorities of the system.
    AnyName(Option<PathBuf>),
    /// Every certificate.
    Everything,
}

/// The certificate with which a client shows who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The file of the certificate, with the intermediate ones after it.
    pub certificate: PathBuf,
    /// The file of its private key: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
}

/// The options of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Which certificate of the server is taken.
    pub trust: Trust,
    /// The certificate of the client, if it has one.
    pub identity: Option<Identity>,
}

impl TlsOptions {
    /// What a result says about the check of the server's certificate.
    pub fn verification(&self) -> String {
        match &self.trust {
            Trust::System => "verified with the authorities of the system".to_owned(),
            Trust::File(file) => format!("verified with {}", file.display()),
            Trust::AnyName(file) => {
                let with = file.as_ref().map_or_else(
                    || "the authorities of the system".to_owned(),
                    |file| file.display().to_string(),
                );
                format!("verified with {with}, name not checked")
            }
            Trust::Everything => "NOT VERIFIED".to_owned(),
        }
    }
}

/// A configuration that all connections of a client share.
#[derive(Debug, Clone)]
pub struct TlsConfig(Arc<ClientConfig>);

impl TlsConfig {
    /// Reads the files of the options.
    ///
    /// # Errors
    /// A file cannot be read or has unusable content, the key does not match, or the system has no authorities.
    pub fn load(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = trusting(builder(&provider), &options.trust, &provider)?;
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = (read_certificates(&identity.certificate)?, read_key(&identity.key)?);
                let unusable = |error: rustls::Error| {
                    let certificate = identity.certificate.display();
                    let reason = format!("the key cannot be used with {certificate}: {error}");
                    PemError::content(&identity.key, reason)
                };
                builder.with_client_auth_cert(chain, key).map_err(unusable)?
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// A configuration that trusts the authorities of `file`, or those of the system, which are read once. It is for a client that
    /// asks a server again and again: a new connection resumes the session of an earlier one. On a system without authorities
    /// every handshake fails.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn of_authorities(file: Option<&Path>) -> Result<Self, PemError> {
        static SYSTEM: OnceLock<TlsConfig> = OnceLock::new();
        let trusting = |roots| {
            let provider = Arc::new(ring::default_provider());
            Self(Arc::new(builder(&provider).with_root_certificates(roots).with_no_client_auth()))
        };
        let system = || trusting(system_authorities().unwrap_or_else(|_| RootCertStore::empty()));
        match file {
            Some(file) => Ok(trusting(read_authorities(file)?)),
            None => Ok(SYSTEM.get_or_init(system).clone()),
        }
    }

    /// The configuration for a library that does its own I/O.
    pub fn shared(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }

    /// A client of the server at `host`.
    ///
    /// # Errors
    /// The host is not a name that a certificate can have.
    pub fn client(&self, host: &str) -> Result<TlsClient, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TlsError::Name { host: host.to_owned() })?;
        Ok(TlsClient { config: self.clone(), name })
    }
}

type Verified = ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn builder(provider: &Arc<CryptoProvider>) -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .expect("BUG: the provider has suites for TLS 1.2 and 1.3")
}

/// The authorities of the system, at least one.
fn system_authorities() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems keep some certificates that no verifier takes.
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let cause = found.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots { cause });
    }
    Ok(roots)
}

fn trusting(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Verified, TlsError> {
    let roots = match trust {
        Trust::Everything => None,
        Trust::File(file) | Trust::AnyName(Some(file)) => Some(read_authorities(file)?),
        Trust::System | Trust::AnyName(None) => Some(system_authorities()?),
    };
    let roots = match (roots, trust) {
        (Some(roots), Trust::System | Trust::File(_)) => return Ok(builder.with_root_certificates(roots)),
        (roots, _) => roots,
    };
    let chain = roots.map(|roots| {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .expect("BUG: there is an authority and no revocation list")
    });
    let verifier = Lenient { chain, provider: Arc::clone(provider) };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

/// A configuration with the name of one server.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: TlsConfig,
    name: ServerName<'static>,
}

impl TlsClient {
    /// The configuration.
    pub const fn config(&self) -> &TlsConfig {
        &self.config
    }

    /// The name of the server.
    pub fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// Begins a connection. The first bytes of its handshake wait to be sent.
    pub fn session(&self) -> TlsSession {
        TlsSession::new(self.connection())
    }

    pub(super) fn connection(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.config.0), self.name.clone())
            .expect("BUG: the configuration has suites and takes every name")
    }
}

//! Tests of the event engine over TLS, against servers with certificates of their own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clients::tls::{TlsConfig, TlsOptions, Trust};
use load::engine::{Load, Outcome, Plan, Shared, event};
use load::schedule::Arrivals;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::engine::Letters;
use crate::plans;

/// Longer than any pause of a busy machine, and the time that a handshake takes at least.
const HANDSHAKE: Duration = Duration::from_secs(1);

/// The identity of a server at `localhost`. It writes its certificate into a file.
pub(crate) fn identity(certificate_file: &Path) -> Arc<ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(certificate_file, certificate.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
    Arc::new(config.unwrap())
}

/// A server that waits before each handshake and then returns what it reads.
fn echo(pause: Duration, certificate_file: &Path) -> SocketAddr {
    let config = identity(certificate_file);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                thread::sleep(pause);
                let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
                let mut bytes = [0; 16 * 1024];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn plan(target: SocketAddr, trust: Trust, connections: u32, load: Load, duration: Duration) -> Plan {
    let config = TlsConfig::load(&TlsOptions { trust, identity: None }).unwrap();
    let plan = plans::plan(target, connections, load, duration);
    Plan { tls: Some(config.client("localhost").unwrap()), silence: Duration::from_secs(30), ..plan }
}

fn run(letters: &Letters, plan: &Plan) -> bench::Result<Outcome<u64>> {
    event::run(letters, plan, &Shared::default(), |_| ())
}

#[test]
fn the_handshake_is_a_part_of_opening_a_connection_and_of_no_operation() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.pem");
    let target = echo(HANDSHAKE, &file);
    for greeted in [false, true] {
        let letters = Letters { window: 10, messages: 10, greeted, patient: false };
        let load = Load::Open { rate: 100.0, arrivals: Arrivals::Fixed, timer_us: 0, seed: 1 };
        let plan = plan(target, Trust::File(file.clone()), 2, load, Duration::from_millis(500));
        let outcome = run(&letters, &plan).unwrap();
        let handshake_us = u64::try_from(HANDSHAKE.as_micros()).unwrap();
        assert!(outcome.handshakes.quantile_us(0.0) >= handshake_us * 99 / 100, "{greeted}");
        let total = outcome.segments[0].recorder.total();
        assert_eq!(total.counts.completed, 20, "{:?}", total.counts);
        assert!(total.clocks.response.quantile_us(1.0) < handshake_us, "{greeted}");
    }
}

#[test]
fn what_the_server_does_not_take_at_once_waits_and_arrives_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.pem");
    let target = echo(Duration::ZERO, &file);
    let letters = Letters { window: 30_000, messages: 300_000, greeted: true, patient: false };
    let load = Load::Closed { window: 30_000, pause: Duration::ZERO };
    let plan = plan(target, Trust::File(file), 2, load, Duration::from_secs(60));
    let outcome = run(&letters, &plan).unwrap();
    let total = outcome.segments[0].recorder.total();
    assert_eq!((total.counts.completed, total.counts.errors.len()), (600_000, 0), "{:?}", total.counts);
}

#[test]
fn an_unknown_certificate_is_refused_unless_nothing_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let [file, other] = ["server.pem", "other.pem"].map(|name| directory.path().join(name));
    let target = echo(Duration::ZERO, &file);
    echo(Duration::ZERO, &other);
    let letters = Letters { window: 1, messages: 1, greeted: false, patient: false };
    let load = Load::Closed { window: 1, pause: Duration::ZERO };
    let plan = |trust| plan(target, trust, 1, load, Duration::from_secs(60));
    let error = run(&letters, &plan(Trust::File(other))).unwrap_err().to_string();
    assert!(error.contains("no trusted authority signed the certificate"), "{error}");
    let outcome = run(&letters, &plan(Trust::Everything)).unwrap();
    assert_eq!(outcome.segments[0].recorder.total().counts.completed, 1);
}

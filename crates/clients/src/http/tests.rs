//! The clients with a small server in this process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use super::*;

const LIMITS: HttpLimits = HttpLimits { timeout: Duration::from_secs(20), body_bytes_max: 1_000 };

/// A server that answers by method, path and login header. The receiver gets the requests as `METHOD path body`.
fn server(answer: impl Fn(&str, &str) -> (u16, String) + Send + 'static) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut first, mut login, mut length) = (String::new(), String::new(), 0);
            stream.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let Some((name, value)) = line.trim().split_once(": ") else { break };
                match name.to_ascii_lowercase().as_str() {
                    "x-authorization" => login = value.to_owned(),
                    "content-length" => length = value.parse().unwrap(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let request = first.rsplit_once(' ').unwrap().0.to_owned();
            let (status, text) = answer(&request, &login);
            let head =
                format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n", text.len());
            let head = format!("{head}Retry-After: 7\r\nX-Tacho-Bytes: 5\r\n\r\n");
            stream.get_mut().write_all(format!("{head}{text}").as_bytes()).unwrap();
            // The client of the test may be gone.
            drop(sender.send(format!("{request} {}", String::from_utf8(body).unwrap())));
        }
    });
    (base, requests)
}

#[test]
fn an_expired_session_is_renewed_once_for_all_copies_of_a_client() {
    let logins = std::sync::atomic::AtomicU32::new(0);
    let (base, requests) = server(move |request, login| match request {
        "POST /api/auth/login" => {
            let number = logins.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            (200, format!(r#"{{"token":"t{number}"}}"#))
        }
        _ if login == "Bearer t1" => (200, r#"{"a":1}"#.to_owned()),
        _ => (401, r#"{"message":"expired"}"#.to_owned()),
    });
    let client = RestClient::new(&base, LIMITS);
    client.log_in("u", "p").unwrap();
    let copy = client.clone();
    assert_eq!(client.get("/api/x").unwrap(), json!({ "a": 1 }));
    let mut streamed = String::new();
    copy.post_for_stream("/api/y", b"z").unwrap().body.read_to_string(&mut streamed).unwrap();
    assert_eq!(streamed, r#"{"a":1}"#);
    let login = r#"POST /api/auth/login {"password":"p","username":"u"}"#;
    let seen: Vec<String> = requests.try_iter().collect();
    assert_eq!(seen[..4], [login, "GET /api/x ", login, "GET /api/x "]);
    assert_eq!(copy.bearer().as_deref(), Some("Bearer t1"));
}

#[test]
fn a_refusal_has_status_message_and_pause_and_a_second_one_after_the_login_is_an_error() {
    let (base, requests) = server(|request, _| match request {
        "POST /api/auth/login" => (200, r#"{"token":"t"}"#.to_owned()),
        _ => (401, r#"{"message":"no"}"#.to_owned()),
    });
    let client = RestClient::new(&base, LIMITS);
    let refused = |client: &RestClient| match client.delete("/api/v1/secret/x?token=secret").unwrap_err() {
        RestError::Status { method: "DELETE", url, status: 401, message, retry_after } => {
            assert_eq!((message.as_str(), retry_after), ("no", Some(Duration::from_secs(7))));
            assert!(url.ends_with("/api/v1/TOKEN/x?token=secret"), "{url}");
        }
        other => panic!("{other}"),
    };
    refused(&client);
    client.log_in("u", "p").unwrap();
    refused(&client);
    assert_eq!(requests.try_iter().count(), 5, "one refusal, the login, one refusal, a login, one refusal");
}

#[test]
fn answers_over_the_limit_and_other_forms_are_errors() {
    let (base, _requests) = server(|request, _| match request {
        "GET /long" => (200, "x".repeat(1_001)),
        "GET /empty" => (200, String::new()),
        _ => (200, "<html>".to_owned()),
    });
    let client = RestClient::new(&format!("{base}/"), LIMITS);
    assert!(matches!(client.get("/long"), Err(RestError::Transport { .. })));
    assert_eq!(client.get("/empty").unwrap(), serde_json::Value::Null);
    let error = client.get("/page").unwrap_err().to_string();
    assert!(error.contains("GET") && error.contains("/page: no JSON"), "{error}");
    let streamed = client.post_for_stream("/stream", b"").unwrap();
    assert_eq!(streamed.bytes, Some(5));
    let error = HttpClient::new(base, LIMITS).send(&HttpRequest::get("/page")).and_then(HttpAnswer::json);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("status 200, content without a type: `<html>`, not with JSON"), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_not_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let client = RestClient::new(&base, HttpLimits { timeout: Duration::from_millis(50), ..LIMITS });
    let error = client.get("/x").unwrap_err();
    assert!(matches!(error, RestError::Transport { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("no answer from {base}/x; check")), "{error}");
}

#[test]
fn errors_quote_the_servers_message_and_hide_tokens() {
    assert_eq!(message_of(r#"{"status":400,"message":"say please"}"#), "say please");
    assert_eq!(message_of("no JSON"), "no JSON");
    let client = RestClient::new("http://127.0.0.1:1/", LIMITS);
    assert_eq!(client.url("/api/v1/secret/telemetry"), "http://127.0.0.1:1/api/v1/TOKEN/telemetry");
    assert_eq!(client.url("/api/device?accessToken=secret"), "http://127.0.0.1:1/api/device");
}

#[test]
fn names_are_escaped_for_urls() {
    assert_eq!(escaped("truck 7/ä"), "truck%207%2F%C3%A4");
}

#[test]
fn a_form_has_escaped_names_and_values() {
    assert_eq!(form([("a b", "1&2"), ("c", "ä=")]), "a%20b=1%262&c=%C3%A4%3D");
    assert_eq!(form([]), "");
}

#[test]
fn a_body_has_its_type_and_the_request_its_headers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut text = String::new();
        while !text.ends_with("a=b") {
            let mut room = [0; 1_024];
            let length = stream.read(&mut room).unwrap();
            text.push_str(std::str::from_utf8(&room[..length]).unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 None\r\n\r\n").unwrap();
        text.to_ascii_lowercase()
    });
    let headers = [("X-One", "1"), ("X-Two", "2")];
    let request = HttpRequest { headers: &headers, ..HttpRequest::new("PATCH", "/x", Body::Form("a=b")) };
    assert_eq!(HttpClient::new(base, LIMITS).status(&request).unwrap(), 204);
    let seen = seen.join().unwrap();
    assert!(seen.starts_with("patch /x http/1.1\r\n"), "{seen}");
    for header in [
        "content-type: application/x-www-form-urlencoded",
        "content-length: 3",
        "user-agent: tachograph/",
        "x-one: 1",
        "x-two: 2",
    ] {
        assert!(seen.contains(&format!("\r\n{header}")), "{header}: {seen}");
    }
}

#[test]
fn a_status_is_known_without_the_body_and_redirects_are_followed_on_demand() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut first = String::new();
            stream.read_line(&mut first).unwrap();
            let answer = if first.contains("/moved") {
                "HTTP/1.1 302 Found\r\nLocation: /long\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_owned()
            } else {
                let body = "x".repeat(2_000);
                format!("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\nConnection: close\r\n\r\n{body}")
            };
            // The client does not read a long body.
            drop(stream.get_mut().write_all(answer.as_bytes()));
        }
    });
    let client = HttpClient::new("", LIMITS);
    let (moved, long) = (format!("{base}/moved"), format!("{base}/long?key=secret"));
    assert_eq!(client.status(&HttpRequest::get(&long)).unwrap(), 200);
    assert_eq!(client.status(&HttpRequest::get(&moved)).unwrap(), 200);
    let error = client.get(&long).unwrap_err();
    assert_eq!(error.reason(), "the answer has more than 1000 bytes");
    let client = client.without_redirects();
    assert_eq!(client.status(&HttpRequest::get(&moved)).unwrap(), 302);
    let failed = client.get("/now?key=secret").unwrap_err();
    assert_eq!(failed.reason(), "this is not an HTTP address");
}

/// Serves some connections of HTTPS as `localhost`. Returns the port, the PEM text of its authority, and the kinds of the
/// handshakes.
fn https_server(connections: usize) -> (u16, String, mpsc::Receiver<HandshakeKind>) {
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
    let (sender, handshakes) = mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().take(connections) {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            // A client that does not trust the server ends the handshake.
            if stream.read(&mut [0; 1_024]).is_ok() {
                let kind = stream.conn.handshake_kind().unwrap();
                sender.send(kind).expect("the test waits");
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                drop(stream.write_all(answer));
            }
        }
    });
    (port, pem, handshakes)
}

fn client_of_authorities(cafile: Option<&Path>) -> Result<HttpClient, crate::tls::PemError> {
    HttpClient::new("", LIMITS).with_authorities(cafile)
}

#[test]
fn https_trusts_the_authorities_of_a_file_and_without_one_those_of_the_system() {
    let (port, pem, handshakes) = https_server(4);
    let directory = tempfile::tempdir().unwrap();
    let (right, other) = (directory.path().join("ca.pem"), directory.path().join("other.pem"));
    std::fs::write(&right, pem).unwrap();
    let key = KeyPair::generate().unwrap();
    std::fs::write(&other, CertificateParams::default().self_signed(&key).unwrap().pem()).unwrap();
    let url = format!("https://localhost:{port}/");
    let client = client_of_authorities(Some(&right)).unwrap();
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
        assert_eq!(client.get(&url).unwrap().body, b"ok");
        assert_eq!(handshakes.recv().unwrap(), kind);
    }
    for cafile in [None, Some(other.as_path())] {
        let refused = client_of_authorities(cafile).unwrap().get(&url).unwrap_err().reason();
        assert!(refused.starts_with("no trusted authority signed the certificate"), "{cafile:?}: {refused}");
        assert!(refused.contains("name the authority's file (cafile=FILE"), "{refused}");
    }
}

#[test]
fn a_file_without_a_certificate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, "nothing").unwrap();
    let refused = client_of_authorities(Some(&path)).unwrap_err().to_string();
    assert!(refused.contains("ca.pem: it has no certificate"), "{refused}");
}

//! The client with a small server in this process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;

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
fn devices_are_read_from_a_page() {
    let page =
        json!({"data": [{"id": {"entityType": "DEVICE", "id": "u-1"}, "name": "dev-0"}], "hasNext": false});
    let expected = Device { id: "u-1".to_owned(), name: "dev-0".to_owned() };
    assert_eq!(devices_of(&page), Some(vec![expected]));
    assert_eq!(devices_of(&json!({"data": [{"name": "dev-0"}]})), None);
}

#[test]
fn a_gateway_is_created_unless_its_name_is_known() {
    let (base, requests) = server(|request, _| match request {
        "POST /api/auth/login" => (200, r#"{"token":"t"}"#.to_owned()),
        "GET /api/tenant/devices?deviceName=known" | "POST /api/device?accessToken=tok1" => {
            (200, "{}".to_owned())
        }
        "GET /api/tenant/devices?deviceName=broken" => (500, r#"{"message":"no disk"}"#.to_owned()),
        _ => (404, r#"{"message":"no such device"}"#.to_owned()),
    });
    let client = Client::login(&base, "u", "p").unwrap();
    client.create_gateway("known", "tok0").unwrap();
    client.create_gateway("depot 1", "tok1").unwrap();
    let error = client.create_gateway("broken", "tok2").unwrap_err().to_string();
    assert!(error.contains("no disk"), "{error}");
    let seen: Vec<String> = requests.try_iter().skip(1).collect();
    let created = r#"POST /api/device?accessToken=tok1 {"additionalInfo":{"gateway":true},"name":"depot 1","type":"default"}"#;
    let known = |name: &str| format!("GET /api/tenant/devices?deviceName={name} ");
    // The receiver gets a request after its answer, so the last one may still be on its way.
    assert_eq!(seen[..3], [known("known"), known("depot%201"), created.to_owned()]);
}

#[test]
fn numbers_come_as_numbers_or_as_text() {
    assert_eq!(number(&json!(12)), Some(12.0));
    assert_eq!(number(&json!("12.5")), Some(12.5));
    assert_eq!(number(&json!("red")), None);
}

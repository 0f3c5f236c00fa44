//! Servers that give recorded answers over HTTP and over Cassandra's native protocol.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value as Json;

/// The answers by the beginning of the path: the first requests get the first answers, all later ones the last.
pub(crate) type Answers = BTreeMap<String, Vec<Json>>;

/// The recorded answers of a file in `tests/data`.
pub(crate) fn recording(name: &str) -> BTreeMap<String, Json> {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The answers of a recording of HTTP.
pub(crate) fn http_recording(name: &str) -> Answers {
    let answers = recording(name).into_iter();
    answers.map(|(path, list)| (path, list.as_array().expect("a list of answers").clone())).collect()
}

/// Serves HTTP on a free port. A text is a body with an own type, all else is JSON; `{"status": n}` alone is an answer with this
/// status. A path without an answer has status 404. `PORT` in an answer is replaced with the port.
pub(crate) fn serve_http(answers: Answers) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let answers = Arc::new(Mutex::new(answers));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            thread::spawn(move || answer_http(stream, &answers, port));
        }
    });
    port
}

fn answer_http(mut stream: TcpStream, answers: &Mutex<Answers>, port: u16) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match answer_of(answers, path) {
        None => (404, "nothing here".to_owned()),
        Some(Json::String(text)) => (200, text),
        Some(json) => {
            match json["status"].as_u64().filter(|_| json.as_object().is_some_and(|it| it.len() == 1)) {
                Some(status) => (status, "refused".to_owned()),
                None => (200, json.to_string()),
            }
        }
    };
    let body = body.replace("PORT", &port.to_string());
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// The answer with the longest beginning of the path.
fn answer_of(answers: &Mutex<Answers>, path: &str) -> Option<Json> {
    let mut answers = answers.lock().expect("no thread panics here");
    let known =
        answers.iter_mut().filter(|(key, _)| if *key == "/" { path == "/" } else { path.starts_with(*key) });
    let (_, list) = known.max_by_key(|(key, _)| key.len())?;
    Some(if list.len() > 1 { list.remove(0) } else { list[0].clone() })
}

/// Serves the native protocol on a free port: with the password `secret`, and rows by the name of the table.
pub(crate) fn serve_cql(tables: BTreeMap<String, Json>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tables = tables.clone();
            thread::spawn(move || answer_cql(stream, &tables));
        }
    });
    port
}

fn answer_cql(mut stream: TcpStream, tables: &BTreeMap<String, Json>) -> std::io::Result<()> {
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        let (opcode, answer) = match header[4] {
            0x05 => (0x06, vec![0, 0]),
            0x01 => (0x03, string("PasswordAuthenticator")),
            0x0f if body.ends_with(b"\0secret") => (0x10, vec![0xff; 4]),
            0x0f => (0x00, error(0x0100, "Provided username and/or password are incorrect")),
            _ => {
                let statement = String::from_utf8_lossy(&body).into_owned();
                let table = tables.iter().find(|(name, _)| statement.contains(&format!("FROM {name}")));
                match table {
                    None => (0x00, error(0x2200, "unconfigured table")),
                    Some((_, json)) if json.is_string() => {
                        (0x00, error(0x2100, json.as_str().expect("a text")))
                    }
                    Some((_, json)) => (0x08, rows(json)),
                }
            }
        };
        let mut frame = vec![0x84, 0, 0, 0, opcode];
        frame.extend((answer.len() as u32).to_be_bytes());
        frame.extend(answer);
        stream.write_all(&frame)?;
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

fn error(code: i32, message: &str) -> Vec<u8> {
    [&code.to_be_bytes()[..], &string(message)].concat()
}

fn bytes(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u32).to_be_bytes(), value].concat()
}

/// A result of rows, from `{"columns": [[name, type]], "rows": [[value]]}`.
fn rows(json: &Json) -> Vec<u8> {
    let columns = json["columns"].as_array().expect("columns");
    let rows = json["rows"].as_array().expect("rows");
    let mut body = [2_i32.to_be_bytes(), 1_i32.to_be_bytes(), (columns.len() as i32).to_be_bytes()].concat();
    body.extend([string("ks"), string("t")].concat());
    for column in columns {
        body.extend(string(column[0].as_str().expect("a name")));
        body.extend(match column[1].as_str().expect("a type") {
            "int" => vec![0, 9],
            "map" => vec![0, 0x21, 0, 0x0d, 0, 0x0d],
            _ => vec![0, 0x0d],
        });
    }
    body.extend((rows.len() as i32).to_be_bytes());
    for value in rows.iter().filter_map(Json::as_array).flatten() {
        body.extend(cell(value));
    }
    body
}

fn cell(value: &Json) -> Vec<u8> {
    match value {
        Json::Null => vec![0xff; 4],
        Json::Number(number) => bytes(&(number.as_i64().expect("an integer") as i32).to_be_bytes()),
        Json::Object(map) => {
            let mut inner = (map.len() as i32).to_be_bytes().to_vec();
            for (key, value) in map {
                inner.extend(bytes(key.as_bytes()));
                inner.extend(bytes(value.as_str().expect("a text").as_bytes()));
            }
            bytes(&inner)
        }
        other => bytes(other.as_str().expect("a text").as_bytes()),
    }
}

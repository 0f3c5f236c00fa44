//! Tests of the driver without sockets: its requests, and its handling of answers.

use crate::http::{Expect, JsonExpect, JsonOptions, Request};
use proptest::prelude::*;
use wire::http2::{self, FrameKind, flag, setting, write};

use super::*;

const DUE: DueTime = DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 };

fn operation(request: &str, expect: Expect) -> Operation {
    let (method, target) = request.split_once(' ').unwrap();
    let request = Request {
        method: method.to_owned(),
        target: target.to_owned(),
        host: "host".to_owned(),
        ..Request::default()
    };
    Operation { request, expect }
}

fn driver(operation: Operation, version: Version, close: bool) -> Http {
    let group = GroupConfig {
        connections: 2,
        operations: vec![(0, 1)],
        order: Order::Random,
        setup: Vec::new(),
        version,
        window: if close { 1 } else { 8 },
        close,
        requests: None,
        keys: (10, 19),
        distribution: Distribution::Uniform,
    };
    Http::new(&[operation], vec![group], 1).unwrap()
}

fn ok() -> Expect {
    Expect { statuses: vec![200], ..Expect::default() }
}

/// For each operation, how its answer finds it, and the failure.
type Ended = Vec<(Answer, Option<String>)>;

/// Feeds bytes to a session as an engine does: unused bytes come again with more.
struct Client<'a> {
    driver: &'a Http,
    session: Session,
    inbound: Vec<u8>,
    out: Vec<u8>,
    ended: Ended,
    ready: bool,
    over: bool,
}

impl<'a> Client<'a> {
    fn new(driver: &'a Http) -> Self {
        let (session, inbound) = (driver.session(0), Vec::new());
        let mut client =
            Self { driver, session, inbound, out: Vec::new(), ended: Vec::new(), ready: false, over: false };
        client.ready = driver.open(&mut client.session, &mut client.out) == Opening::Ready;
        client
    }

    /// Opens the next connection.
    fn reopen(&mut self) {
        self.inbound.clear();
        self.out.clear();
        self.over = false;
        self.ready = self.driver.open(&mut self.session, &mut self.out) == Opening::Ready;
    }

    fn start(&mut self, count: usize) -> Vec<Answer> {
        let mut one = || self.driver.start(&mut self.session, DUE, &mut self.out).unwrap().answer;
        (0..count).map(|_| one()).collect()
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.inbound.extend_from_slice(bytes);
        let ended = &mut self.ended;
        let mut done = |completion: Completion<'_>| {
            let failure = match completion.status {
                AnswerStatus::Failed(what) => Some(what.to_owned()),
                _ => None,
            };
            ended.push((completion.answer, failure));
        };
        let received = self.driver.receive(&mut self.session, &self.inbound, &mut self.out, &mut done)?;
        self.inbound.drain(..received.used);
        self.ready |= received.ready;
        self.over |= received.over;
        Ok(())
    }

    /// Receives an answer in pieces.
    fn receive_cut(&mut self, bytes: &[u8], sizes: &[usize]) {
        let mut rest = bytes;
        for size in sizes.iter().cycle() {
            if rest.is_empty() || self.over {
                return;
            }
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            self.receive(piece).unwrap();
            rest = more;
        }
    }

    fn closed(&mut self) -> Result<(), String> {
        let ended = &mut self.ended;
        self.driver.closed(&mut self.session, &mut |completion: Completion<'_>| {
            ended.push((completion.answer, None));
        })
    }
}

#[test]
fn pipelined_requests_have_their_own_keys_and_answers_in_order() {
    let expect = Expect { body: Some("item __key__".to_owned()), ..ok() };
    let driver = driver(operation("GET /item/__key__", expect), Version::One, false);
    let mut client = Client::new(&driver);
    assert_eq!(client.start(3), [Answer::InOrder; 3]);
    let text = String::from_utf8(client.out.clone()).unwrap();
    let keys: Vec<&str> =
        text.split("GET /item/").skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| (10..20).contains(&key.parse::<u32>().unwrap())), "{keys:?}");
    let answers: String = keys
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let body = if at == 1 { "item x".to_owned() } else { format!("item {key}") };
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        })
        .collect();
    client.receive(answers.as_bytes()).unwrap();
    let failures: Vec<bool> = client.ended.iter().map(|(_, failure)| failure.is_some()).collect();
    assert_eq!((failures, client.over), (vec![false, true, false], false));
    assert_eq!(client.session.tally.answered, 3);
}

#[test]
fn what_the_server_does_not_answer_any_more_is_asked_again_on_the_next_connection() {
    let driver = driver(operation("GET /__key__", ok()), Version::One, false);
    let mut client = Client::new(&driver);
    client.start(3);
    let first = client.out.clone();
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\nHTTP/1.1 20").unwrap();
    assert!(client.over && client.ended.len() == 1);
    client.reopen();
    client.start(2);
    assert!(first.ends_with(&client.out), "the same requests in the same order");
    assert_eq!(client.session.tally, Tally { written: 5, answered: 1, repeated: 2, connections: 2 });
    // If a connection that has answered before closes while a request is on its way, the request is repeated.
    assert!(client.closed().unwrap_err().contains("without an answer"));
    driver.lost(&mut client.session);
    client.reopen();
    client.start(2);
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(client.closed(), Ok(()));
    assert_eq!(client.session.again.len(), 1);
}

#[test]
fn a_body_may_end_with_its_connection_and_may_not_be_cut() {
    let driver = driver(operation("GET /", Expect { bytes: Some(5), ..ok() }), Version::One, false);
    let mut client = Client::new(&driver);
    client.start(1);
    client.receive(b"HTTP/1.1 200 OK\r\n\r\nhel").unwrap();
    client.receive(b"lo").unwrap();
    assert!(client.ended.is_empty());
    assert_eq!(client.closed(), Ok(()));
    assert_eq!(client.ended, [(Answer::InOrder, None)]);
    client.reopen();
    client.start(1);
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel").unwrap();
    assert!(client.closed().unwrap_err().contains("ended inside an answer"));
    client.reopen();
    assert!(
        client
            .receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            .unwrap_err()
            .contains("nothing that was asked")
    );
}

#[test]
fn with_a_connection_for_each_request_it_is_over_after_its_answer() {
    for version in [Version::One, Version::Two] {
        let driver = driver(operation("GET /", ok()), version, true);
        let mut client = Client::new(&driver);
        assert_eq!(driver.lifetime(&client.session), Lifetime::OnDemand);
        if version == Version::Two {
            client.receive(&frame(FrameKind::Settings, 0, 0, &[])).unwrap();
        }
        client.start(1);
        match version {
            Version::One => client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap(),
            Version::Two => {
                client
                    .receive(&frame(FrameKind::Headers, flag::END_HEADERS | flag::END_STREAM, 1, &[0x88]))
                    .unwrap();
            }
        }
        assert!(client.over && client.ended.len() == 1, "{version:?}");
    }
}

#[test]
fn headers_of_the_connection_are_refused() {
    let mut operation = operation("GET /", ok());
    operation.request.headers = vec![("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    let group = GroupConfig {
        connections: 1,
        operations: vec![(0, 1)],
        order: Order::Random,
        setup: Vec::new(),
        version: Version::One,
        window: 1,
        close: false,
        requests: None,
        keys: (0, 1),
        distribution: Distribution::Uniform,
    };
    let error = Http::new(&[operation], vec![group], 1).unwrap_err();
    assert!(error.contains("the driver's own"), "{error}");
}

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::header(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

/// The kind, flags, stream and payload of a frame.
type Owned = (FrameKind, u8, u32, Vec<u8>);

fn frames(mut bytes: &[u8]) -> Vec<Owned> {
    bytes = bytes.strip_prefix(http2::PREFACE).unwrap_or(bytes);
    let mut found = Vec::new();
    while let Some((frame, used)) = http2::frame(bytes, 1 << 20).unwrap() {
        found.push((frame.kind, frame.flags, frame.stream, frame.payload.to_vec()));
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty());
    found
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&mut out, settings);
    out
}

#[test]
fn streams_are_answered_in_any_order_and_each_for_itself() {
    let driver = driver(operation("GET /", Expect { bytes: Some(5), ..ok() }), Version::Two, false);
    let mut client = Client::new(&driver);
    assert!(client.out.starts_with(http2::PREFACE) && !client.ready);
    client.receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 3)])).unwrap();
    assert!(client.ready);
    assert_eq!(driver.window(&client.session), 3, "the server takes fewer than the scenario asks for");
    client.out.clear();
    let answers = client.start(3);
    assert_eq!(answers, [Answer::Key(1), Answer::Key(3), Answer::Key(5)]);
    let sent = frames(&client.out);
    let ends = flag::END_HEADERS | flag::END_STREAM;
    assert!(sent.iter().all(|(kind, flags, _, _)| (*kind, *flags) == (FrameKind::Headers, ends)), "{sent:?}");
    let mut said = frame(FrameKind::Headers, flag::END_HEADERS, 5, &[0x88]);
    said.extend(frame(FrameKind::Headers, ends, 3, &[0x8d]));
    said.extend(frame(FrameKind::Data, flag::PADDED, 5, b"\x03hel___"));
    said.extend(frame(FrameKind::Ping, 0, 0, b"12345678"));
    // Headers in two frames, then those of an interim answer, then the final ones, and a trailer behind the body.
    said.extend(frame(FrameKind::Headers, 0, 1, &[0x48, 3, b'1', b'0', b'3']));
    said.extend(frame(FrameKind::Continuation, flag::END_HEADERS, 1, &[0x00]));
    said.extend(frame(FrameKind::Headers, flag::END_HEADERS, 1, &[0x88]));
    said.extend(frame(FrameKind::Data, 0, 1, b"hello"));
    said.extend(frame(FrameKind::Headers, ends, 1, &[0x00, 1, b'a', 1, b'b']));
    said.extend(frame(FrameKind::Data, flag::END_STREAM, 5, b"lo"));
    client.out.clear();
    client.receive_cut(&said, &[1, 7, 3]);
    let expected: Ended =
        vec![(Answer::Key(3), Some("status 404".to_owned())), (Answer::Key(1), None), (Answer::Key(5), None)];
    assert_eq!(client.ended, expected);
    assert_eq!(frames(&client.out), [(FrameKind::Ping, flag::ACK, 0, b"12345678".to_vec())]);
}

#[test]
fn a_server_that_goes_away_answers_what_it_has_and_gets_the_rest_again() {
    let driver = driver(operation("GET /__key__", ok()), Version::Two, false);
    let mut client = Client::new(&driver);
    client.receive(&settings(&[])).unwrap();
    client.start(3);
    let ends = flag::END_HEADERS | flag::END_STREAM;
    client.receive(&frame(FrameKind::GoAway, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0])).unwrap();
    assert_eq!((driver.window(&client.session), client.over), (0, false));
    client.receive(&frame(FrameKind::Headers, ends, 3, &[0x88])).unwrap();
    assert!(!client.over);
    client.receive(&frame(FrameKind::Headers, ends, 1, &[0x88])).unwrap();
    assert!(client.over && client.session.again.len() == 1);
    assert_eq!(client.ended.len(), 2);

    let mut client = Client::new(&driver);
    client.receive(&settings(&[])).unwrap();
    client.start(1);
    let error =
        client.receive(&frame(FrameKind::GoAway, 0, 0, b"\0\0\0\x01\0\0\0\x0bslow down")).unwrap_err();
    assert!(error.contains("ENHANCE_YOUR_CALM slow down"), "{error}");
    let mut client = Client::new(&driver);
    client.receive(&settings(&[])).unwrap();
    client.start(1);
    client.receive(&frame(FrameKind::RstStream, 0, 1, &[0, 0, 0, 7])).unwrap();
    assert!(client.ended[0].1.as_ref().unwrap().contains("REFUSED_STREAM"));
    assert_eq!(client.closed(), Ok(()), "nothing was on its way");
}

#[test]
fn bodies_wait_for_the_windows_of_stream_and_connection() {
    let mut posting = operation("POST /", ok());
    posting.request.body = Some("x".repeat(100));
    let driver = driver(posting, Version::Two, false);
    let mut client = Client::new(&driver);
    client.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 40)])).unwrap();
    client.out.clear();
    client.start(1);
    let lengths = |out: &[u8]| -> Vec<(usize, u8)> {
        let data =
            |(kind, flags, _, payload): &Owned| (*kind == FrameKind::Data).then_some((payload.len(), *flags));
        frames(out).iter().filter_map(data).collect()
    };
    assert_eq!(lengths(&client.out), [(40, 0)]);
    client.out.clear();
    client.receive(&frame(FrameKind::WindowUpdate, 0, 1, &[0, 0, 0, 25])).unwrap();
    client.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 50)])).unwrap();
    client.receive(&frame(FrameKind::WindowUpdate, 0, 1, &[0, 0, 4, 0])).unwrap();
    assert_eq!(lengths(&client.out), [(25, 0), (10, 0), (25, flag::END_STREAM)]);
}

#[test]
fn a_server_of_http1_is_told_from_one_that_speaks_nonsense() {
    let driver = driver(operation("GET /", ok()), Version::Two, false);
    let error = |bytes: &[u8]| Client::new(&driver).receive(bytes).unwrap_err();
    assert!(error(b"HTTP/1.1 400 Bad Request\r\n\r\n").contains("speaks HTTP/1.1 here"));
    assert!(error(&frame(FrameKind::Ping, 0, 0, b"12345678")).contains("does not begin with its settings"));
    assert!(error(b"SSH-2.0-OpenSSH_9.2p1 Debian").contains("longer than the limit"));
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        two in any::<bool>(),
    ) {
        let version = if two { Version::Two } else { Version::One };
        let driver = driver(operation("GET /__key__", ok()), version, false);
        let mut client = Client::new(&driver);
        if two {
            client.receive(&settings(&[])).unwrap();
        }
        client.start(4);
        let _ = client.receive(&bytes);
        let _ = client.closed();
    }
}

/// A client that logs in, then creates and reads in turns.
fn rest(window: usize) -> Result<Http, String> {
    let json = |extract: &[(&str, &str)], expect: &[(&str, &str)]| Expect {
        json: JsonOptions {
            extract: extract.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            expect: expect
                .iter()
                .map(|(a, b)| ((*a).to_owned(), JsonExpect::Text((*b).to_owned())))
                .collect(),
        },
        ..ok()
    };
    let mut create = operation("POST /items", json(&[("id", "/id")], &[]));
    create.request.headers = vec![("Token".to_owned(), "__token__".to_owned())];
    create.request.body = Some("[__key__,__client__]".to_owned());
    let login = operation("GET /login", json(&[("token", "/t")], &[]));
    let read = operation("GET /items/__id__", json(&[], &[("/id", "__id__"), ("/n", "__key__")]));
    let group = GroupConfig {
        connections: 1,
        operations: vec![(1, 1), (2, 1)],
        order: Order::Listed,
        setup: vec![0],
        version: Version::One,
        window,
        close: false,
        requests: Some(4),
        keys: (7, 7),
        distribution: Distribution::Uniform,
    };
    Http::new(&[login, create, read], vec![group], 1)
}

fn answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn a_session_logs_in_once_and_uses_the_values_of_its_answers() {
    let driver = rest(1).unwrap();
    let mut client = Client::new(&driver);
    assert!(!client.ready && client.out.starts_with(b"GET /login HTTP/1.1\r\n"));
    client.receive_cut(&answer(r#"{"t":"secret"}"#), &[5]);
    assert!(client.ready && client.ended.is_empty(), "set-up is not a load");
    client.out.clear();
    client.start(1);
    let sent = String::from_utf8(client.out.clone()).unwrap();
    assert!(sent.contains("Token: secret\r\nContent-Length: 5\r\n\r\n[7,0]"), "{sent}");
    client.receive(&answer(r#"{"id":12}"#)).unwrap();
    client.reopen();
    assert!(client.ready && client.out.is_empty(), "a new connection of a client keeps its variables");
    client.start(1);
    assert!(client.out.starts_with(b"GET /items/12 HTTP/1.1\r\n"));
    client.receive(&answer(r#"{"id":"12","n":7}"#)).unwrap();
    assert_eq!(client.ended, [(Answer::InOrder, None), (Answer::InOrder, None)]);
}

#[test]
fn a_wrong_answer_takes_the_value_away_and_fails_what_needs_it() {
    let driver = rest(1).unwrap();
    let long = format!(r#"{{"id":1,"x":"{}"}}"#, "x".repeat(crate::limits::HTTP_JSON_BYTES_MAX));
    for (body, error) in
        [("{", "not JSON"), ("{}", "no value at `/id`"), (&long, "longer than the 1048576 bytes")]
    {
        let mut client = Client::new(&driver);
        client.receive(&answer(r#"{"t":"secret"}"#)).unwrap();
        client.start(1);
        client.receive(&answer(body)).unwrap();
        client.start(1);
        client.receive(&answer(r#"{"id":"","n":7}"#)).unwrap();
        let failures: Vec<&str> = client.ended.iter().filter_map(|(_, failure)| failure.as_deref()).collect();
        assert!(failures[0].contains(error), "{failures:?}");
        assert!(failures[1].contains("without the value"), "{failures:?}");
    }
}

#[test]
fn a_set_up_step_that_fails_fails_its_connection() {
    let driver = rest(1).unwrap();
    let mut client = Client::new(&driver);
    let error = client.receive(&answer("{}")).unwrap_err();
    assert_eq!(error, "set-up step `GET /login`: JSON: no value at `/t`");
    client.reopen();
    assert!(!client.ready && client.out.starts_with(b"GET /login"), "the next connection begins again");
    assert!(client.closed().unwrap_err().contains("set-up step"));
    assert!(rest(2).unwrap_err().contains("`window` is 2"));
}

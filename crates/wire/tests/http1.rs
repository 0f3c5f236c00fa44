//! Valid HTTP/1.1 answers, split anywhere, and invalid ones.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::http1::{Answers, DecodeError, Framing, Piece, head};

/// An answer: status, whether the connection stays open, body.
type Answer = (u16, bool, Vec<u8>);

/// Reads answers from pieces, as a connection delivers them. An answer without a length is the last one.
fn read(pieces: &[&[u8]], to_head: bool, closed: bool) -> Result<Vec<Answer>, DecodeError> {
    let (mut answers, mut inbound, mut found) = (Answers::default(), Vec::new(), Vec::new());
    let mut open: Option<Answer> = None;
    for piece in pieces {
        inbound.extend_from_slice(piece);
        let mut at = 0;
        while let Some((piece, used)) = answers.next(&inbound[at..], to_head)? {
            at += used;
            match piece {
                Piece::Head(head) => open = Some((head.status, head.keeps_open, Vec::new())),
                Piece::Body([]) => {}
                Piece::Body(part) => open.as_mut().unwrap().2.extend_from_slice(part),
                Piece::End => found.push(open.take().unwrap()),
            }
        }
        inbound.drain(..at);
    }
    if closed && answers.closed()? {
        found.push(open.take().unwrap());
    }
    assert!(open.is_none() || !closed);
    Ok(found)
}

/// An answer as it is written in a vector.
type Written = (u16, bool, &'static str);
/// Name, bytes, the answers in them, whether they answer HEAD, whether the connection ends behind them.
type Vector = (&'static str, &'static str, &'static [Written], bool, bool);

const VECTORS: &[Vector] = &[
    (
        "nginx",
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 22 Nov 2026 05:45:00 GMT\r\nContent-Type: text/html\r\n\
         Content-Length: 5\r\nLast-Modified: Sun, 22 Nov 2026 05:40:00 GMT\r\nConnection: keep-alive\r\nETag: \"1-5\"\r\n\
         Accept-Ranges: bytes\r\n\r\nhello",
        &[(200, true, "hello")],
        false,
        false,
    ),
    ("no reason phrase", "HTTP/1.1 200 \r\ncontent-length:0\r\n\r\n", &[(200, true, "")], false, false),
    (
        "two in a row",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno\
         HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 3\r\nConnection: Keep-Alive, Close\r\n\r\nyes",
        &[(404, true, "no"), (200, false, "yes")],
        false,
        false,
    ),
    (
        "chunks with extension and trailer",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n6;x=\"y\"\r\npedia \r\n0E\r\nin \r\n\r\nchunks.\r\n\
         0\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        &[(200, true, "Wikipedia in \r\n\r\nchunks."), (204, true, "")],
        false,
        false,
    ),
    (
        "a length beside chunks does not count",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        &[(200, true, "a")],
        false,
        false,
    ),
    (
        "answers to HEAD have no body",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        &[(200, true, ""), (200, true, "")],
        true,
        false,
    ),
    (
        "not modified has none either",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        &[(304, true, ""), (200, true, "a")],
        false,
        false,
    ),
    (
        "interim answers",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\na",
        &[(201, true, "a")],
        false,
        false,
    ),
    (
        "until close",
        "HTTP/1.1 200 OK\r\nX: y\r\n\r\nHTTP/1.1 all of it",
        &[(200, false, "HTTP/1.1 all of it")],
        false,
        true,
    ),
    ("until close, empty", "HTTP/1.1 200 OK\r\n\r\n", &[(200, false, "")], false, true),
    (
        "another coding",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nzzz",
        &[(200, false, "zzz")],
        false,
        true,
    ),
    (
        "1.0 closes unless it says otherwise",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na\
         HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nb",
        &[(200, true, "a"), (200, false, "b")],
        false,
        true,
    ),
    (
        "the same length twice",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        &[(200, true, "a")],
        false,
        false,
    ),
];

fn expected(answers: &[Written]) -> Vec<Answer> {
    answers.iter().map(|(status, open, body)| (*status, *open, body.as_bytes().to_vec())).collect()
}

#[test]
fn answers_are_read_whole_and_cut_at_every_byte() {
    for (name, text, answers, to_head, closed) in VECTORS {
        let bytes = text.as_bytes();
        assert_eq!(read(&[bytes], *to_head, *closed), Ok(expected(answers)), "{name}");
        for cut in 0..=bytes.len() {
            let pieces = [&bytes[..cut], &bytes[cut..]];
            assert_eq!(read(&pieces, *to_head, *closed), Ok(expected(answers)), "{name}, cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, *to_head, *closed), Ok(expected(answers)), "{name}, byte by byte");
    }
}

#[test]
fn an_invalid_answer_is_refused_with_its_reason() {
    let cases = [
        ("SSH-2.0-OpenSSH_9.2\r\n", "`SSH-2.0"),
        ("HTTP/2.0 200 OK\r\n\r\n", "not one of HTTP/1.1"),
        ("HTTP/1.1 20 OK\r\n\r\n", "not one of HTTP/1.1"),
        ("HTTP/1.1 099 Low\r\n\r\n", "three digits"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "Content-Length: +5"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "not a number of bytes"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "says otherwise"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "size of a chunk"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", "size of a chunk"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "should end with CR LF"),
    ];
    for (text, reason) in cases {
        let error = read(&[text.as_bytes()], false, false).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn an_endless_answer_is_refused_at_its_limit() {
    let long = |text: &str, filler: &str| format!("{text}{}", filler.repeat(70_000 / filler.len()));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for text in [
        long("HTTP/1.1 200 OK\r\nX: ", "x"),
        long("HTTP/1.1 200 OK\r\n", "a: b\r\n"),
        long(&format!("{chunked}1;"), "x"),
        long(&format!("{chunked}0\r\nX: "), "x"),
    ] {
        let error = read(&[text.as_bytes()], false, false).unwrap_err().to_string();
        assert!(error.contains("limit") || error.contains("too many headers"), "{error}");
    }
}

#[test]
fn a_connection_that_ends_within_an_answer_is_an_error() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(read(&[format!("{answer}ab").as_bytes()], false, true).map(|found| found.len()), Ok(1));
    assert!(matches!(read(&[format!("{answer}a").as_bytes()], false, true), Err(DecodeError::Cut { .. })));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
    assert!(matches!(read(&[chunked.as_bytes()], false, true), Err(DecodeError::Cut { .. })));
}

/// An answer and its bytes.
fn any_answer() -> impl Strategy<Value = (Answer, Vec<u8>)> {
    let body = vec(any::<u8>(), 0..200);
    (200_u16..600, any::<bool>(), body, vec(1_usize..50, 0..4), any::<bool>()).prop_map(
        |(status, open, body, sizes, chunked)| {
            let body = if matches!(status, 204 | 304) { Vec::new() } else { body };
            let connection = if open { "" } else { "connection: close\r\n" };
            let mut bytes = format!("HTTP/1.1 {status} Some reason\r\n{connection}").into_bytes();
            if chunked && !matches!(status, 204 | 304) {
                bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                let mut rest = &body[..];
                for size in sizes.into_iter().chain([usize::MAX]) {
                    let (chunk, more) = rest.split_at(size.min(rest.len()));
                    rest = more;
                    if !chunk.is_empty() {
                        bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                        bytes.extend_from_slice(chunk);
                        bytes.extend_from_slice(b"\r\n");
                    }
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            } else {
                bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(&body);
            }
            ((status, open, body), bytes)
        },
    )
}

proptest! {
    #[test]
    fn answers_in_a_row_are_read_from_any_pieces(
        answers in vec(any_answer(), 1..5),
        sizes in vec(1_usize..100, 1..50),
    ) {
        let bytes: Vec<u8> = answers.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        let expected: Vec<Answer> = answers.into_iter().map(|(answer, _)| answer).collect();
        prop_assert_eq!(read(&pieces, false, true), Ok(expected));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..300), to_head in any::<bool>()) {
        let _ = head(&bytes, to_head);
        let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        chunked.extend_from_slice(&bytes);
        let (mut answers, mut at) = (Answers::default(), 0);
        while let Ok(Some((_, used))) = answers.next(&chunked[at..], to_head) {
            at += used;
        }
        prop_assert!(at <= chunked.len());
        let _ = answers.closed();
    }
}

#[test]
fn framing_follows_the_order_of_the_standard() {
    let of = |headers: &str, to_head: bool| {
        head(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes(), to_head).unwrap().unwrap().framing
    };
    assert_eq!(of("", false), Framing::UntilClose);
    assert_eq!(of("Content-Length: 7\r\n", false), Framing::Length(7));
    assert_eq!(of("Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", false), Framing::Chunked);
    assert_eq!(of("Content-Length: 7\r\n", true), Framing::Empty);
}

use bytes::BufMut;

use super::*;

/// A message with its type and length.
fn framed(kind: u8, body: &[u8]) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_u8(kind);
    frame.put_i32(body.len() as i32 + 4);
    frame.put_slice(body);
    frame
}

fn first(version: i32, body: &[u8]) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_i32(body.len() as i32 + 8);
    frame.put_i32(version);
    frame.put_slice(body);
    frame
}

fn one(kind: u8, body: &[u8]) -> Result<Message, Malformed> {
    let mut input = framed(kind, body);
    let message = take(&mut input).map(|message| message.expect("a whole message"));
    assert!(input.is_empty() || message.is_err());
    message
}

/// Every kind of message, as clients send it.
fn samples() -> Vec<(u8, Vec<u8>, Message)> {
    let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02\0\x07\xff\xff\xff\xff\0\x01\0\x01".to_vec();
    let binary = |bytes: Option<&'static [u8]>| Bound {
        format: ValueFormat::Binary,
        bytes: bytes.map(Bytes::from_static),
    };
    let bound = Bind {
        portal: "p".into(),
        statement: "s".into(),
        parameters: vec![binary(Some(b"\0\x07")), binary(None)],
        result_formats: vec![ValueFormat::Binary],
    };
    vec![
        (b'p', b"secret\0".to_vec(), Message::Password("secret".into())),
        (b'Q', b"SELECT 1\0".to_vec(), Message::Query("SELECT 1".into())),
        (
            b'P',
            b"s\0SELECT $1\0\0\x01\0\0\0\x17".to_vec(),
            Message::Parse { name: "s".into(), text: "SELECT $1".into(), types: vec![23] },
        ),
        (b'B', bind, Message::Bind(bound)),
        (b'D', b"Ss\0".to_vec(), Message::Describe { what: Target::Statement, name: "s".into() }),
        (b'C', b"P\0".to_vec(), Message::Close { what: Target::Portal, name: String::new() }),
        (b'E', b"p\0\0\0\0\x05".to_vec(), Message::Execute { portal: "p".into(), rows_max: 5 }),
        (b'E', b"p\0\0\0\0\0".to_vec(), Message::Execute { portal: "p".into(), rows_max: usize::MAX }),
        (b'H', vec![], Message::Flush),
        (b'S', vec![], Message::Sync),
        (b'X', vec![], Message::Terminate),
        (b'd', b"anything".to_vec(), Message::Copy),
    ]
}

#[test]
fn every_message_is_decoded() {
    for (kind, body, expected) in samples() {
        assert_eq!(one(kind, &body), Ok(expected));
    }
}

#[test]
fn a_message_waits_until_it_is_whole_and_leaves_the_next_one_alone() {
    for (kind, body, expected) in samples() {
        let whole = framed(kind, &body);
        for length in 0..whole.len() {
            let mut input = BytesMut::from(&whole[..length]);
            assert_eq!(take(&mut input), Ok(None));
            assert_eq!(input.len(), length);
        }
        let mut two = whole.clone();
        two.extend_from_slice(&framed(b'S', b""));
        assert_eq!(take(&mut two), Ok(Some(expected)));
        assert_eq!(take(&mut two), Ok(Some(Message::Sync)));
    }
}

#[test]
fn a_message_cut_short_is_refused() {
    for (kind, body, _) in samples().into_iter().filter(|(kind, _, _)| *kind != b'd') {
        for length in 0..body.len() {
            assert!(one(kind, &body[..length]).is_err(), "{} {length}", kind as char);
        }
    }
}

#[test]
fn lengths_have_bounds() {
    for length in [i32::MIN, -1, 0, 3, MESSAGE_BYTES_MAX as i32 + 1, i32::MAX] {
        let mut input = BytesMut::from(&b"Q"[..]);
        input.put_i32(length);
        assert!(matches!(take(&mut input), Err(Malformed::TooLong { .. })), "{length}");
        let mut input = BytesMut::new();
        input.put_i32(length);
        assert!(matches!(take_first(&mut input), Err(Malformed::TooLong { .. })), "{length}");
    }
    assert_eq!(take(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])), Err(Malformed::UnknownType(b'G')));
}

#[test]
fn first_messages_are_decoded() {
    assert_eq!(take_first(&mut first(SSL_REQUEST, b"")), Ok(Some(First::Tls)));
    assert_eq!(take_first(&mut first(GSS_REQUEST, b"")), Ok(Some(First::Kerberos)));
    let cancel = First::Cancel { process: 1, secret: -2 };
    assert_eq!(take_first(&mut first(CANCEL_REQUEST, b"\0\0\0\x01\xff\xff\xff\xfe")), Ok(Some(cancel)));
    let startup = First::Startup { minor: 2, parameters: vec![("user".into(), "a".into())] };
    assert_eq!(take_first(&mut first(0x3_0002, b"user\0a\0\0")), Ok(Some(startup)));
    assert_eq!(take_first(&mut first(0x2_0000, b"")), Err(Malformed::Version(2, 0)));
    assert_eq!(take_first(&mut first(0x3_0000, b"user\0a")), Err(Malformed::Short("Startup")));
    assert_eq!(take_first(&mut BytesMut::from(&b"\0\0\0"[..])), Ok(None));
}

#[test]
fn wrong_counts_and_formats_are_refused() {
    assert_eq!(one(b'P', b"\0\0\xff\xff"), Err(Malformed::Short("Parse")));
    assert_eq!(one(b'B', b"\0\0\0\0\xff\xff"), Err(Malformed::Short("Bind")));
    assert_eq!(one(b'B', b"\0\0\0\x01\0\x07\0\0\0\0"), Err(Malformed::Format(7)));
    let two_formats_one_value = b"\0\0\0\x02\0\0\0\0\0\x01\xff\xff\xff\xff\0\0";
    let expected = Malformed::FormatCount { formats: 2, values: 1 };
    assert_eq!(one(b'B', two_formats_one_value), Err(expected));
    assert_eq!(one(b'Q', b"\xff\0"), Err(Malformed::Text("Query")));
    assert_eq!(one(b'D', b"X\0"), Err(Malformed::UnknownType(b'X')));
}

//! Frames of WebSocket that carry a stream of bytes.

use proptest::prelude::*;
use wire::websocket::client;
use wire::websocket::{
    ANSWERS_BYTES_MAX, CloseCode, Fault, FrameReader, ReadBytes, write_binary, write_close,
};

/// A frame of a client, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0xA5, 0x00, 0xFF, 0x37];
    let mut bytes = Vec::new();
    write_binary(payload, &mut bytes);
    bytes[0] = first;
    bytes[1] |= 0x80;
    let head = bytes.len() - payload.len();
    for (index, byte) in bytes[head..].iter_mut().enumerate() {
        *byte ^= mask[index % 4];
    }
    bytes.splice(head..head, mask);
    bytes
}

#[derive(Debug, Default, PartialEq)]
struct Heard {
    stream: Vec<u8>,
    answers: Vec<u8>,
    is_closed: bool,
    fault: Option<CloseCode>,
}

/// Reads the bytes in pieces of these lengths, again and again.
fn read(bytes: &[u8], lengths: &[usize]) -> Heard {
    let mut reader = FrameReader::default();
    let mut heard = Heard::default();
    let mut rest = bytes;
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*length));
        rest = after;
        let mut buffer = piece.to_vec();
        match reader.read(&mut buffer, &mut heard.answers) {
            Ok(ReadBytes { bytes, is_closed }) => {
                heard.stream.extend_from_slice(&buffer[..bytes]);
                heard.is_closed = is_closed;
            }
            Err(Fault { code, .. }) => {
                heard.fault = Some(code);
                break;
            }
        }
    }
    heard
}

fn at_once(bytes: &[u8]) -> Heard {
    read(bytes, &[bytes.len().max(1)])
}

#[test]
fn the_example_of_the_specification_is_read() {
    // Section 5.7: "Hello", masked; with the opcode of binary messages.
    let heard = at_once(b"\x82\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    assert_eq!(heard, Heard { stream: b"Hello".to_vec(), ..Heard::default() });
}

#[test]
fn fragments_are_one_stream_and_control_frames_may_come_between() {
    let bytes = [
        frame(0x02, b"one "),
        frame(0x89, b"are you there?"),
        frame(0x00, b""),
        frame(0x8A, b"unasked"),
        frame(0x80, &[b'x'; 70_000]),
        frame(0x82, &[b'y'; 300]),
    ]
    .concat();
    let heard = at_once(&bytes);
    assert_eq!(heard.stream, [b"one ".as_slice(), &[b'x'; 70_000], &[b'y'; 300]].concat());
    assert_eq!(heard.answers, [b"\x8A\x0E".as_slice(), b"are you there?"].concat());
    assert!(!heard.is_closed && heard.fault.is_none());
}

#[test]
fn a_close_is_answered_with_its_code_and_ends_the_stream() {
    for (payload, code) in [(b"\x03\xE9bye".as_slice(), 1001), (b"", 1000)] {
        let heard = at_once(&[frame(0x82, b"a"), frame(0x88, payload), frame(0x82, b"late")].concat());
        let mut answer = Vec::new();
        write_close(CloseCode(code), &mut answer);
        assert_eq!(heard, Heard { stream: b"a".to_vec(), answers: answer, is_closed: true, fault: None });
    }
}

#[test]
fn broken_rules_are_refused_with_a_close_code() {
    let mut unmasked = Vec::new();
    write_binary(b"x", &mut unmasked);
    let long_ping = frame(0x89, &[0; 126]);
    for (bytes, code) in [
        (frame(0x81, b"text"), CloseCode::UNSUPPORTED),
        (frame(0x01, b"text"), CloseCode::UNSUPPORTED),
        (unmasked, CloseCode::PROTOCOL_ERROR),
        (frame(0x80, b"never begun"), CloseCode::PROTOCOL_ERROR),
        ([frame(0x02, b"a"), frame(0x82, b"b")].concat(), CloseCode::PROTOCOL_ERROR),
        (frame(0xC2, b"compressed"), CloseCode::PROTOCOL_ERROR),
        (frame(0x83, b"reserved"), CloseCode::PROTOCOL_ERROR),
        (frame(0x09, b"a ping in pieces"), CloseCode::PROTOCOL_ERROR),
        (long_ping, CloseCode::PROTOCOL_ERROR),
    ] {
        let heard = at_once(&bytes);
        let mut answer = Vec::new();
        write_close(code, &mut answer);
        assert_eq!((heard.fault, heard.answers), (Some(code), answer), "{}", bytes.escape_ascii());
    }
}

#[test]
fn pings_of_a_client_that_reads_nothing_do_not_pile_up() {
    let heard = at_once(&frame(0x89, &[7; 125]).repeat(1_000));
    assert!(heard.answers.len() < ANSWERS_BYTES_MAX + 127, "{} bytes", heard.answers.len());
}

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let payload = || prop::collection::vec(any::<u8>(), 0..200);
    let one = prop_oneof![
        4 => payload().prop_map(|payload| frame(0x82, &payload)),
        2 => (payload(), payload()).prop_map(|(a, b)| [frame(0x02, &a), frame(0x80, &b)].concat()),
        2 => prop::collection::vec(any::<u8>(), 0..126).prop_map(|payload| frame(0x89, &payload)),
        1 => payload().prop_map(|payload| frame(0x88, &payload[..payload.len().min(125)])),
        1 => any::<u8>().prop_map(|first| frame(first, b"any")),
        1 => payload(),
    ];
    prop::collection::vec(one, 0..8)
}

proptest! {
    #[test]
    fn any_split_gives_the_same(frames in frames(), lengths in prop::collection::vec(1_usize..40, 1..8)) {
        let bytes = frames.concat();
        let (pieces, whole) = (read(&bytes, &lengths), at_once(&bytes));
        prop_assert_eq!((pieces.fault, &pieces.answers), (whole.fault, &whole.answers));
        // Bytes before a fault are lost if they come in the same piece: the connection is closed anyway.
        if whole.fault.is_none() {
            prop_assert_eq!((pieces.stream, pieces.is_closed), (whole.stream, whole.is_closed));
        }
    }
}

proptest! {
    #[test]
    fn a_client_takes_any_bytes_without_a_panic(bytes: Vec<u8>, limit in 0_usize..300) {
        if let Ok(Some((frame, length))) = client::frame(&bytes, limit) {
            prop_assert!(length <= bytes.len() && frame.payload.len() <= limit);
            prop_assert!(bytes[..length].ends_with(frame.payload));
        }
    }

    #[test]
    fn a_client_finds_every_frame_of_a_stream(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5)) {
        let mut bytes = Vec::new();
        payloads.iter().for_each(|payload| write_binary(payload, &mut bytes));
        let (mut at, mut found) = (0, Vec::new());
        while let Some((frame, length)) = client::frame(&bytes[at..], 300).unwrap() {
            found.push(frame.payload.to_vec());
            at += length;
        }
        prop_assert_eq!((found, at), (payloads, bytes.len()));
    }
}

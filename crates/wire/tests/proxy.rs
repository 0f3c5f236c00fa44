//! The header of the PROXY protocol.

use std::net::SocketAddr;

use proptest::prelude::*;
use wire::proxy::limits::{V1_BYTES_MAX, V2_BYTES_MAX};
use wire::proxy::{Decoded, ProxyError, decode};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2.
fn v2(version_and_command: u8, family: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[version_and_command, family], &length, content].concat()
}

fn v2_ipv4(extensions: &[u8]) -> Vec<u8> {
    let addresses = [203, 0, 113, 9, 192, 0, 2, 1, 0xDD, 0xD5, 0x07, 0x5B];
    v2(0x21, 0x11, &[&addresses, extensions].concat())
}

fn v2_ipv6() -> Vec<u8> {
    let mut content = [0; 36];
    content[..2].copy_from_slice(&[0x20, 0x01]);
    content[15] = 7;
    content[32..34].copy_from_slice(&1_u16.to_be_bytes());
    v2(0x21, 0x21, &content)
}

/// The client of a whole header that other bytes follow.
fn client(header: &[u8]) -> Option<SocketAddr> {
    let stream = [header, b"\x10\x0C the first packet"].concat();
    match decode(&stream).unwrap_or_else(|error| panic!("{}: {error}", header.escape_ascii())) {
        Decoded::Header { client, bytes } => {
            assert_eq!(bytes, header.len(), "{}", header.escape_ascii());
            client
        }
        Decoded::Incomplete { .. } => panic!("{} is whole", header.escape_ascii()),
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn version_1_announces_the_client() {
    assert_eq!(client(b"PROXY TCP4 203.0.113.9 192.0.2.1 56789 1883\r\n"), address("203.0.113.9:56789"));
    assert_eq!(client(b"PROXY TCP6 2001:db8::7 ::1 1 65535\r\n"), address("[2001:db8::7]:1"));
    assert_eq!(client(b"PROXY TCP4 0.0.0.0 255.255.255.255 0 0\r\n"), address("0.0.0.0:0"));
    assert_eq!(client(b"PROXY UNKNOWN\r\n"), None);
    assert_eq!(client(b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n"), None);
}

#[test]
fn version_2_announces_the_client_and_its_extensions_are_skipped() {
    assert_eq!(client(&v2_ipv4(b"")), address("203.0.113.9:56789"));
    assert_eq!(client(&v2_ipv4(b"\x03\x00\x04\xFD\x16\x9B\x9B\x02\x00\x01x")), address("203.0.113.9:56789"));
    assert_eq!(client(&v2_ipv6()), address("[2001::7]:1"));
}

#[test]
fn a_sender_may_speak_for_itself() {
    assert_eq!(client(&v2(0x20, 0x00, b"")), None, "LOCAL, a health check");
    assert_eq!(client(&v2(0x20, 0x11, &[1; 12])), None, "with LOCAL the addresses are ignored");
    assert_eq!(client(&v2(0x21, 0x00, b"anything")), None, "an unspecified family");
    assert_eq!(client(&v2(0x21, 0x31, &[0; 216])), None, "Unix sockets");
    assert_eq!(client(&v2(0x21, 0x12, &[1; 12])), None, "UDP");
}

#[test]
fn malformed_headers_are_refused() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES_MAX));
    let mut longest = V2_BYTES_MAX - 16;
    assert!(matches!(decode(&v2(0x20, 0, &vec![0; longest])), Ok(Decoded::Header { .. })));
    longest += 1;
    for (bytes, expected) in [
        (long.as_bytes(), ProxyError::TooLong { limit: V1_BYTES_MAX }),
        (&v2(0x20, 0, &vec![0; longest]), ProxyError::TooLong { limit: V2_BYTES_MAX }),
        (b"GET / HTTP/1.1\r\n", ProxyError::NoHeader),
        (b"\x10", ProxyError::NoHeader),
        (b"PROXYTCP4", ProxyError::NoHeader),
        (b"\r\n\r\n\0\r\nQUIT\r", ProxyError::NoHeader),
    ] {
        assert_eq!(decode(bytes), Err(expected), "{}", bytes.escape_ascii());
    }
    for line in [
        "PROXY TCP4 203.0.113.9 192.0.2.1 56789 1883\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 56789\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 56789 1883 \r\n",
        "PROXY TCP4  203.0.113.9 192.0.2.1 56789 1883\r\n",
        "PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
        "PROXY TCP6 203.0.113.9 192.0.2.1 1 2\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 65536 1\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 +1 1\r\n",
        "PROXY TCP4 203.0.113.9 192.0.2.1 01 1\r\n",
        "PROXY TCP4 203.0.113.009 192.0.2.1 1 1\r\n",
        "PROXY TCP5 203.0.113.9 192.0.2.1 1 1\r\n",
        "PROXY tcp4 203.0.113.9 192.0.2.1 1 1\r\n",
    ] {
        assert!(matches!(decode(line.as_bytes()), Err(ProxyError::Malformed(_))), "{line:?}");
    }
    for header in [
        v2(0x11, 0x11, &[0; 12]),
        v2(0x22, 0x11, &[0; 12]),
        v2(0x21, 0x11, &[0; 11]),
        v2(0x21, 0x21, &[0; 35]),
        v2(0x21, 0x13, &[0; 12]),
        v2(0x21, 0x41, &[0; 12]),
    ] {
        assert!(matches!(decode(&header), Err(ProxyError::Malformed(_))), "{}", header.escape_ascii());
    }
}

/// Reads as much as the codec asks for, as a door does. Returns the length of the header and the reads.
fn read_as_asked(stream: &[u8]) -> Result<(Option<SocketAddr>, usize, usize), ProxyError> {
    let (mut read, mut reads) = (0, 0);
    loop {
        match decode(&stream[..read])? {
            Decoded::Header { client, bytes } => {
                assert_eq!(bytes, read, "no byte after the header was asked for");
                return Ok((client, bytes, reads));
            }
            Decoded::Incomplete { needs } => {
                assert!(needs > 0);
                read += needs;
                reads += 1;
            }
        }
    }
}

#[test]
fn a_reader_takes_the_header_and_nothing_after_it() {
    for header in [
        b"PROXY UNKNOWN\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.9 192.0.2.1 56789 1883\r\n".to_vec(),
        b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n".to_vec(),
        v2(0x20, 0, b""),
        v2_ipv4(b"some extension"),
        v2_ipv6(),
    ] {
        let stream = [header.as_slice(), b"\x16\x03\x01"].concat();
        let (found, bytes, reads) = read_as_asked(&stream).unwrap();
        assert_eq!((found, bytes), (client(&header), header.len()));
        assert!(reads <= if header.starts_with(SIGNATURE) { 3 } else { 50 }, "{reads} reads");
    }
}

fn headers() -> impl Strategy<Value = Vec<u8>> {
    let words = "(TCP4|TCP6|UNKNOWN)( [0-9a-f.:]{0,12}){0,5}";
    prop_oneof![
        words.prop_map(|words| format!("PROXY {words}\r\n").into_bytes()),
        (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| {
            let client = SocketAddr::from((ip, port));
            format!("PROXY TCP4 {} 192.0.2.1 {} 1883\r\n", client.ip(), client.port()).into_bytes()
        }),
        (0x1F_u8..0x24, any::<u8>(), prop::collection::vec(any::<u8>(), 0..60))
            .prop_map(|(command, family, content)| v2(command, family, &content)),
        (
            Just(0x21_u8),
            prop::sample::select(vec![0x11_u8, 0x21]),
            prop::collection::vec(any::<u8>(), 36..60)
        )
            .prop_map(|(command, family, content)| v2(command, family, &content)),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same(header in headers(), rest in prop::collection::vec(any::<u8>(), 0..20)) {
        let stream = [header, rest].concat();
        let whole = decode(&stream);
        for length in 0..stream.len() {
            match decode(&stream[..length]) {
                Ok(Decoded::Incomplete { needs }) => {
                    prop_assert!(needs > 0);
                    // A complete header has all the bytes that its beginning asked for.
                    if let Ok(Decoded::Header { bytes, .. }) = whole {
                        prop_assert!(length + needs <= bytes);
                    }
                }
                decided => prop_assert_eq!(&decided, &whole, "at {}", length),
            }
        }
    }
}

//! Valid HTTP/2 frames, split anywhere, and invalid ones.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::http2::limits::FRAME_BYTES_MAX;
use wire::http2::{DecodeError, Frame, FrameKind, flag, frame, hpack, reason, setting, write};

/// FrameKind, flags, stream and payload.
type Owned = (FrameKind, u8, u32, Vec<u8>);

fn frames(mut bytes: &[u8]) -> Result<Vec<Owned>, DecodeError> {
    let mut found = Vec::new();
    while let Some((frame, used)) = frame(bytes, FRAME_BYTES_MAX)? {
        found.push((frame.kind, frame.flags, frame.stream, frame.payload.to_vec()));
        bytes = &bytes[used..];
    }
    Ok(found)
}

fn kind() -> impl Strategy<Value = FrameKind> {
    prop_oneof![
        Just(FrameKind::Data),
        Just(FrameKind::Headers),
        Just(FrameKind::RstStream),
        Just(FrameKind::Settings),
        Just(FrameKind::PushPromise),
        Just(FrameKind::Ping),
        Just(FrameKind::GoAway),
        Just(FrameKind::WindowUpdate),
        Just(FrameKind::Continuation),
        Just(FrameKind::Priority),
        (10_u8..).prop_map(FrameKind::Unknown),
    ]
}

proptest! {
    #[test]
    fn frames_in_a_row_are_read_back_and_cut_anywhere(
        written in vec((kind(), any::<u8>(), 0_u32..1 << 31, vec(any::<u8>(), 0..50)), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut out = Vec::new();
        let mut ends = vec![0];
        for (kind, flags, stream, payload) in &written {
            write::header(&mut out, payload.len(), *kind, *flags, *stream);
            out.extend_from_slice(payload);
            ends.push(out.len());
        }
        prop_assert_eq!(frames(&out), Ok(written.clone()));
        let cut = cut.index(out.len() + 1);
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        prop_assert_eq!(frames(&out[..cut]), Ok(written[..whole].to_vec()));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..100)) {
        let _ = hpack::status(&bytes);
        if let Ok(Some((frame, used))) = frame(&bytes, 60) {
            prop_assert!(used <= bytes.len());
            let _ = (frame.content(), frame.first_number(), frame.last_words());
            let _ = frame.settings().map(Iterator::count);
        }
    }
}

#[test]
fn padding_and_priority_are_removed() {
    let content = |kind, flags, payload: &[u8]| {
        Frame { kind, flags, stream: 1, payload }.content().map(<[u8]>::to_vec).ok()
    };
    assert_eq!(content(FrameKind::Data, 0, b"abc"), Some(b"abc".to_vec()));
    assert_eq!(content(FrameKind::Data, flag::PADDED, b"\x02abc__"), Some(b"abc".to_vec()));
    assert_eq!(content(FrameKind::Data, flag::PADDED, b"\x06abc__"), None);
    assert_eq!(content(FrameKind::Data, flag::PADDED, b""), None);
    assert_eq!(
        content(FrameKind::Headers, flag::PADDED | flag::PRIORITY, b"\x01\0\0\0\0\x10abc_"),
        Some(b"abc".to_vec())
    );
    assert_eq!(content(FrameKind::Headers, flag::PRIORITY, b"\0\0\0"), None);
}

#[test]
fn settings_and_goaway_are_read() {
    let mut out = Vec::new();
    let settings = [(setting::MAX_CONCURRENT_STREAMS, 128), (setting::INITIAL_WINDOW_SIZE, 65_536)];
    write::settings(&mut out, &settings);
    let (found, used) = frame(&out, FRAME_BYTES_MAX).unwrap().unwrap();
    assert_eq!((found.settings().unwrap().collect::<Vec<_>>(), used), (settings.to_vec(), out.len()));
    assert!(Frame { payload: &out[..5], ..found }.settings().is_err());
    let payload = b"\x80\0\0\x07\0\0\0\x0bcalm";
    let goaway = Frame { kind: FrameKind::GoAway, flags: 0, stream: 0, payload };
    assert_eq!(goaway.first_number(), Ok(7), "the first bit means nothing");
    assert_eq!(goaway.last_words(), Ok((11, &b"calm"[..])));
    assert_eq!(
        (reason(11), reason(7), reason(99)),
        ("ENHANCE_YOUR_CALM", "REFUSED_STREAM", "an unknown reason")
    );
}

#[test]
fn a_frame_above_the_announced_size_is_refused_at_its_header() {
    let mut out = Vec::new();
    write::header(&mut out, FRAME_BYTES_MAX + 1, FrameKind::Data, 0, 1);
    assert_eq!(
        frame(&out, FRAME_BYTES_MAX),
        Err(DecodeError::FrameTooLong { length: FRAME_BYTES_MAX + 1, limit: FRAME_BYTES_MAX })
    );
}

//! Lines, however they arrive, and what OpenTSDB answers to bad ones.

use proptest::prelude::*;

use super::super::put::{Epoch, Number, SeriesRules};
use super::*;

const LINE_BYTES_MAX: usize = 40;

/// The lines of bytes that arrive in pieces; `None` for one that is too long.
fn lines(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let (mut cutter, mut held, mut lines) = (LineCutter::new(LINE_BYTES_MAX), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let bytes = match cutter.next(&held) {
                Cut::Line(bytes) => {
                    lines.push(Some(without_end(&held[..bytes]).to_vec()));
                    bytes
                }
                Cut::TooLong(bytes) => {
                    lines.push(None);
                    bytes
                }
                Cut::Rest(bytes) => bytes,
                Cut::Incomplete => break,
            };
            assert!(bytes > 0, "a cut takes bytes");
            held.drain(..bytes);
        }
        assert!(held.len() <= LINE_BYTES_MAX, "what is kept is bounded");
    }
    lines
}

prop_compose! {
    fn text()(lines in prop::collection::vec(("[ -~\u{0}é]{0,60}", prop::bool::ANY), 0..12), ends in prop::bool::ANY) -> Vec<u8> {
        let mut text: String =
            lines.iter().map(|(line, carriage)| format!("{line}{}", if *carriage { "\r\n" } else { "\n" })).collect();
        if !ends {
            text.pop();
        }
        text.into_bytes()
    }
}

proptest! {
    #[test]
    fn a_cut_anywhere_gives_the_same_lines(text in text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let whole = lines(&[&text]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(&text[from..cut]);
            from = cut;
        }
        prop_assert_eq!(lines(&pieces), whole.clone());
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        prop_assert_eq!(lines(&bytes), whole);
    }

    #[test]
    fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = Command::of(&line);
        if let Ok(put) = PutLine::parse(&line) {
            let _ = (put.timed_value(Epoch::OpenTsdb), put.tags(&SeriesRules::default()));
        }
    }
}

#[test]
fn a_line_of_the_largest_length_is_one_and_a_longer_one_is_skipped() {
    let (largest, longer) = ([b'a'; LINE_BYTES_MAX], [b'b'; LINE_BYTES_MAX + 1]);
    let text = [&largest[..], b"\n", &longer, b"\nc\n"].concat();
    assert_eq!(lines(&[&text]), [Some(largest.to_vec()), None, Some(b"c".to_vec())]);
    let endless = vec![b'd'; 1_000_000];
    let pieces: Vec<&[u8]> = endless.chunks(7).chain([&b"\ne\r\n"[..]]).collect();
    assert_eq!(lines(&pieces), [None, Some(b"e".to_vec())]);
}

#[test]
fn commands_are_told_apart_by_their_first_word() {
    assert_eq!(Command::of(b"put a 1 2 b=c\n"), Command::Put);
    assert_eq!(Command::of(b"put\r\n"), Command::Put);
    assert_eq!(Command::of(b"version\r\n"), Command::Version);
    assert_eq!(Command::of(b"stats all"), Command::Stats);
    assert_eq!(Command::of(b"diediedie\n"), Command::Absent("diediedie"));
    assert_eq!(Command::of(b"rollup 1h-sum m 1 2 a=b\n"), Command::Absent("rollup"));
    assert_eq!(Command::of(b"putt a\n"), Command::Unknown("putt".into()));
    assert_eq!(Command::of(b"\n"), Command::Unknown("".into()));
    assert!(matches!(Command::of(&[b'x'; 10_000]), Command::Unknown(name) if name.len() < 1_000));
    let auth = Auth { user: "ann", password: "secret" };
    assert_eq!(Command::of(b"auth basic ann secret\r\n"), Command::Auth(Ok(auth)));
    assert_eq!(Command::of(b"auth hmacsha256 a:b:c:d\n"), Command::Auth(Err(AuthError::Signature)));
    for form in [&b"auth\n"[..], b"auth basic ann\n", b"auth basic a b c\n", b"auth basic \xff x\n"] {
        assert_eq!(Command::of(form), Command::Auth(Err(AuthError::Form)));
    }
}

type Point<'a> = (i64, Number, Vec<(&'a str, &'a str)>);

fn point(line: &str) -> Result<Point<'_>, String> {
    let put = PutLine::parse(line.as_bytes()).map_err(|refusal| refusal.to_string())?;
    let (time, value) = put.timed_value(Epoch::OpenTsdb).map_err(|refusal| refusal.to_string())?;
    let tags = put.tags(&SeriesRules::default()).map_err(|refusal| refusal.to_string())?;
    Ok((time, value, tags))
}

#[test]
fn a_line_has_time_value_and_tags() {
    let second = 1_700_000_000_000_000;
    let expected = (second, Number::I64(42), vec![("host", "a"), ("dc", "b")]);
    assert_eq!(point("put sys.cpu 1700000000 42 host=a dc=b"), Ok(expected));
    let expected = (second + 250_000, Number::F64(-1.5), vec![("host", "a")]);
    assert_eq!(point("put m 1700000000250 -1.5 host=a  host=a \r\n"), Ok(expected.clone()));
    assert_eq!(point("put m 1700000000.250 -15e-1 host=a\n"), Ok(expected));
    let put = PutLine::parse(b"put m 1 2 b=1 a=2\n").unwrap();
    assert_eq!((put.metric, put.tags_text()), ("m", "b=1 a=2"));
}

#[test]
fn bad_lines_are_refused_in_opentsdbs_words() {
    let refused = |line| point(line).unwrap_err();
    let lines = [
        ("put", "illegal argument: not enough arguments (need least 4, got 0)"),
        ("put m 1 2", "illegal argument: not enough arguments (need least 4, got 3)"),
        ("put  1 2 a=b", "illegal argument: empty metric name"),
        ("put m 0 2 a=b", "illegal argument: invalid timestamp: 0"),
        ("put m -5 2 a=b", "illegal argument: invalid timestamp: -5"),
        ("put m now 2 a=b", "invalid value: Invalid character 'n' in now"),
        ("put m 1.x 2 a=b", "invalid value: For input string: \"1.x\""),
        ("put m 1  a=b", "illegal argument: empty value"),
        ("put m 1 NaN a=b", "invalid value: Invalid character 'N' in NaN"),
        ("put m 1 - a=b", "invalid value: Just a sign, no value: -"),
        ("put m 1 9223372036854775808 a=b", "invalid value: Overflow in 9223372036854775808"),
        ("put m 1 12345678901234567890 a=b", "invalid value: Value too long: 12345678901234567890"),
        ("put m 1 1.5.5 a=b", "invalid value: For input string: \"1.5.5\""),
        ("put m 1 1e400 a=b", "illegal argument: value is NaN or Infinite: Infinity"),
        ("put m 1 2 ", "illegal argument: Missing tags"),
        ("put m 1 2 a", "illegal argument: invalid tag: a"),
        ("put m 1 2 a=b=c", "illegal argument: invalid tag: a=b=c"),
        ("put m 1 2 =b", "illegal argument: invalid tag: =b"),
        ("put m 1 2 a=b a=c", "illegal argument: duplicate tag: a=c, tags={a=b}"),
        ("put m{ 1 2 a=b", "illegal argument: Invalid metric name (\"m{\"): illegal character: {"),
    ];
    for (line, expected) in lines {
        assert_eq!(refused(line), expected, "{line}");
    }
    assert!(
        refused("put m 1700000000000000 2 a=b")
            .starts_with("illegal argument: bad timestamp=1700000000000000")
    );
    let many: String = (0..9).map(|n| format!(" t{n}=v")).collect();
    let refusal = refused(&format!("put m 1 2{many}"));
    assert!(refusal.starts_with("illegal argument: Too many tags: 9 maximum allowed: 8"), "{refusal}");
    let refusal = PutLine::parse(b"put m 1 2 a=\xff").unwrap_err().to_string();
    assert_eq!(refusal, "illegal argument: the line is not UTF-8 at byte 12");
}

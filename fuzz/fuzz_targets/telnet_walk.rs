//! OpenTSDB's line protocol: the same lines wherever the bytes are cut, and a point that is taken can be written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::opentsdb::put::{Epoch, SeriesRules};
use wire::opentsdb::telnet::{Command, Cut, LineCutter, PutLine, without_end};

/// Short, so that the fuzzer finds lines that are too long.
const LINE_BYTES_MAX: usize = 200;

fuzz_target!(|input: &[u8]| {
    let Some((piece, text)) = input.split_first() else { return };
    let whole = lines(&[text]);
    let pieces: Vec<&[u8]> = text.chunks(usize::from(*piece).max(1)).collect();
    assert_eq!(lines(&pieces), whole);
    for line in whole.into_iter().flatten() {
        if Command::of(&line) == Command::Put {
            check_point(&line);
        }
    }
});

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

fn check_point(line: &[u8]) {
    let put = match PutLine::parse(line) {
        Ok(put) => put,
        Err(refusal) => return assert!(!refusal.to_string().is_empty()),
    };
    let rules = SeriesRules::default();
    let (Ok(timed_value), Ok(tags)) = (put.timed_value(Epoch::OpenTsdb), put.tags(&rules)) else { return };
    assert!(!tags.is_empty() && tags.len() <= rules.tags_max, "{tags:?}");
    let metric = put.metric;
    let words: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = std::str::from_utf8(line).expect("a point is UTF-8");
    let numbers: Vec<&str> = text.split(' ').skip(2).take(2).collect();
    let again = format!("put {metric} {} {}\n", numbers.join(" "), words.join(" "));
    let again = PutLine::parse(again.as_bytes()).expect("it was written by us");
    assert_eq!((again.metric, again.timed_value(Epoch::OpenTsdb)), (metric, Ok(timed_value)));
    assert_eq!(again.tags(&rules), Ok(tags));
}

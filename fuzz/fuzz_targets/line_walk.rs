//! Line protocol: any body is walked once from its beginning to its end, and each good line means the same when it is read alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::line::{Lines, line_number, next_line};

fuzz_target!(|body: &[u8]| {
    let (mut lines, mut end) = (Lines::new(body), 0);
    while let Some(line) = lines.next_line() {
        let (at, bytes) = match line {
            Ok(line) => {
                let mut alone = line.text;
                let again = next_line(&mut alone).expect("a line").expect("a good line");
                assert_eq!((again.measurement, again.time), (line.series.measurement(), line.time));
                assert_eq!(again.tags, line.series.tags().collect::<Vec<_>>());
                assert_eq!(again.fields, line.fields);
                assert!(!line.fields.is_empty() && alone.is_empty());
                (line.at, line.text.as_bytes())
            }
            Err(bad) => {
                assert!(bad.error.at <= bad.bytes.len(), "{bad:?}");
                (bad.at, bad.bytes)
            }
        };
        assert!(at >= end && &body[at..at + bytes.len()] == bytes);
        assert!(line_number(body, at) > line_number(body, end) || end == 0 || at == end);
        end = at + bytes.len();
    }
});

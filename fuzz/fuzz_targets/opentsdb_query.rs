//! The texts of OpenTSDB's queries: refused with a message, or what was read has a meaning.
//!
//! The first byte of the input chooses the grammar.

#![no_main]

use libfuzzer_sys::fuzz_target;
use timeseries::opentsdb::{
    Downsample, Filter, LookupText, duration_millis, instant_millis, metric_and_tags, sub_query, tsuid,
    tsuid_parts, tsuid_query, zone,
};

/// 2023-11-14 22:13:20 UTC.
const NOW_MILLIS: i64 = 1_700_000_000_000;

fuzz_target!(|input: &[u8]| {
    let Some((&kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let utc = zone("UTC").expect("a zone");
    let refused = match kind % 8 {
        0 => sub_query(text).map(drop).err(),
        1 => tsuid_query(text).map(drop).err(),
        2 => metric_and_tags(text).map(|(metric, tags)| series(&metric, tags)).err(),
        3 => LookupText::parse(text).map(drop).err(),
        4 => duration_millis(text).map(drop).err(),
        5 => {
            let place = zone(text.split(' ').next().unwrap_or_default()).unwrap_or(utc);
            instant_millis(text, place, NOW_MILLIS).map(drop).err()
        }
        6 => Downsample::parse(text, utc, kind > 127).map(drop).err(),
        _ => {
            let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
            Filter::new("host", name, rest, false).and(Filter::of_tag("host", text, true)).map(drop).err()
        }
    };
    if let Some(error) = refused {
        assert!(!error.to_string().is_empty());
    }
    if let Ok((metric, tags)) = tsuid_parts(text) {
        assert_eq!(tsuid_parts(&tsuid(&metric, &tags)).ok(), Some((metric, tags)));
    }
});

/// A series is found again in its TSUID.
fn series(metric: &str, tags: Vec<(String, String)>) {
    assert_eq!(tsuid_parts(&tsuid(metric, &tags)).ok(), Some((metric.to_owned(), tags)));
}

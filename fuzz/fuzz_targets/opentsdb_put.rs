//! Data points of OpenTSDB in JSON: refused with a place in the body, or each point has the same meaning when it is read alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::opentsdb::put::{Charset, DataPoint, Epoch, Points, SeriesRules, SyntaxError};

fuzz_target!(|body: &[u8]| {
    if let Err(error) = walk(body) {
        assert!(error.at <= body.len(), "{error}");
    }
});

fn walk(body: &[u8]) -> Result<(), SyntaxError> {
    let mut points = Points::new(body)?;
    while let Some(point) = points.next_point()? {
        check(point);
        if point.text.starts_with('{') {
            let mut alone = Points::new(point.text.as_bytes()).expect("the text of a point is an object");
            assert_eq!(alone.next_point(), Ok(Some(point)));
            assert_eq!(alone.next_point(), Ok(None));
        }
    }
    assert_eq!(points.next_point(), Ok(None), "the end stays");
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice::<serde::de::IgnoredAny>(body).expect("what was read to its end is JSON");
    Ok(())
}

fn check(point: &DataPoint<'_>) {
    for epoch in [Epoch::OpenTsdb, Epoch::HiTsdb] {
        for refusal in [point.timed_value(epoch).err(), point.fields_time(epoch).err()].into_iter().flatten()
        {
            assert!(!refusal.to_string().is_empty());
        }
    }
    let rules = SeriesRules { charset: Charset::hitsdb("ä "), ..SeriesRules::default() };
    for rules in [SeriesRules::default(), rules] {
        if point.check_series(&rules).is_ok() {
            assert!(!point.tags.is_empty() && point.tags.len() <= rules.tags_max);
        }
    }
    let (metric, tags) = point.series_text();
    assert!(point.text.contains(metric) && point.text.contains(tags));
}

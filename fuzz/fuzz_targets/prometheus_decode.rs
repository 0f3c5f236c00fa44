//! Remote write: refused, or series whose labels and samples can be written again and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::prometheus::{WriteRequest, end_series, push_label, push_sample, start_series, unpack};

fuzz_target!(|input: &[u8]| {
    let _ = unpack(input, 64 * 1024);
    let mut out = Vec::new();
    let mut count = 0;
    for series in WriteRequest::new(input) {
        let Ok(series) = series else { return };
        let mark = start_series(&mut out);
        for label in series.labels() {
            let (name, value) = label.expect("it was read before");
            push_label(&mut out, name, value);
        }
        for sample in series.samples() {
            push_sample(&mut out, sample.value, sample.ms);
        }
        end_series(&mut out, mark);
        count += 1;
    }
    let again: Vec<_> = WriteRequest::new(&out).map(|series| series.expect("it was written by us")).collect();
    assert_eq!(again.len(), count);
    for (one, other) in again.iter().zip(WriteRequest::new(input).flatten()) {
        let (one, other): (Vec<_>, Vec<_>) =
            (one.labels().flatten().collect(), other.labels().flatten().collect());
        assert_eq!(one, other);
    }
});

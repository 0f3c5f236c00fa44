use proptest::prelude::*;

use super::*;

type Series = (Vec<(String, String)>, Vec<(u64, i64)>);

fn encode(request: &[Series]) -> Vec<u8> {
    let mut out = Vec::new();
    for (labels, samples) in request {
        let mark = start_series(&mut out);
        for (name, value) in labels {
            push_label(&mut out, name, value);
        }
        for (bits, ms) in samples {
            push_sample(&mut out, f64::from_bits(*bits), *ms);
        }
        end_series(&mut out, mark);
    }
    out
}

fn decode(bytes: &[u8]) -> Result<Vec<Series>, PrometheusError> {
    let series = |series: TimeSeries<'_>| {
        let labels =
            series.labels().map(|label| label.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let samples = series.samples().map(|sample| (sample.value.to_bits(), sample.ms));
        Ok((labels.collect::<Result<_, _>>()?, samples.collect()))
    };
    WriteRequest::new(bytes).map(|read| read.and_then(series)).collect()
}

/// Bytes as text in hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

#[test]
fn a_request_has_labels_and_samples_and_the_rest_is_skipped() {
    // A metadata message, and a series with two labels, two samples (one without a value), an exemplar, a histogram and an
    // unknown field.
    let message = bytes(
        "1a 04 08 01 12 00
         0a 3a  0a 0e 0a 08 5f5f6e616d655f5f 12 02 7570
                0a 08 0a 03 6a6f62 12 01 61
                12 0c 09 000000000000f03f 10 e807
                12 02 10 05
                1a 00 22 02 08 01 78 07",
    );
    let mut fixed = message.clone();
    // The length of the series.
    fixed[7] = (message.len() - 8) as u8;
    let read = decode(&fixed).unwrap();
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        read,
        [(vec![label("__name__", "up"), label("job", "a")], vec![(1.0_f64.to_bits(), 1_000), (0, 5)])]
    );
    let series = WriteRequest::new(&fixed).next().unwrap().unwrap();
    assert_eq!((series.histograms, series.raw().len()), (1, 26));
}

#[test]
fn labels_after_samples_are_labels_too() {
    let mut out = Vec::new();
    let mark = start_series(&mut out);
    push_label(&mut out, "a", "1");
    push_sample(&mut out, 2.0, 3);
    push_label(&mut out, "b", "2");
    end_series(&mut out, mark);
    let read = decode(&out).unwrap();
    assert_eq!(read[0].0.len(), 2);
    let series = WriteRequest::new(&out).next().unwrap().unwrap();
    let mut sorted = Vec::new();
    push_label(&mut sorted, "a", "1");
    push_label(&mut sorted, "b", "2");
    assert_eq!(series.raw(), sorted);
}

#[test]
fn malformed_requests_name_the_offset() {
    for (hex, at, reason) in [
        ("0a", 1, "it ends within a number"),
        ("0a 05 00", 2, "it ends within a field"),
        ("0a ffffffffffffffffff7f", 11, "it ends within a field"),
        ("0a ffffffffffffffffffff01", 11, "a number of more than 10 bytes"),
        ("0b", 1, "a field of unknown type"),
        ("08 01", 2, "a series that is not a message"),
        ("02 00", 2, "a field without a number"),
        ("0a 02 08 01", 4, "a label or sample that is not a message"),
        ("0a 05 0a 03 0a 01 ff", 5, "a label that is not UTF-8"),
        ("0a 04 12 02 08 01", 6, "a sample whose value or time has another type"),
    ] {
        let error = decode(&bytes(hex)).unwrap_err();
        assert_eq!(error, PrometheusError::Message { at, reason }, "{hex}");
    }
}

#[test]
fn the_length_of_a_block_is_checked_before_memory_is_taken() {
    let packed = pack(&[7; 1_000]).unwrap();
    assert_eq!(unpack(&packed, 1_000).unwrap(), [7; 1_000]);
    assert_eq!(unpack(&packed, 999), Err(PrometheusError::TooLong { bytes: 1_000, limit: 999 }));
    // A block of six bytes that names four gigabytes.
    let error = unpack(&bytes("ff ff ff ff 0f 00"), REQUEST_BYTES_MAX).unwrap_err();
    assert_eq!(error, PrometheusError::TooLong { bytes: u32::MAX as usize, limit: REQUEST_BYTES_MAX });
    assert!(matches!(unpack(b"not snappy", 1_000), Err(PrometheusError::Snappy(_))));
}

#[test]
fn only_the_mark_of_prometheus_is_a_stale_marker() {
    assert!(is_stale_marker(f64::from_bits(0x7ff0_0000_0000_0002)));
    assert!(!is_stale_marker(f64::NAN) && !is_stale_marker(f64::INFINITY) && !is_stale_marker(0.0));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        request in proptest::collection::vec(
            (
                proptest::collection::vec((".{0,20}", ".{0,200}"), 0..5),
                proptest::collection::vec((any::<u64>(), any::<i64>()), 0..5),
            ),
            0..5,
        ),
    ) {
        let bytes = encode(&request);
        prop_assert_eq!(decode(&bytes).unwrap(), request);
        prop_assert_eq!(unpack(&pack(&bytes).unwrap(), bytes.len()).unwrap(), bytes);
    }

    #[test]
    fn any_bytes_give_series_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = unpack(&bytes, 1 << 16);
    }
}

use super::*;

const NOW_MS: i64 = 1_800_000_000_000;

fn read(payload: &str) -> Result<Vec<String>, PayloadError> {
    read_bytes(payload.as_bytes())
}

/// Rows as text: `offset-from-now-in-ms key=value ...`.
fn read_bytes(payload: &[u8]) -> Result<Vec<String>, PayloadError> {
    let mut batch = Batch::new();
    let received = Timestamp::from_millis(NOW_MS).unwrap();
    let given = std::cell::Cell::new(received);
    let next = || given.replace(given.get().saturating_add_micros(1_000));
    let receipt = Receipt { now: received, next: &next };
    let result = decode(payload, SeriesId(7), receipt, &IngestLimits::default(), &mut batch);
    if result.is_err() {
        assert_eq!(
            (batch.len(), batch.points(), batch.text_bytes()),
            (0, 0, 0),
            "a refused payload leaves nothing"
        );
    }
    result.map(|()| {
        let row = |row: model::RowRef<'_>| {
            let fields = row.fields().map(|field| format!(" {}={:?}", field.key, field.value));
            format!("{}", row.ts().millis() - NOW_MS) + &fields.collect::<String>()
        };
        batch.rows().map(row).collect()
    })
}

#[test]
fn the_four_forms_are_parsed() {
    assert_eq!(read(r#"{"a":1,"b":2.5}"#).unwrap(), ["0 a=I64(1) b=F64(2.5)"]);
    assert_eq!(read(r#"[{"a":1},{"b":true}]"#).unwrap(), ["0 a=I64(1)", "1 b=Bool(true)"]);
    assert_eq!(read(r#"{"ts":1799999999000,"values":{"a":"x"}}"#).unwrap(), [r#"-1000 a=String("x")"#]);
    let both = r#"[{"ts":1799999999000,"values":{"a":1}},{"values":{"a":2},"ts":"1800000000000"}]"#;
    assert_eq!(read(both).unwrap(), ["-1000 a=I64(1)", "0 a=I64(2)"]);
}

#[test]
fn every_row_without_a_time_has_a_time_of_receipt_of_its_own() {
    let rows =
        read(r#"[{"rssi":-50},{},{"ts":1799999999000,"values":{"rssi":-55}},{"rssi":-61},{"rssi":-72}]"#);
    let expected = ["0 rssi=I64(-50)", "-1000 rssi=I64(-55)", "1 rssi=I64(-61)", "2 rssi=I64(-72)"];
    assert_eq!(rows.unwrap(), expected);
}

#[test]
fn times_may_be_floats_and_texts() {
    for ts in ["1799999999000.0", "1.799999999E12", "\"1799999999000.0\"", "17999999990e2", "'1799999999000'"]
    {
        let rows = read(&format!(r#"{{"ts":{ts},"values":{{"a":1}}}}"#));
        assert_eq!(rows.unwrap(), ["-1000 a=I64(1)"], "{ts}");
    }
    let mut batch = Batch::new();
    let now = Timestamp::from_millis(NOW_MS).unwrap();
    let payload = br#"{"ts":1799999999000.4567,"values":{"a":1}}"#;
    let receipt = Receipt { now, next: &|| now };
    decode(payload, SeriesId(7), receipt, &IngestLimits::default(), &mut batch).unwrap();
    assert_eq!(batch.row(0).ts().micros(), 1_799_999_999_000_456);
}

#[test]
fn relaxed_json_equals_the_strict_form() {
    for (relaxed, strict) in [
        ("{temperature:25}", r#"{"temperature":25}"#),
        ("{'a':1.50,'b':'x',c:[1,{d:null}],e:True}", r#"{"a":1.50,"b":"x","c":[1,{"d":null}],"e":true}"#),
        ("{ts:1.799999999E12,values:{a:1;b=2}}", r#"{"ts":1799999999000,"values":{"a":1,"b":2}}"#),
        ("[{a:05},{a:+5},{b:ok}] // sent by a PLC", r#"[{"a":5},{"a":5},{"b":"ok"}]"#),
        ("\u{feff}{\"a\":1}", r#"{"a":1}"#),
        ("\u{feff}{a:1}", r#"{"a":1}"#),
    ] {
        assert_eq!(read(relaxed).unwrap(), read(strict).unwrap(), "{relaxed}");
    }
}

#[test]
fn relaxed_json_has_the_limits_of_json() {
    for (payload, part) in [
        (format!("{{a:{}1{}}}", "[".repeat(40), "]".repeat(40)), "nesting"),
        (
            format!("{{a:{}1{}}}", "[".repeat(33), "]".repeat(33)),
            "nesting of a JSON value is 33, the limit is 32",
        ),
        (format!("{{a:'{}'}}", "x".repeat(65_536)), "length of a value in bytes is 65536"),
        (format!("[{}]", vec!["{a:1}"; 10_001].join(",")), "rows in one message is 10001"),
        ("{'':1}".into(), "empty"),
        ("{ts:1,ts:2,values:{}}".into(), "twice"),
    ] {
        let error = read(&payload).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(read(&format!("{{a:{}{}}}", "[".repeat(32), "]".repeat(32))).unwrap().len(), 1);
}

#[test]
fn ts_and_values_alone_are_keys_like_any_other() {
    assert_eq!(read(r#"{"ts":5}"#).unwrap(), ["0 ts=I64(5)"]);
    assert_eq!(read(r#"{"values":{"a":1}}"#).unwrap(), [r#"0 values=Json("{\"a\":1}")"#]);
    assert_eq!(read(r#"{"ts":5,"values":7}"#).unwrap(), ["0 ts=I64(5) values=I64(7)"]);
}

#[test]
fn keys_beside_ts_and_values_are_kept() {
    let mixed = r#"{"ts":1799999999000,"values":{"a":1},"site":"x"}"#;
    assert_eq!(read(mixed).unwrap(), [r#"-1000 site=String("x") a=I64(1)"#]);
}

#[test]
fn values_keep_their_type_and_every_digit() {
    assert_eq!(read(r#"{"a":-9223372036854775808}"#).unwrap(), ["0 a=I64(-9223372036854775808)"]);
    assert_eq!(read(r#"{"a":9223372036854775808}"#).unwrap(), [r#"0 a=Json("9223372036854775808")"#]);
    assert_eq!(read(r#"{"a":1e400}"#).unwrap(), [r#"0 a=Json("1e400")"#]);
    assert_eq!(read(r#"{"a":1.0}"#).unwrap(), ["0 a=F64(1.0)"]);
    assert_eq!(read(r#"{"a":[1, {"b":"]"}]}"#).unwrap(), [r#"0 a=Json("[1, {\"b\":\"]\"}]")"#]);
    assert_eq!(read(r#"{"a":"q\"\u00e9","é\n":1}"#).unwrap_err().label(), "key");
    assert_eq!(read(r#"{"a":"q\"\u00e9","\u00e9":1}"#).unwrap(), [r#"0 a=String("q\"é") é=I64(1)"#]);
}

#[test]
fn null_is_not_a_value() {
    assert_eq!(read(r#"{"a":null,"b":1}"#).unwrap(), ["0 b=I64(1)"]);
    assert!(read(r#"{"a":null}"#).unwrap().is_empty());
    assert!(read("{}").unwrap().is_empty());
    assert!(read("[]").unwrap().is_empty());
}

#[test]
fn invalid_telemetry_is_refused_with_its_position() {
    for (payload, part) in [
        ("", "ends too early"),
        ("{", "ends too early"),
        (r#"{"a":NaN}"#, "NaN is not a JSON number"),
        (r#"{"a":Infinity}"#, "line 1 column 6"),
        (r#"{"a":1}x"#, "trailing"),
        (r#"{"a":1,,}"#, "expected a name, found `,` at line 1 column 8"),
        ("[1]", "an object"),
        ("[[]]", "an object"),
        ("7", "found a number"),
        ("-7", "found a number"),
        ("7.5", "found a number"),
        ("true", "found a boolean"),
        ("null", "found null"),
        (r#""a""#, "found a string"),
        (r#"{"":1}"#, "empty"),
        (r#"{"ts":true,"values":{"a":1}}"#, "ts is true; it must be a number"),
        (r#"{"ts":"today","values":{"a":1}}"#, "must be a number"),
        (r#"{"ts":1.5,"values":{"a":1}}"#, "oldest"),
        (r#"{"ts":1800000000000,"values":{"":1}}"#, "empty"),
        (r#"{"ts":1800000000000,"values":{"a":}}"#, "expected a value, found `}`"),
    ] {
        let error = read(payload).unwrap_err().to_string();
        assert!(error.contains(part), "{payload}: {error}");
    }
    assert!(read_bytes(b"{\"a\":\"\xff\"}").unwrap_err().to_string().contains("not UTF-8 at byte 6"));
}

#[test]
fn one_bad_row_refuses_the_whole_payload() {
    assert!(read(r#"[{"a":1},{"b":2},{"":3}]"#).is_err());
}

#[test]
fn implausible_times_are_refused_with_a_hint() {
    for (ts, hint) in [
        (1_800_000_000_i64, "seconds"),
        (1_800_000_000_000_000, "microseconds"),
        (1_800_000_000_000_000_000, "nanoseconds"),
        (-1, "oldest"),
        (i64::MIN, "too old"),
        (i64::MAX, "too far in the future"),
        (i64::MAX, "ahead"),
        (NOW_MS + 8 * 86_400_000, "ahead"),
        (31_535_999_999, "oldest"),
    ] {
        let error = read(&format!(r#"{{"ts":{ts},"values":{{"a":1}}}}"#)).unwrap_err();
        assert!(error.to_string().contains(hint) && error.label() == "timestamp", "{ts}: {error}");
    }
    for ts in [31_536_000_000_i64, NOW_MS + 7 * 86_400_000] {
        assert_eq!(read(&format!(r#"{{"ts":{ts},"values":{{"a":1}}}}"#)).unwrap().len(), 1, "{ts}");
    }
}

#[test]
fn deep_and_large_payloads_exceed_a_named_limit() {
    let nested = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(
        read(&nested).unwrap_err().to_string().contains("nesting of a JSON value is 100000, the limit is 32")
    );
    let bare = "[".repeat(500_000);
    assert!(read(&bare).is_err());
    let wide = format!("{{{}}}", (0..10_001).map(|n| format!(r#""k{n}":1"#)).collect::<Vec<_>>().join(","));
    assert!(read(&wide).unwrap_err().to_string().contains("keys in one row is 10001, the limit is 10000"));
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert!(read(&long).unwrap_err().to_string().contains("1048576, the limit is 65535"));
    let rows = format!("[{}]", vec![r#"{"a":1}"#; 10_001].join(","));
    assert!(read(&rows).unwrap_err().to_string().contains("rows in one message is 10001"));
}

#[test]
fn a_key_named_like_a_tag_is_an_ordinary_key() {
    assert_eq!(read(r#"{"device":"x","table":1}"#).unwrap(), [r#"0 device=String("x") table=I64(1)"#]);
}

#[test]
fn a_second_ts_or_values_is_refused_because_it_would_hide_the_first() {
    let (ts, values) = (r#""ts":1799999999000"#, r#""values":{"a":1}"#);
    for payload in [format!("{{{ts},{ts},{values}}}"), format!("{{{ts},{values},{values}}}")] {
        assert!(read(&payload).unwrap_err().to_string().contains("twice"), "{payload}");
    }
}

#[test]
fn rows_older_than_the_time_to_live_are_too_old() {
    let day = std::time::Duration::from_secs(86_400);
    let limits = IngestLimits { ttl: Some(day), ..IngestLimits::default() };
    let read = |ts: i64, limits: &IngestLimits| {
        let now = Timestamp::from_millis(NOW_MS).unwrap();
        let receipt = Receipt { now, next: &|| now };
        let payload = format!(r#"{{"ts":{ts},"values":{{"a":1}}}}"#);
        decode(payload.as_bytes(), SeriesId(7), receipt, limits, &mut Batch::new())
    };
    assert_eq!(read(NOW_MS - 86_400_000, &limits), Ok(()));
    let refused = read(NOW_MS - 86_400_001, &limits).unwrap_err().to_string();
    assert!(refused.contains("too old") && refused.contains("keeps rows for 1d"), "{refused}");
    // A time to live longer than the oldest accepted time changes nothing.
    let limits = IngestLimits { ttl: Some(100_000 * day), ..limits };
    let refused = read(31_535_999_999, &limits).unwrap_err().to_string();
    assert!(refused.ends_with("the oldest accepted time is 31536000000 ms"), "{refused}");
}

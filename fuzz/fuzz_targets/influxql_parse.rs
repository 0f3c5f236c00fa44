//! Statements of InfluxQL: refused with a message, or parsed, and another statement after them changes nothing.

#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use timeseries::influxql::limits::{QUERY_BYTES_MAX, STATEMENTS_MAX};
use timeseries::influxql::{Param, parse};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let params = HashMap::from([
        ("s".to_owned(), Param::Str("x'\"\\".to_owned())),
        ("n".to_owned(), Param::Num(-1.5)),
        ("r".to_owned(), Param::Regex("a.*".to_owned())),
        ("i".to_owned(), Param::Ident("cpu".to_owned())),
        ("d".to_owned(), Param::Duration("10s".to_owned())),
        ("b".to_owned(), Param::Bad("it has no value".to_owned())),
    ]);
    let statements = match parse(text, &params) {
        Ok(statements) => statements,
        Err(message) => return assert!(!message.is_empty()),
    };
    assert!(statements.len() <= STATEMENTS_MAX && text.len() <= QUERY_BYTES_MAX);
    // What follows a whole statement does not change it. A comment may have no end.
    if statements.len() < STATEMENTS_MAX && !text.contains("/*") {
        let more = parse(&format!("{text}\n;SHOW DATABASES"), &params).expect("a statement was added");
        assert_eq!(more.len(), statements.len() + 1);
        assert_eq!(format!("{:?}", &more[..statements.len()]), format!("{statements:?}"));
    }
});

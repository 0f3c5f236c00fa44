use proptest::prelude::*;
use serde_json::json;

use super::*;

/// An answer of 5.5 to two documents.
const BULK_5: &str = r#"{"took":30,"errors":false,"items":[
    {"index":{"_index":"geonames","_type":"doc","_id":"AVx1","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"created":true,"status":201}},
    {"index":{"_index":"geonames","_type":"doc","_id":"AVx2","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"created":true,"status":201}}]}"#;
/// The same of 8.
const BULK_8: &str = r#"{"errors":false,"took":7,"items":[
    {"index":{"_index":"geonames","_id":"x1","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":201}}]}"#;
/// An answer of OpenSearch in which one document was refused for its content and one for a full queue.
const BULK_ERRORS: &str = r#"{"took":3,"errors":true,"items":[
    {"index":{"_index":"i","_id":"a","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":2,"_primary_term":1,"status":201}},
    {"index":{"_index":"i","_id":"b","status":400,"error":{"type":"strict_dynamic_mapping_exception","reason":"mapping set to strict, dynamic introduction of [x] within [_doc] is not allowed"}}},
    {"index":{"_index":"i","_id":"c","status":429,"error":{"type":"es_rejected_execution_exception","reason":"rejected execution of \"bulk\""}}}]}"#;
const SEARCH_5: &str = r#"{"took":2,"timed_out":false,"_shards":{"total":5,"successful":5,"failed":0},"hits":{"total":3,"max_score":1.5,"hits":[
    {"_index":"geonames","_type":"doc","_id":"1","_score":1.5,"_source":{"name":"hits","total":99}},
    {"_index":"geonames","_type":"doc","_id":"2","_score":1.5,"_source":{"name":"\"hits\":["}}]}}"#;
const SEARCH_7: &str = r#"{"took":2,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":10000,"relation":"gte"},"max_score":null,"hits":[]},
    "aggregations":{"country_population":{"doc_count_error_upper_bound":12,"sum_other_doc_count":50,"buckets":[
        {"key":"US","doc_count":30,"sum_population":{"value":12.0}},{"key":"CN","doc_count":20,"sum_population":{"value":0.0}}]}}}"#;
const SCROLL_OPENSEARCH: &str = r#"{"_scroll_id":"FGluY2x1ZGVfY29udGV4dF91dWlk==","took":1,"timed_out":false,"terminated_early":false,"_shards":{"total":6,"successful":6,"skipped":0,"failed":0},
    "hits":{"total":{"value":7,"relation":"eq"},"max_score":null,"hits":[{"_index":"i","_id":"1","_score":null,"_source":{},"sort":[0]}]}}"#;

#[test]
fn stored_and_refused_documents_of_every_version_are_counted() {
    let stored = |stored| Ok(BulkAnswer { stored, ..BulkAnswer::default() });
    assert_eq!((bulk(BULK_5.as_bytes()), bulk(BULK_8.as_bytes())), (stored(2), stored(1)));
    let mixed = bulk(BULK_ERRORS.as_bytes()).unwrap();
    assert_eq!((mixed.stored, mixed.refused), (1, 2));
    let reason = mixed.reason.unwrap();
    assert!(
        reason.starts_with("document refused: status 400: strict_dynamic_mapping_exception: mapping set"),
        "{reason}"
    );
}

#[test]
fn a_bulk_answer_that_contradicts_itself_is_wrong() {
    for (text, wrong) in [
        (BULK_5.replace("\"status\":201", "\"status\":503"), "`errors` is false, but 2 items failed"),
        (BULK_8.replace("false", "true"), "`errors` is true, but no item failed"),
        (BULK_8.replace("\"status\":201", "\"state\":201"), "missing field `status`"),
        (BULK_8.replace("\"items\"", "\"things\""), "missing field `items`"),
        (BULK_8[..BULK_8.len() - 3].to_owned(), "no bulk answer"),
        ("<html>busy</html>".to_owned(), "no bulk answer"),
    ] {
        let error = bulk(text.as_bytes()).unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn hits_of_every_version_are_counted() {
    let five = SearchAnswer { total: 3, rows: 2, ..SearchAnswer::default() };
    assert_eq!(search(SEARCH_5.as_bytes()), Ok(five));
    let seven =
        SearchAnswer { total: 10_000, is_lower_bound: true, grouped: Some(100), ..SearchAnswer::default() };
    assert_eq!(search(SEARCH_7.as_bytes()), Ok(seven));
    let scroll_id = Some("FGluY2x1ZGVfY29udGV4dF91dWlk==".to_owned());
    let scroll = SearchAnswer { total: 7, rows: 1, scroll_id, ..SearchAnswer::default() };
    assert_eq!(search(SCROLL_OPENSEARCH.as_bytes()), Ok(scroll));
}

#[test]
fn partial_results_are_wrong() {
    for (text, wrong) in [
        (SEARCH_5.replace("\"timed_out\":false", "\"timed_out\":true"), "timed out"),
        (SEARCH_5.replace("\"failed\":0", "\"failed\":1"), "1 shards failed"),
        (SEARCH_7.replace("gte", "about"), "relation `about`"),
        (SEARCH_5.replace("\"total\":3", "\"total\":\"3\""), "a number of hits"),
        (SEARCH_5.replace("\"_shards\"", "\"shards\""), "missing field `_shards`"),
    ] {
        let error = search(text.as_bytes()).unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn a_refusal_names_status_and_reason() {
    let full = r#"{"error":{"root_cause":[],"type":"es_rejected_execution_exception","reason":"rejected"},"status":429}"#;
    assert_eq!(refusal(429, full.as_bytes()), "status 429: es_rejected_execution_exception: rejected");
    assert_eq!(refusal(400, br#"{"error":"no handler found"}"#), "status 400: no handler found");
    assert_eq!(refusal(413, b""), "status 413");
    let long = json!({ "error": { "type": "t", "reason": "ü".repeat(1_000) } }).to_string();
    assert_eq!(refusal(500, long.as_bytes()).chars().count(), ERROR_CHARS_MAX);
}

/// Any JSON document, among them texts that look like parts of an answer.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(Value::from("\"errors\":true,\"status\":500}]")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{6,9}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_bulk_answer_is_counted_as_its_tree_is(
        statuses in prop::collection::vec(prop_oneof![Just(200_u16), Just(201), 300_u16..600], 0..8),
        more in any_value(),
        indent in any::<bool>(),
    ) {
        let item = |status: &u16| json!({ "index": { "_id": more, "more": more, "status": status, "error": { "type": "t", "reason": more } } });
        let items: Vec<Value> = statuses.iter().map(item).collect();
        let refused = statuses.iter().filter(|status| **status >= 300).count();
        let tree = json!({ "took": 1, "extra": more, "errors": refused > 0, "items": items });
        let text = if indent { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) }.unwrap();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let is_stored = |item: &&Value| item["index"]["status"].as_u64().unwrap() < 300;
        let stored = parsed["items"].as_array().unwrap().iter().filter(is_stored).count();
        let answer = bulk(text.as_bytes()).unwrap();
        prop_assert_eq!((answer.stored as usize, answer.refused as usize), (stored, refused));
        prop_assert_eq!(answer.reason.is_some(), refused > 0);
    }

    #[test]
    fn a_search_answer_is_read_as_its_tree_is(
        total in any::<u64>(),
        is_object in any::<bool>(),
        rows in prop::collection::vec(any_value(), 0..6),
        more in any_value(),
        buckets in prop::collection::vec(0_u64..1_000_000, 0..5),
    ) {
        let written = if is_object { json!({ "value": total, "relation": "eq", "more": more }) } else { json!(total) };
        let groups: Vec<Value> = buckets.iter().map(|count| json!({ "key": more, "doc_count": count })).collect();
        let tree = json!({
            "extra": more, "timed_out": false, "_shards": { "failed": 0, "failures": more },
            "hits": { "total": written, "max_score": more, "hits": rows },
            "aggregations": { "country_population": { "sum_other_doc_count": 5, "buckets": groups } },
        });
        let answer = search(tree.to_string().as_bytes()).unwrap();
        prop_assert_eq!((answer.total, answer.rows as usize, answer.is_lower_bound), (total, rows.len(), false));
        prop_assert_eq!(answer.grouped, Some(5 + buckets.iter().sum::<u64>()));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = (bulk(text.as_bytes()), search(text.as_bytes()), refusal(500, text.as_bytes()));
    }
}

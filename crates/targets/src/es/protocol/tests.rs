use std::collections::BTreeMap;

use serde_json::Value;

use super::super::corpus::CorpusName;
use super::*;

const DUE: DueTime = DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 };

fn es(corpus: &Corpus, operation: Operation, connections: u32) -> Es<'_> {
    Es {
        corpus,
        documents: 25,
        bulk_size: 10,
        head: RequestHead { host: "h:9200".to_owned(), login: None },
        bulk_path: "/i/_bulk".to_owned(),
        operations: vec![operation],
        choice: OperationChoice::new(&[(connections, vec![(0, 1)])]).unwrap(),
        requests: vec![(connections, None)],
        seed: 1,
    }
}

fn corpus() -> Corpus {
    Corpus::new(CorpusName::Geonames, 1)
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn items(statuses: &[u16]) -> String {
    let item =
        |status: &u16| format!(r#"{{"index":{{"status":{status},"error":{{"type":"t","reason":"r"}}}}}}"#);
    let errors = statuses.iter().any(|status| *status >= 300);
    let items: Vec<String> = statuses.iter().map(item).collect();
    format!(r#"{{"took":1,"errors":{errors},"items":[{}]}}"#, items.join(","))
}

/// Gives an answer to the session and returns the failures of completed operations, and what was sent on.
fn receive(es: &Es<'_>, session: &mut Session, bytes: &[u8]) -> (Vec<Option<String>>, String, Received) {
    let (mut out, mut done) = (Vec::new(), Vec::new());
    let received = es.receive(session, bytes, &mut out, &mut |completion| {
        done.push(match completion.status {
            AnswerStatus::Failed(text) => Some(text.to_owned()),
            _ => None,
        });
    });
    (done, String::from_utf8(out).unwrap(), received.unwrap())
}

fn start(es: &Es<'_>, session: &mut Session) -> Option<String> {
    let mut out = Vec::new();
    es.start(session, DUE, &mut out).map(|_| String::from_utf8(out).unwrap())
}

#[test]
fn connections_send_every_document_once_in_requests_of_the_given_size() {
    let corpus = corpus();
    let es = es(&corpus, Operation::Bulk, 2);
    let mut found: BTreeMap<u64, u32> = BTreeMap::new();
    let mut sizes = Vec::new();
    for number in 0..2 {
        let mut session = es.session(number);
        while let Some(request) = start(&es, &mut session) {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("POST /i/_bulk HTTP/1.1\r\nHost: h:9200\r\n"), "{head}");
            assert!(head.contains(&format!("Content-Length: {}", body.len())) && body.ends_with('\n'));
            let lines: Vec<&str> = body.lines().collect();
            for pair in lines.chunks(2) {
                assert_eq!(pair[0], r#"{"index":{}}"#);
                let document: Value = serde_json::from_str(pair[1]).unwrap();
                *found.entry(document["geonameid"].as_u64().unwrap()).or_default() += 1;
            }
            sizes.push(lines.len() / 2);
            receive(&es, &mut session, &answer("200 OK", &items(&vec![201; lines.len() / 2])));
        }
        assert_eq!(session.tally.sent, session.tally.stored);
    }
    assert_eq!(sizes, [10, 2, 10, 3]);
    assert!(found.len() == 25 && found.values().all(|times| *times == 1), "{found:?}");
}

#[test]
fn an_answer_may_arrive_in_any_pieces() {
    let corpus = corpus();
    let es = es(&corpus, Operation::Bulk, 1);
    let whole = answer("200 OK", &items(&[201; 10]));
    for piece in 1..whole.len() {
        let mut session = es.session(0);
        start(&es, &mut session).unwrap();
        let (mut inbound, mut done) = (Vec::new(), Vec::new());
        for part in whole.chunks(piece) {
            inbound.extend_from_slice(part);
            let (more, _, received) = receive(&es, &mut session, &inbound);
            inbound.drain(..received.used);
            done.extend(more);
        }
        assert_eq!((done, session.tally.stored), (vec![None], 10), "{piece}");
    }
}

#[test]
fn refused_documents_and_requests_fail_with_their_reason() {
    let corpus = corpus();
    let es = es(&corpus, Operation::Bulk, 1);
    let mut statuses = vec![201; 10];
    statuses[3] = 429;
    let rejected = r#"{"error":{"type":"es_rejected_execution_exception","reason":"full"},"status":429}"#;
    for (bytes, failure, stored, refused) in [
        (answer("200 OK", &items(&statuses)), "document refused: status 429: t: r", 9, 1),
        (
            answer("429 Too Many Requests", rejected),
            "status 429: es_rejected_execution_exception: full",
            0,
            10,
        ),
        (answer("413 Request Entity Too Large", ""), "status 413", 0, 10),
        (answer("200 OK", &items(&[201; 9])), "9 items for 10 documents", 0, 0),
        (answer("200 OK", "{}"), "no bulk answer", 0, 0),
    ] {
        let mut session = es.session(0);
        start(&es, &mut session).unwrap();
        let (done, _, _) = receive(&es, &mut session, &bytes);
        let text = done[0].as_ref().unwrap();
        assert!(done.len() == 1 && text.contains(failure), "{text}");
        assert_eq!(session.tally, Tally { sent: 10, stored, refused });
    }
}

#[test]
fn a_bulk_request_without_an_answer_is_not_repeated() {
    let corpus = corpus();
    let es = es(&corpus, Operation::Bulk, 1);
    let mut session = es.session(0);
    assert_eq!(es.closed(&mut session, &mut |_| ()), Ok(()), "nothing was asked");
    start(&es, &mut session).unwrap();
    assert!(es.closed(&mut session, &mut |_| ()).unwrap_err().contains("without an answer"));
    es.lost(&mut session);
    start(&es, &mut session).unwrap();
    assert_eq!(session.tally, Tally { sent: 20, ..Tally::default() });
    // An answer that ends with its connection is an answer.
    let body = items(&[201; 10]);
    receive(&es, &mut session, format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}").as_bytes());
    let mut done = 0;
    assert_eq!(es.closed(&mut session, &mut |_| done += 1), Ok(()));
    assert_eq!((done, session.tally.stored), (1, 10));
}

fn hits(total: u64, rows: u32, id: &str) -> Vec<u8> {
    let rows = vec!["{}"; rows as usize].join(",");
    let body = format!(
        r#"{{"_scroll_id":"{id}","timed_out":false,"_shards":{{"failed":0}},"hits":{{"total":{total},"hits":[{rows}]}}}}"#
    );
    answer("200 OK", &body)
}

fn search(scroll: Option<super::super::queries::Scroll>, rows: u64) -> Operation {
    let query = Query { request: b"GET".to_vec(), total: 25, rows };
    Operation::Search(Search { queries: vec![query], upto: vec![1], scroll, is_grouped: false })
}

#[test]
fn the_hits_of_a_search_are_those_of_the_corpus() {
    let corpus = corpus();
    let es = es(&corpus, search(None, 10), 1);
    for (bytes, wrong) in [
        (hits(25, 10, ""), None),
        (hits(24, 10, ""), Some("24 hits instead of 25")),
        (hits(25, 9, ""), Some("9 documents returned instead of 10")),
        (
            answer(
                "404 Not Found",
                r#"{"error":{"type":"index_not_found_exception","reason":"no such index"}}"#,
            ),
            Some("status 404: index_not"),
        ),
    ] {
        let mut session = es.session(0);
        start(&es, &mut session).unwrap();
        let (done, _, _) = receive(&es, &mut session, &bytes);
        match wrong {
            None => assert_eq!(done, [None]),
            Some(wrong) => assert!(done[0].as_ref().unwrap().contains(wrong), "{done:?}"),
        }
    }
}

#[test]
fn a_scroll_is_one_operation_of_all_its_pages() {
    let corpus = corpus();
    let scroll = super::super::queries::Scroll { pages: 5, page_size: 10 };
    let es = es(&corpus, search(Some(scroll), 10), 1);
    let mut session = es.session(0);
    start(&es, &mut session).unwrap();
    let (done, next, _) = receive(&es, &mut session, &hits(25, 10, "one"));
    assert!(
        done.is_empty()
            && next.starts_with("POST /_search/scroll ")
            && next.contains("\"scroll_id\":\"one\""),
        "{next}"
    );
    let (done, next, _) = receive(&es, &mut session, &hits(25, 10, "two"));
    assert!(done.is_empty() && next.contains("\"scroll_id\":\"two\""), "{next}");
    let (done, next, _) = receive(&es, &mut session, &hits(25, 5, "three"));
    assert!(
        done.is_empty() && next.starts_with("DELETE /_search/scroll ") && next.contains("[\"three\"]"),
        "{next}"
    );
    let (done, next, _) = receive(&es, &mut session, &answer("200 OK", "{}"));
    assert!(done == [None] && next.is_empty());
    start(&es, &mut session).unwrap();
    receive(&es, &mut session, &hits(25, 10, "one"));
    let (done, _, _) = receive(&es, &mut session, &hits(25, 9, "two"));
    assert_eq!(done, [Some("9 documents returned instead of 10".to_owned())]);
}

#[test]
fn an_answer_without_end_ends_the_connection() {
    let corpus = corpus();
    let es = es(&corpus, Operation::Bulk, 1);
    let mut session = es.session(0);
    start(&es, &mut session).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    let (mut out, mut done) = (Vec::new(), |_: Completion<'_>| panic!("no answer is complete"));
    es.receive(&mut session, head.as_bytes(), &mut out, &mut done).unwrap();
    let piece = vec![b' '; ES_ANSWER_BYTES_MAX / 4];
    for _ in 0..4 {
        es.receive(&mut session, &piece, &mut out, &mut done).unwrap();
    }
    let error = es.receive(&mut session, b" ", &mut out, &mut done).unwrap_err();
    assert!(error.contains("134217728 bytes"), "{error}");
}

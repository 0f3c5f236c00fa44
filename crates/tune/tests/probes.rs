//! The probes against answers that were recorded from servers: with a wrong configuration the finding is there, with the
//! changed one it is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tune::probe::{Context, ProbeError, connect, observe};
use tune::{Advice, Product, Target, Value, Version, advise};

use crate::recorded_server::{Answers, http_recording, recording, serve_cql, serve_http};

/// Looks at a target. Each rule that is applied has a parameter that the version has.
fn look(target: &str, context: &Context, has_window: bool) -> Result<Advice, ProbeError> {
    let target: Target = target.parse().expect("a target");
    let mut probe = connect(&target, context)?;
    let window = has_window.then(|| Duration::from_secs(12));
    let observation = observe(probe.as_mut(), window, &mut |_| ())?;
    let product = Product::named(probe.identity().product).expect("a product with rules");
    let advice = advise(product, &observation);
    let version = observation.version.as_deref().and_then(Version::parse).expect("a version");
    let parameters = advice.findings.iter().map(|it| &it.parameter);
    for name in parameters.chain(advice.undecided.iter().map(|it| &it.parameter)) {
        let versions = &product.parameters[name].versions;
        assert!(versions[&observation.variant].contains(&version), "{name} is not in {version}");
    }
    Ok(advice)
}

fn advice(target: &str) -> Advice {
    look(target, &Context::default(), false).unwrap()
}

fn error(target: &str) -> String {
    look(target, &Context::default(), false).unwrap_err().to_string()
}

/// The current and the suggested value of a finding.
fn found(advice: &Advice, rule: &str) -> Option<(Value, Value)> {
    let finding = advice.findings.iter().find(|finding| finding.rule == rule)?;
    Some((finding.current.clone()?, finding.suggested.clone()?))
}

fn hidden(advice: &Advice, name: &str) -> String {
    let found = advice.hidden.iter().find(|hidden| hidden.name == name);
    found.unwrap_or_else(|| panic!("{name} is not hidden: {:?}", advice.hidden)).reason.clone()
}

fn elasticsearch(answers: Answers) -> String {
    format!("http://127.0.0.1:{}", serve_http(answers))
}

#[test]
fn elasticsearch_with_a_short_refresh_interval_has_the_finding() {
    let target = elasticsearch(http_recording("elasticsearch-6.8-wrong"));
    let wrong = look(&target, &Context::default(), true).unwrap();
    assert_eq!(found(&wrong, "elasticsearch-refresh-interval"), Some((0.05.into(), 30.0.into())));
    let finding = wrong.findings.iter().find(|it| it.rule == "elasticsearch-refresh-interval").unwrap();
    assert_eq!(finding.subject.as_deref(), Some("points"));
    assert_eq!(found(&wrong, "elasticsearch-nofile"), Some((20_000.0.into(), 65_535.0.into())));
    assert!(hidden(&wrong, "bulk_documents").contains("client"));
    let target = elasticsearch(http_recording("elasticsearch-6.8-good"));
    let good = look(&target, &Context::default(), true).unwrap();
    assert_eq!(found(&good, "elasticsearch-refresh-interval"), None);
}

#[test]
fn a_managed_service_that_hides_settings_is_looked_at_without_them() {
    let mut answers = http_recording("elasticsearch-6.8-wrong");
    // With swap the rule about it needs the setting.
    for stats in answers.get_mut("/_nodes/stats").unwrap() {
        stats["nodes"]["node-1"]["os"]["swap"]["total_in_bytes"] = 1_024.into();
    }
    answers.insert("/_cluster/settings".into(), vec![json!({ "status": 403 })]);
    answers.insert("/_all/_settings".into(), vec![json!({ "status": 403 })]);
    let advice = advice(&elasticsearch(answers));
    assert!(hidden(&advice, "bootstrap.memory_lock").contains("`monitor`"));
    assert!(hidden(&advice, "refresh_interval").contains("view_index_metadata"));
    assert!(found(&advice, "elasticsearch-nofile").is_some());
    assert_eq!(found(&advice, "elasticsearch-refresh-interval"), None);
}

#[test]
fn an_unknown_version_has_a_note() {
    let mut answers = http_recording("elasticsearch-6.8-wrong");
    answers.insert("/".into(), vec![json!({ "cluster_name": "c", "version": { "number": "99.0.0" } })]);
    let advice = advice(&elasticsearch(answers));
    assert!(advice.note.as_ref().is_some_and(|note| note.contains("99.0.0")), "{:?}", advice.note);
}

#[test]
fn an_address_that_is_not_an_elasticsearch_says_what_it_is() {
    let answers = |answer: Json| Answers::from([("/".to_owned(), vec![answer])]);
    let html = error(&elasticsearch(answers("<html>a shop</html>".into())));
    assert!(html.contains("is not Elasticsearch or OpenSearch") && html.contains("<html>a shop"), "{html}");
    let refused = error(&elasticsearch(answers(json!({ "status": 401 }))));
    assert!(
        refused.contains("refuses the login") && refused.contains("Check user and password"),
        "{refused}"
    );
    let forbidden = error(&elasticsearch(answers(json!({ "status": 403 }))));
    assert!(forbidden.contains("`monitor`"), "{forbidden}");
    let mut answers = http_recording("elasticsearch-6.8-wrong");
    answers.remove("/_all/_settings");
    let target = format!("{}/nothing", elasticsearch(answers));
    assert!(error(&target).contains("404"));
}

#[test]
fn a_closed_port_is_an_error_for_every_target() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for scheme in ["http", "hbase", "cassandra", "tacho"] {
        let error = error(&format!("{scheme}://127.0.0.1:{port}"));
        assert!(error.contains("cannot connect") && error.contains("refused"), "{error}");
    }
}

#[test]
fn hbase_with_few_handlers_and_without_bloom_filters_has_the_findings() {
    let wrong = advice(&format!("hbase://localhost:{}", serve_http(http_recording("hbase-2.6-wrong"))));
    assert_eq!(found(&wrong, "hbase-handlers"), Some((2.0.into(), 8.0.into())));
    assert_eq!(found(&wrong, "hbase-bloomfilter"), Some(("NONE".into(), "ROW".into())));
    assert_eq!(found(&wrong, "hbase-compression"), Some(("NONE".into(), "SNAPPY".into())));
    let good = advice(&format!("hbase://localhost:{}", serve_http(http_recording("hbase-2.6-good"))));
    for rule in ["hbase-handlers", "hbase-bloomfilter", "hbase-compression", "hbase-block-cache"] {
        assert_eq!(found(&good, rule), None);
        assert!(!good.undecided.iter().any(|it| it.rule == rule), "{rule}: {:?}", good.undecided);
    }
}

#[test]
fn settings_of_hbase_clients_come_from_their_file() {
    let target = format!("hbase://localhost:{}", serve_http(http_recording("hbase-2.6-good")));
    let without = advice(&target);
    assert!(hidden(&without, "hbase.client.scanner.caching").contains("--client-config"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hbase-site.xml");
    let context = Context { client_config: Some(path.clone()), ..Context::default() };
    assert!(look(&target, &context, false).unwrap_err().to_string().contains("hbase-site.xml"));
    let property = "<property><name>hbase.client.scanner.caching</name><value>1</value></property>";
    std::fs::write(&path, format!("<configuration>{property}</configuration>")).unwrap();
    let with = look(&target, &context, false).unwrap();
    let undecided = with.undecided.iter().find(|it| it.rule == "hbase-scanner-caching-bound").unwrap();
    assert!(!undecided.missing.contains(&"hbase.client.scanner.caching".to_owned()), "{undecided:?}");
    let other = look("cassandra://127.0.0.1:1", &context, false).unwrap_err().to_string();
    assert!(other.contains("only hbase://"), "{other}");
}

#[test]
fn an_address_that_is_not_an_hbase_master_says_what_it_is() {
    let page = || Answers::from([("/".to_owned(), vec!["<html>a shop</html>".into()])]);
    let error = error(&format!("hbase://localhost:{}", serve_http(page())));
    assert!(error.contains("is not an HBase master") && error.contains("16010"), "{error}");
}

fn cassandra(tables: BTreeMap<String, Json>, password: &str) -> String {
    format!("cassandra://me:{password}@127.0.0.1:{}", serve_cql(tables))
}

#[test]
fn cassandra_with_few_threads_and_plain_tables_has_the_findings() {
    let wrong = advice(&cassandra(recording("cassandra-5.0-wrong"), "secret"));
    let (current, _) = found(&wrong, "cassandra-concurrent-writes").expect("127 writes are pending");
    assert_eq!(current, 2.0.into());
    assert_eq!(found(&wrong, "cassandra-table-compression"), Some(("".into(), "LZ4Compressor".into())));
    let strategies = ("SizeTieredCompactionStrategy".into(), "TimeWindowCompactionStrategy".into());
    assert_eq!(found(&wrong, "cassandra-time-window"), Some(strategies));
    let good = advice(&cassandra(recording("cassandra-5.0-good"), "secret"));
    for rule in ["cassandra-concurrent-writes", "cassandra-table-compression", "cassandra-time-window"] {
        assert_eq!(found(&good, rule), None);
        assert!(!good.undecided.iter().any(|it| it.rule == rule), "{rule}: {:?}", good.undecided);
    }
}

#[test]
fn a_cassandra_role_without_permissions_gets_the_rest() {
    let mut tables = recording("cassandra-5.0-wrong");
    let refusal = "User me has no SELECT permission on <table system_views.settings> or any of its parents";
    tables.insert("system_views.settings".into(), refusal.into());
    let advice = advice(&cassandra(tables, "secret"));
    let why = hidden(&advice, "concurrent_writes");
    assert!(
        why.contains("no SELECT permission") && why.contains("GRANT SELECT ON system_views.settings"),
        "{why}"
    );
    assert!(found(&advice, "cassandra-table-compression").is_some());
}

#[test]
fn an_old_cassandra_shows_its_tables_only() {
    let mut tables = recording("cassandra-5.0-wrong");
    tables.insert(
        "system.local".into(),
        json!({ "columns": [["release_version", "text"]], "rows": [["3.11.4"]] }),
    );
    let advice = advice(&cassandra(tables, "secret"));
    assert!(hidden(&advice, "concurrent_writes").contains("since version 4.0"));
    assert!(found(&advice, "cassandra-table-compression").is_some());
}

#[test]
fn a_wrong_password_or_another_server_is_an_error() {
    let wrong = error(&cassandra(recording("cassandra-5.0-wrong"), "guess"));
    assert!(wrong.contains("refuses the login") && !wrong.contains("guess"), "{wrong}");
    let without = format!("cassandra://127.0.0.1:{}", serve_cql(BTreeMap::new()));
    assert!(error(&without).contains("PasswordAuthenticator"));
    let page = || Answers::from([("/".to_owned(), vec!["<html>a shop</html>".into()])]);
    let tacho = error(&format!("tacho://127.0.0.1:{}", serve_http(page())));
    assert!(tacho.contains("is not a Tachograph server"), "{tacho}");
}

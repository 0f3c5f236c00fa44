use super::*;

const SCENARIO: &str = r#"
[scenario]
name = "test"
about = "indexes"
driver = "es"
[target]
url = "http://127.0.0.1:9200/test"
[dataset]
documents = 1_000
[[operation]]
name = "bulk"
kind = "bulk"
[[operation]]
name = "term"
kind = "term"
[[phase]]
name = "load"
kind = "load"
arrival = "closed"
operations = ["bulk"]
[[phase]]
name = "search"
arrival = "closed"
duration = "1s"
operations = ["term"]
"#;

fn made(text: &str) -> std::result::Result<EsDriver, String> {
    Scenario::parse(text, &[]).and_then(|scenario| EsDriver::new(&scenario))
}

#[test]
fn what_a_scenario_cannot_mean_is_refused() {
    made(SCENARIO).unwrap();
    for (from, to, wrong) in [
        ("documents = 1_000", "document = 1_000", "did you mean `documents`?"),
        ("documents = 1_000", "documents = 0", "must be above zero"),
        ("documents = 1_000", "shards = 0", "use 1 to 1024"),
        (
            "documents = 1_000",
            "force_merge = false\nmax_num_segments = 1",
            "`max_num_segments` is for `force_merge`",
        ),
        ("documents = 1_000", "translog_durability = 'sometimes'", "unknown variant `sometimes`"),
        ("documents = 1_000", "corpus = 'logs'", "searches are for the corpus geonames"),
        ("documents = 1_000", "bulk_size = 10_000_000", "smaller bulk_size"),
        ("kind = \"term\"", "kind = \"terms\"", "unknown variant `terms`"),
        ("kind = \"term\"", "kind = \"term\"\ncached = true", "unknown field `cached`"),
        ("kind = \"term\"", "kind = \"scroll\"\npage_size = 20_000", "at most 10,000"),
        ("kind = \"bulk\"", "kind = \"bulk\"\nconstant = true", "unknown field `constant`"),
        ("operations = [\"term\"]", "operations = [\"term\", \"bulk\"]", "it loads and searches"),
        ("operations = [\"term\"]", "operations = [\"term\"]\nwindow = 2", "`window` must be 1"),
        ("operations = [\"term\"]", "operations = [\"term\"]\nrequest = 2", "did you mean `requests`?"),
        (
            "operations = [\"bulk\"]",
            "operations = [\"bulk\"]\nrequests = 2",
            "a load ends with its documents",
        ),
        ("duration = \"1s\"", "", "would never end"),
        ("9200/test", "9200/Test", "`Test` is not an index"),
        ("9200/test", "9200/_all", "`_all` is not an index"),
        ("http://127", "mqtt://127", "this driver speaks http, https"),
        ("9200/test", "9200/test?cafile=/ca.pem", "`cafile` is for TLS: write https://"),
    ] {
        let error = made(&SCENARIO.replacen(from, to, 1)).err().unwrap_or_default();
        assert!(error.contains(wrong), "{to}: {error}");
    }
}

#[test]
fn an_index_has_the_name_of_its_corpus_unless_the_url_has_one() {
    let driver = made(&SCENARIO.replace(":9200/test", "")).unwrap();
    assert_eq!(driver.index_url(), "http://127.0.0.1:9200/geonames");
    assert_eq!(made(SCENARIO).unwrap().index_url(), "http://127.0.0.1:9200/test");
}

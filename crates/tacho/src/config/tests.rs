use std::path::Path;

use gateway::tls::ClientCertificates;

use super::*;

/// A directory with a configuration file that has this text.
fn with_file(text: &str) -> (tempfile::TempDir, Sources) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tacho.toml");
    std::fs::write(&path, text).unwrap();
    let sources = Sources { data: Some(directory.path().into()), ..Sources::default() };
    (directory, sources)
}

fn with_variables(variables: &[(&str, &str)]) -> Sources {
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Sources { environment, ..Sources::default() }
}

fn error_of(sources: &Sources) -> String {
    sources.load().expect_err("a faulty configuration").to_string()
}

#[test]
fn the_annotated_file_holds_every_key_with_the_defaults_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/tacho.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let written: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(written, toml::Table::try_from(RawConfig::default()).unwrap());
    let sources = Sources { config: Some(path), ..Sources::default() };
    assert_eq!(sources.settings().unwrap().0, RawConfig::default());
    sources.load().unwrap();
}

#[test]
fn later_sources_win() {
    let (_directory, mut sources) =
        with_file("[mqtt]\nlisten = '127.0.0.1:1'\nworkers = 3\n[http]\nlisten = '127.0.0.1:2'\n");
    sources.environment =
        vec![("TACHO_MQTT_LISTEN".into(), "127.0.0.1:3".into()), ("TACHO_DATA".into(), "/x".into())];
    let config = sources.load().unwrap();
    assert_eq!(config.mqtt.listen.port(), 3);
    assert_eq!(config.mqtt.workers, 3);
    assert_eq!(config.http.listen.port(), 2);
    assert_eq!(Some(config.data), sources.data);
}

#[test]
fn localhost_is_an_address() {
    let config = with_variables(&[("TACHO_HTTP_LISTEN", "localhost:8081")]).load().unwrap();
    assert_eq!(config.http.listen, "127.0.0.1:8081".parse().unwrap());
    assert!(error_of(&with_variables(&[("TACHO_HTTP_LISTEN", "example.org:80")])).contains("localhost:1883"));
    assert!(error_of(&with_variables(&[("TACHO_HTTP_LISTEN", "localhost")])).contains("a port"));
}

#[test]
fn the_data_directory_of_a_variable_is_searched_for_the_file() {
    let (directory, _) = with_file("[http]\npublic_read = true\n");
    let sources = with_variables(&[("TACHO_DATA", directory.path().to_str().unwrap())]);
    assert!(sources.load().unwrap().http.public_read);
}

#[test]
fn a_data_directorys_own_file_does_not_lead_to_another_one() {
    let (directory, _) = with_file("data = '/elsewhere'\n");
    let sources = with_variables(&[("TACHO_DATA", directory.path().to_str().unwrap())]);
    assert_eq!(sources.load().unwrap().data, directory.path());
    let named = Sources { config: Some(directory.path().join("tacho.toml")), ..Sources::default() };
    assert_eq!(named.load().unwrap().data, Path::new("/elsewhere"));
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    let (directory, sources) = with_file("# first\n[mqtt]\n\nlisten_ = 'x'\n");
    let file = directory.path().join("tacho.toml");
    let expected = format!("{}:4: unknown key \"mqtt.listen_\"; did you mean \"listen\"?", file.display());
    assert_eq!(error_of(&sources), expected);

    let (_directory, sources) = with_file("[mqt]\nlisten = 'x'\n");
    assert!(error_of(&sources).ends_with(":1: unknown key \"mqt\"; did you mean \"mqtt\"?"));
    let (_directory, sources) = with_file("[log]\ncolour = true\n");
    assert!(error_of(&sources).ends_with(":2: unknown key \"log.colour\"; known are format, level"));
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_line() {
    let (_directory, sources) = with_file("[mqtt]\nworkers = 'many'\n");
    assert!(
        error_of(&sources).contains("tacho.toml:2: invalid type: string \"many\""),
        "{}",
        error_of(&sources)
    );
    let (_directory, sources) = with_file("[mqtt]\nworkers = -1\n");
    assert!(error_of(&sources).contains("tacho.toml:2: "), "{}", error_of(&sources));
    let (_directory, sources) = with_file("[mqtt]\n\nworkers = \n");
    assert!(error_of(&sources).contains("tacho.toml:3: "), "{}", error_of(&sources));
    let (_directory, sources) = with_file("mqtt = 1\n");
    assert!(error_of(&sources).contains("tacho.toml:1: "), "{}", error_of(&sources));
}

#[test]
fn an_unknown_variable_is_an_error_and_those_of_the_tests_are_not() {
    let sources = with_variables(&[("TACHO_MQTT_LISTN", "127.0.0.1:3")]);
    let expected =
        "environment variable TACHO_MQTT_LISTN: unknown setting; did you mean \"TACHO_MQTT_LISTEN\"?";
    assert_eq!(error_of(&sources), expected);
    let sources =
        with_variables(&[("TACHO_BIN", "x"), ("TACHO_OBD_DIR", "x"), ("TACHO_LOG", "debug"), ("PATH", "")]);
    sources.load().unwrap();
}

#[test]
fn a_variable_has_the_type_of_its_setting() {
    let sources = with_variables(&[("TACHO_MQTT_WORKERS", "two")]);
    assert!(error_of(&sources).contains("TACHO_MQTT_WORKERS is \"two\"; a whole number"));
    let sources = with_variables(&[("TACHO_MQTT_RECEIVE_MAXIMUM", "70000")]);
    assert!(error_of(&sources).contains("a smaller number is expected"));
    let sources = with_variables(&[("TACHO_HTTP_PUBLIC_READ", "yes")]);
    assert!(error_of(&sources).contains("true or false is expected"));
    let sources = with_variables(&[("TACHO_HTTP_PUBLIC_READ", "true"), ("TACHO_MQTT_WORKERS", "2")]);
    let config = sources.load().unwrap();
    assert!(config.http.public_read);
    assert_eq!(config.mqtt.workers, 2);
}

#[test]
fn values_are_checked_and_the_error_names_valid_ones() {
    for (name, value, reason) in [
        ("TACHO_MQTT_LISTEN", "1883", "an address and a port"),
        ("TACHO_STORE_MEMTABLE_FLUSH_BYTES", "200000000", "half of store.memtable_bytes_max"),
        ("TACHO_STORE_LOG_SEGMENT_BYTES", "1000", "one commit must fit into one segment"),
        ("TACHO_STORE_ZSTD_LEVEL", "23", "a number from 1 to 22"),
        ("TACHO_STORE_TTL_DEFAULT", "3 weeks", "days or hours such as 90d or 36h"),
        ("TACHO_STORE_TTL_DEFAULT", "0d", "or 0 to keep rows for good"),
        ("TACHO_INGEST_OLDEST", "yesterday", "a time such as 1971-01-01T00:00:00Z"),
        ("TACHO_INGEST_JSON_DEPTH_MAX", "0", "a number from 1 to 128"),
        (
            "TACHO_HTTP_CONNECTIONS_MAX",
            "70000",
            "setting http.connections_max is 70000: a number from 0 to 65536",
        ),
        (
            "TACHO_MQTT_PROXY_PROTOCOL",
            "10.0.0.0/8,10.0.0.1/8",
            "setting mqtt.proxy_protocol is \"10.0.0.1/8\"",
        ),
        ("TACHO_POSTGRES_PROXY_PROTOCOL", "balancer", "an address or a network such as 10.0.0.0/8"),
        ("TACHO_MQTT_TLS_LISTEN", "127.0.0.1:8883", "TLS needs a certificate"),
        ("TACHO_HTTP_TLS_LISTEN", "127.0.0.1:8443", "setting http.tls_listen"),
        ("TACHO_POSTGRES_TLS_REQUIRED", "true", "setting postgres.tls_required"),
        ("TACHO_TLS_CERTIFICATE", "x.pem", "setting tls.key is empty"),
        ("TACHO_TLS_KEY", "x.pem", "setting tls.certificate is empty"),
        ("TACHO_TLS_CLIENT_CA", "x.pem", "setting tls.certificate is empty"),
        ("TACHO_LOG_FORMAT", "xml", "use text or json"),
        ("TACHO_LOG_LEVEL", "loud", "use error, warn, info"),
    ] {
        let error = error_of(&with_variables(&[(name, value)]));
        assert!(error.contains(reason), "{name}={value}: {error}");
    }
}

#[test]
fn a_time_to_live_is_days_or_hours() {
    let ttl =
        |text: &str| with_variables(&[("TACHO_STORE_TTL_DEFAULT", text)]).load().unwrap().store.ttl_default;
    let hours = |hours: u64| Some(std::time::Duration::from_secs(hours * 3_600));
    assert_eq!((ttl("0"), ttl("90d"), ttl("36h")), (None, hours(90 * 24), hours(36)));
}

#[test]
fn a_named_file_must_exist() {
    let sources = Sources { config: Some("/nowhere/tacho.toml".into()), ..Sources::default() };
    assert!(error_of(&sources).starts_with("cannot read the configuration /nowhere/tacho.toml"));
}

#[test]
fn doors_with_tls_take_the_files_of_the_section() {
    let config = with_variables(&[
        ("TACHO_TLS_CERTIFICATE", "c.pem"),
        ("TACHO_TLS_KEY", "k.pem"),
        ("TACHO_MQTT_TLS_LISTEN", "127.0.0.1:8883"),
    ]);
    let config = config.load().unwrap();
    let files = config.tls.unwrap();
    assert_eq!((files.certificate, files.key, files.client_ca), ("c.pem".into(), "k.pem".into(), None));
    assert_eq!(config.mqtt.tls_listen, Some("127.0.0.1:8883".parse().unwrap()));
    assert_eq!(config.http.tls_listen, None);
}

#[test]
fn client_certificates_and_their_authorities_fit_together() {
    let with = |certificates: &str, authorities: &str| {
        let files = [("TACHO_TLS_CERTIFICATE", "c.pem"), ("TACHO_TLS_KEY", "k.pem")];
        let clients = [("TACHO_TLS_CLIENT_CERTIFICATES", certificates), ("TACHO_TLS_CLIENT_CA", authorities)];
        with_variables(&[files, clients].concat())
    };
    let optional = with("optional", "").load().unwrap().tls.unwrap();
    assert_eq!((optional.client_certificates, optional.client_ca), (ClientCertificates::Optional, None));
    let required = with("required", "ca.pem").load().unwrap().tls.unwrap();
    assert_eq!(required.client_ca, Some("ca.pem".into()));
    let by_authority = with("", "ca.pem").load().unwrap().tls.unwrap();
    assert_eq!(by_authority.client_certificates, ClientCertificates::Required);
    assert_eq!(with("", "").load().unwrap().tls.unwrap().client_certificates, ClientCertificates::Off);
    assert!(error_of(&with("off", "ca.pem")).contains("tls.client_ca needs optional or required"));
    assert!(error_of(&with("required", "")).contains("tls.client_ca"));
    assert!(error_of(&with("yes", "")).contains("it is one of off, optional, required"));
    let none = with_variables(&[("TACHO_TLS_CLIENT_CERTIFICATES", "optional")]);
    assert!(error_of(&none).contains("tls.certificate"));
}

#[test]
fn lists_of_servers_are_checked() {
    let listed = with_variables(&[("TACHO_SENSORS_ALLOWED_TARGETS", "10.0.0.0/8, broker.example.com:1883")]);
    let targets = listed.load().unwrap().sensor_targets;
    assert!(targets.name("other", "10.1.2.3:80".parse().unwrap()));
    assert!(!targets.name("other", "11.1.2.3:80".parse().unwrap()));
    for variable in ["TACHO_SENSORS_ALLOWED_TARGETS", "TACHO_TIME_SERIES_GSN_PUSH_TARGETS"] {
        let refused = error_of(&with_variables(&[(variable, "http://broker")]));
        assert!(refused.contains("a host, an address or a network is expected"), "{refused}");
    }
}

#[test]
fn every_door_has_limits_and_load_balancers() {
    let config = with_variables(&[
        ("TACHO_MQTT_CONNECTIONS_PER_SECOND_MAX", "100"),
        ("TACHO_HTTP_REQUESTS_PER_SECOND_MAX", "2000"),
        ("TACHO_HTTP_PROXY_PROTOCOL", "10.0.0.0/8, 2001:db8::1"),
    ]);
    let config = config.load().unwrap();
    let mqtt = config.mqtt.door.limits(50, |connections_max| connections_max);
    assert_eq!((mqtt.connections_max, mqtt.connections_per_address_max), (50, 50));
    assert_eq!(mqtt.connections_per_second_max.map(u32::from), Some(100));
    assert_eq!(mqtt.requests_per_second_max, None);
    let http = &config.http.door;
    assert_eq!(http.requests_per_second_max.map(u32::from), Some(2_000));
    assert!(http.proxies.contain("10.1.2.3".parse().unwrap()));
    assert!(http.proxies.contain("2001:db8::1".parse().unwrap()));
    assert!(!http.proxies.contain("192.0.2.1".parse().unwrap()));

    let (_directory, sources) = with_file("[mqtt]\nproxy_protocol = ['192.0.2.0/24']\n");
    assert!(sources.load().unwrap().mqtt.door.proxies.contain("192.0.2.9".parse().unwrap()));
}

//! Classes whose output also goes to something outside.

use super::classes::with_class;
use super::*;
use crate::virtual_sensors::plan::Export;

fn export(class: &str, params: &[(&str, &str)]) -> String {
    let params: String =
        params.iter().map(|(name, value)| format!("<param name='{name}'>{value}</param>")).collect();
    with_class(class, &params, "", &[("x", "integer")])
}

fn target(class: &str, params: &[(&str, &str)]) -> String {
    plan(&export(class, params)).export.expect("an exporter").target()
}

const DATABASE: [(&str, &str); 2] = [("url", "jdbc:mysql://h/gsn"), ("user", "gsn")];

#[test]
fn an_exporter_gives_the_rows_of_a_bridge() {
    let mut run = Run::new(&export("StreamExporterVirtualSensor", &DATABASE));
    run.x(1, 5).x(2, 6);
    assert_eq!(run.take(), ["1: 5", "2: 6"]);
    let scheduled = [&DATABASE[..], &[("rate", "1000")]].concat();
    let mut run = Run::new(&export("ScheduledStreamExporterVirtualSensor", &scheduled));
    run.x(1, 5).x(2, 6).tick(1_000);
    assert_eq!(run.take(), ["1000: 6"]);
}

#[test]
fn targets_are_named_without_secrets() {
    let uri = ("uri", "tcp://broker:1884");
    assert_eq!(target("MQTTExporterVS", &[uri]), "tcp://broker:1884, topic v");
    assert_eq!(
        target("MQTTExporterVS", &[("uri", "mqtt://[::1]"), ("topic", "a/b")]),
        "tcp://::1:1883, topic a/b"
    );
    let url = ("url", "https://user:pass@host/rows?key=secret");
    assert_eq!(target("Webhook", &[url, ("headers", "X-Key: secret")]), "https://host/rows");
    let password = ("password", "secret");
    let database = [&DATABASE[..], &[password, ("table", "t")]].concat();
    assert_eq!(target("StreamExporter", &database), "MySQL h:3306/gsn, table t");
    let plan = plan(&export("Webhook", &[url, ("headers", "X-Key: secret")]));
    assert!(!format!("{:?}", plan.export).contains("secret"), "{:?}", plan.export);
    assert!(
        matches!(plan.export, Some(Export::Webhook(webhook)) if webhook.headers[0].1.reveal() == "secret")
    );
}

#[test]
fn bad_targets_are_refused() {
    let refused = |class: &str, params: &[(&str, &str)], part: &str| {
        let fault = fault(&export(class, params));
        assert!(fault.contains(part), "{fault}");
    };
    refused("MQTTExporterVS", &[], "needs the parameter \"uri\"");
    refused("MQTTExporterVS", &[("uri", "ssl://h:8883")], "encrypted connections are absent");
    refused("MQTTExporterVS", &[("uri", "tcp://h"), ("topic", "a/#")], "without + and #");
    refused("Webhook", &[("url", "ftp://h")], "begins with http:// or https://");
    refused("Webhook", &[("url", "http://h"), ("method", "GET")], "it is POST, PUT or PATCH");
    refused("Webhook", &[("url", "http://h"), ("headers", "no header")], "a line is Name: value");
    refused(
        "StreamExporter",
        &[("url", "jdbc:oracle:thin:@h:1"), ("user", "u")],
        "no client for the database",
    );
    refused("StreamExporter", &[("url", "jdbc:h2:mem:gsn"), ("user", "u")], "inside of Java");
    refused("EmailVirtualSensor", &[], "use the class Webhook");
    for (class, parameter) in
        [("MQTTExporterVS", ("uri", "tcp://u:secret@h:1883")), ("Webhook", ("url", "ftp://u:secret@h"))]
    {
        let fault = fault(&export(class, &[parameter]));
        assert!(!fault.contains("secret"), "{fault}");
    }
}

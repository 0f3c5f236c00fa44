//! Classes whose output also goes to something outside.

use super::classes::with_class;
use super::*;
use crate::virtual_sensors::plan::{Encryption, Export};

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
    let files = [("cafile", "/ca.pem"), ("certfile", "/me.pem"), ("keyfile", "/key.pem")];
    let encrypted = [&[("uri", "ssl://broker")][..], &files].concat();
    assert_eq!(target("MQTTExporterVS", &encrypted), "mqtts://broker:8883, topic v");
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

const EMAIL: [(&str, &str); 3] = [
    ("mail-server", "mail.example.org"),
    ("sender-email", "tacho@example.org"),
    ("receiver-email", "ann@example.org"),
];

#[test]
fn mail_is_encrypted_unless_the_server_is_on_this_machine() {
    let email = |params: &[(&str, &str)]| match plan(&export("EmailVirtualSensor", params)).export {
        Some(Export::Email(email)) => email,
        other => panic!("{other:?}"),
    };
    let of = |server: &str, more: &[(&str, &str)]| {
        let email = email(&[&[("mail-server", server), EMAIL[1], EMAIL[2]][..], more].concat());
        (email.encryption, email.port)
    };
    assert_eq!(of("mail.example.org", &[]), (Encryption::StartTls, 587));
    assert_eq!(of("mail.example.org", &[("encryption", "TLS")]), (Encryption::Tls, 465));
    assert_eq!(of("mail.example.org", &[("encryption", "none"), ("port", "2525")]), (Encryption::None, 2525));
    for server in ["localhost", "127.0.0.1", "::1"] {
        assert_eq!(of(server, &[]), (Encryption::None, 25), "{server}");
    }
    let login = [("user", "u"), ("password", "secret")];
    let email = email(&[&EMAIL[..], &login].concat());
    assert_eq!(Export::Email(email.clone()).target(), "smtp://mail.example.org:587, to ann@example.org");
    assert!(!format!("{email:?}").contains("secret"), "{email:?}");
    assert_eq!((email.subject.as_str(), email.has_message), ("GSN-Notification", false));
}

#[test]
fn bad_targets_are_refused() {
    let refused = |class: &str, params: &[(&str, &str)], part: &str| {
        let fault = fault(&export(class, params));
        assert!(fault.contains(part), "{fault}");
    };
    refused("MQTTExporterVS", &[], "needs the parameter \"uri\"");
    refused("MQTTExporterVS", &[("uri", "wss://h:8883")], "mqtts://HOST:PORT");
    refused("MQTTExporterVS", &[("uri", "tcp://h"), ("cafile", "/ca.pem")], "cafile needs an encrypted");
    refused("MQTTExporterVS", &[("uri", "ssl://h"), ("certfile", "/me.pem")], "keyfile belong together");
    refused("MQTTExporterVS", &[("uri", "tcp://h"), ("topic", "a/#")], "without + and #");
    refused("Webhook", &[("url", "ftp://h")], "begins with http:// or https://");
    refused("Webhook", &[("url", "http://h"), ("cafile", "/ca.pem")], "cafile needs an encrypted address");
    refused("Webhook", &[("url", "http://h"), ("method", "GET")], "it is POST, PUT or PATCH");
    refused("Webhook", &[("url", "http://h"), ("headers", "no header")], "a line is Name: value");
    refused(
        "StreamExporter",
        &[("url", "jdbc:oracle:thin:@h:1"), ("user", "u")],
        "no client for the database",
    );
    refused("StreamExporter", &[("url", "jdbc:h2:mem:gsn"), ("user", "u")], "inside of Java");
    let email =
        |more: &[(&str, &str)], part: &str| refused("EmailVirtualSensor", &[&EMAIL[..], more].concat(), part);
    refused("EmailVirtualSensor", &EMAIL[..2], "needs the parameter \"receiver-email\"");
    email(&[("encryption", "ssl")], "it is none, starttls or tls");
    email(&[("encryption", "none"), ("user", "u"), ("password", "secret")], "not sent to another machine");
    email(&[("password", "secret")], "needs the parameter \"user\"");
    email(&[("encryption", "none"), ("cafile", "/ca.pem")], "needs an encrypted connection");
    let receiver = ("receiver-email", "ann@example.org&#10;Bcc: eve@example.org");
    refused("EmailVirtualSensor", &[EMAIL[0], EMAIL[1], receiver], "one address");
    refused("EmailVirtualSensor", &[("mail-server", "mail:25")], "the parameter port");
    for (class, parameter) in
        [("MQTTExporterVS", ("uri", "tcp://u:secret@h:1883")), ("Webhook", ("url", "ftp://u:secret@h"))]
    {
        let fault = fault(&export(class, &[parameter]));
        assert!(!fault.contains("secret"), "{fault}");
    }
}

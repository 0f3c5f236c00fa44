//! `gsn.xml`.

use crate::virtual_sensors::Container;
use crate::virtual_sensors::plan::StoragePlace;

#[test]
fn a_file_of_gsn_1_is_read() {
    let text = "<sensor-server><name> Roof </name><author>A. Uthor</author><email>a@example.org</email>\
                <port>22005</port><ssl-port>8443</ssl-port><access-control>TRUE</access-control>\
                <ssl-key-store-password>x</ssl-key-store-password>\
                <storage user='sa' password='' driver='org.h2.Driver' url='jdbc:h2:mem:a'/>\
                <sliding><storage driver='org.h2.Driver' url='jdbc:h2:mem:b' user='sa' password=''/></sliding></sensor-server>";
    let container = Container::from_xml(text).expect("a good file");
    assert_eq!(container.name.as_deref(), Some("Roof"));
    assert_eq!((container.port, container.ssl_port), (22005, Some(8443)));
    assert!(container.access_control);
    assert_eq!(container.time_format, "dd/MM/yyyy HH:mm:ss Z");
    assert_eq!(container.storage, Some(StoragePlace::Own));
    let notes: Vec<_> = container.notes.iter().map(|note| note.text.as_str()).collect();
    for expected in
        ["replaces the database", "storage of windows", "gsn_listen", "tls_listen", "public_read", "tls.key"]
    {
        assert!(notes.iter().any(|note| note.contains(expected)), "{expected}: {notes:?}");
    }
}

#[test]
fn a_file_of_gsn_2_is_read() {
    let text = "<sensor-server><monitor-port>22001</monitor-port><zmq-enable>true</zmq-enable><zmqproxy>22022</zmqproxy>\
                <zmqmeta>22023</zmqmeta><storage user='sa' password='secret' driver='org.postgresql.Driver' url='jdbc:postgresql://h/gsn'/>\
                </sensor-server>";
    let container = Container::from_xml(text).expect("a good file");
    assert_eq!(container.port, 22001);
    let notes: Vec<_> = container.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(
        notes.iter().any(|note| note.contains("zmq-enable has no effect: subscribe over MQTT")),
        "{notes:?}"
    );
    let Some(StoragePlace::Database(database)) = &container.storage else { panic!("no database") };
    assert_eq!((database.user.as_str(), database.password.as_str()), ("sa", "secret"));
    assert!(!format!("{container:?}").contains("secret"));
}

#[test]
fn faults_name_their_place() {
    let fault = |inner: &str| {
        let text = format!("<sensor-server>\n  {inner}\n</sensor-server>");
        Container::from_xml(&text).expect_err("a fault").to_string()
    };
    assert_eq!(
        fault("<port>99999</port>"),
        "line 2, column 9: port is \"99999\"; it is a whole number from 1 to 65535"
    );
    assert_eq!(
        fault("<port>1</port><monitor-port>1</monitor-port>"),
        "line 2, column 31: port and monitor-port are the same word; use one of them"
    );
    assert!(fault("<storage driver='d'/>").ends_with("<storage> has no url; it needs one"));
    assert!(fault("<speed>1</speed>").contains("<sensor-server> has no \"speed\""));
    assert!(fault("<sliding/>").contains("<sliding> has no <storage>"));
}

//! Clients that ask for credentials.

use hub::registry::{ProfileFields, ProvisionStrategy, ProvisionTerms};
use model::Value;
use serde_json::{Value as Json, json};
use wire::mqtt::{Connect, Filter, Packet, Properties, ProtocolVersion, QoS, ReasonCode, Subscribe};

use super::client::{Client, Fixture, Reply};
use super::{EVERY, yes};

const REQUEST: &str = "/provision/request";

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let registry = fixture.hub.registry();
    let strategy = ProvisionStrategy::AllowCreateNewDevices;
    let terms = ProvisionTerms::new(strategy, Some("k"), Some("s")).unwrap();
    let fields = ProfileFields { name: "pump", provision: Some(&terms), ..ProfileFields::default() };
    registry.create_profile(registry.default_tenant(), fields).unwrap();
    fixture
}

fn ask(fixture: &Fixture, version: ProtocolVersion) -> Client {
    let mut client = fixture.open(version);
    assert_eq!(client.say_hello("any", "provision", true).code, 0);
    client
}

fn request(device: &str, more: Json) -> Vec<u8> {
    let mut request =
        json!({ "provisionDeviceKey": "k", "provisionDeviceSecret": "s", "deviceName": device });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request.to_string().into_bytes()
}

fn answer(client: &mut Client) -> Json {
    match client.next() {
        Reply::Publish(message) => {
            assert_eq!(message.topic, "/provision/response");
            serde_json::from_str(&message.payload).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_device_gets_a_token_and_logs_in_with_it() {
    for version in EVERY {
        let fixture = fixture();
        let mut client = ask(&fixture, version);
        let filters =
            ["/provision/response", "v1/devices/me/attributes"].map(|topic| Filter { topic, options: 1 });
        let layout = Subscribe::layout(&filters).unwrap();
        client.send(&Packet::Subscribe(Subscribe::new(7, Properties::NONE, &layout)));
        let refused = if version == ProtocolVersion::V5 { 0x87 } else { 0x80 };
        assert_eq!(client.next(), Reply::SubAck(7, vec![0, refused]));
        client.publish_to(REQUEST, QoS::AtLeastOnce, 1, &request("p 1", json!({})));
        // A packet behind the request waits for its answer.
        client.send(&Packet::PingReq);
        assert_eq!(client.next(), yes(1));
        let given = answer(&mut client);
        assert_eq!(
            (&given["status"], &given["credentialsType"]),
            (&"SUCCESS".into(), &"ACCESS_TOKEN".into())
        );
        assert_eq!(client.next(), Reply::Pong);
        let token = given["credentialsValue"].as_str().unwrap();
        let mut device = fixture.connect(version, "c", token);
        device.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
        assert_eq!(device.next(), yes(1));
        assert_eq!(fixture.values("pump", "p 1", "a"), [Value::I64(1)]);
        // One connection may ask several times, also at QoS 0.
        client.publish_to(REQUEST, QoS::AtMostOnce, 0, &request("p 1", json!({})));
        let refused = answer(&mut client);
        assert_eq!(refused["status"], "FAILURE");
        assert!(refused["errorMsg"].as_str().unwrap().contains("exists already"), "{refused}");
    }
}

#[test]
fn a_device_gets_the_credentials_that_it_wants() {
    let fixture = fixture();
    let mut client = fixture.open(ProtocolVersion::V311);
    // A client without a user name asks with its client identifier.
    let connect = Connect { clean_start: true, ..Connect::new(ProtocolVersion::V311, "provision") };
    assert_eq!(client.connect_with(connect).code, 0);
    let wanted =
        json!({ "credentialsType": "MQTT_BASIC", "username": "u", "password": "p", "clientId": null });
    client.publish_to(REQUEST, QoS::AtMostOnce, 0, &request("p 1", wanted));
    let given = answer(&mut client);
    assert_eq!(given["credentialsValue"], json!({ "clientId": null, "userName": "u", "password": "p" }));
    let wanted = json!({ "credentialsType": "ACCESS_TOKEN", "token": "T9" });
    client.publish_to(REQUEST, QoS::AtMostOnce, 0, &request("p 2", wanted));
    assert_eq!(answer(&mut client)["credentialsValue"], "T9");
    for (wrong, part) in [
        (json!({ "token": "T9" }), "already assigned to another device!"),
        (json!({ "credentialsType": "X509_CERTIFICATE", "hash": "hello" }), "certificate"),
        (json!({ "credentialsType": "X509_CERTIFICATE" }), "hash is missing"),
        (json!({ "username": "u" }), "username is not part of the credentialsType ACCESS_TOKEN"),
        (json!({ "credentialsType": "LWM2M_CREDENTIALS" }), "the kinds of credentials are"),
        (json!({ "token": "provision" }), "devices without credentials"),
        (json!({ "deviceName": "  " }), "blank"),
    ] {
        client.publish_to(REQUEST, QoS::AtMostOnce, 0, &request("p 3", wrong));
        let refused = answer(&mut client);
        assert_eq!(refused["status"], "FAILURE");
        assert!(refused["errorMsg"].as_str().unwrap().contains(part), "{refused}");
    }
    assert_eq!(fixture.hub.registry().device_count(), 4, "none of them was added");
}

#[test]
fn wrong_keys_are_not_found_and_then_must_wait() {
    let fixture = fixture();
    let mut client = ask(&fixture, ProtocolVersion::V5);
    let guess = |client: &mut Client| {
        let guess = json!({ "provisionDeviceSecret": "wrong" });
        client.publish_to(REQUEST, QoS::AtMostOnce, 0, &request("p 1", guess));
        answer(client)
    };
    for _ in 0..model::limits::LOGIN_FAILURES_FREE {
        let refused = guess(&mut client);
        assert_eq!(refused, json!({ "status": "NOT_FOUND", "errorMsg": "Provision data was not found!" }));
    }
    assert!(guess(&mut client)["errorMsg"].as_str().unwrap().contains("try again in 1 s"));
    assert!(fixture.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="provision"} 6"#));
}

#[test]
fn a_client_that_asks_may_do_nothing_else() {
    for (topic, qos, payload, reason) in [
        ("v1/devices/me/telemetry", QoS::AtLeastOnce, &b"{\"a\":1}"[..], ReasonCode::TOPIC_NAME_INVALID),
        ("news", QoS::AtMostOnce, b"x", ReasonCode::TOPIC_NAME_INVALID),
        (REQUEST, QoS::AtLeastOnce, b"x", ReasonCode::PAYLOAD_FORMAT_INVALID),
        (REQUEST, QoS::AtLeastOnce, b"{}", ReasonCode::PAYLOAD_FORMAT_INVALID),
        (REQUEST, QoS::ExactlyOnce, b"{}", ReasonCode::QOS_NOT_SUPPORTED),
        (REQUEST, QoS::AtLeastOnce, &[b' '; 40_000], ReasonCode::PACKET_TOO_LARGE),
    ] {
        let fixture = fixture();
        let mut client = ask(&fixture, ProtocolVersion::V5);
        client.publish_to(topic, qos, u16::from(qos != QoS::AtMostOnce), payload);
        match client.next() {
            Reply::Disconnect(code, Some(cause)) => assert_eq!(code, reason, "{topic}: {cause}"),
            other => panic!("{topic}: {other:?}"),
        }
        assert_eq!(client.next(), Reply::Closed);
    }
}

//! Which topics a device may use, the counters under `$SYS`, and topic aliases from the server.

use std::collections::HashMap;

use gateway::mqtt::MqttOptions;
use hub::registry::{Credentials, NewDevice, ProfileFields};
use wire::mqtt::{Connect, PropertiesBuilder, Property, PropertyId, ProtocolVersion, QoS, ReasonCode};

use super::client::{Client, Fixture};
use super::yes;

const NOT_AUTHORIZED: ReasonCode = ReasonCode::NOT_AUTHORIZED;
const FAILURE: u8 = 0x80;

fn open_to_all() -> MqttOptions {
    let all = || vec!["#".to_owned()];
    MqttOptions { publish_topics: all(), subscribe_topics: all(), ..MqttOptions::default() }
}

/// Changes the data of the profile of both devices.
fn set_profile_data(fixture: &Fixture, data: &str) {
    let registry = fixture.hub.registry();
    let device = registry.device_by_token("t-car").unwrap();
    let profile = &device.profile;
    let fields = ProfileFields { name: &profile.name, data: Some(data), ..ProfileFields::default() };
    registry.change_profile(profile.tenant, profile.id, fields, None).unwrap();
}

fn refusals(fixture: &Fixture, reason: &str) -> u64 {
    let metrics = fixture.metrics();
    let begin = format!(r#"tacho_refusals_total{{door="mqtt",reason="{reason}"}} "#);
    let found = metrics.lines().find_map(|line| line.strip_prefix(&begin));
    found.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn a_profile_lists_the_topics_of_its_devices() {
    let data = r#"{"tachoTopics":{
        "publish":["fleet/${tenant}/${device}/+","by/${clientId}/#","name/${username}"],
        "subscribe":["fleet/+/state","by/${client}/#","name/${username}/#"]}}"#;
    let fixture = Fixture::with_profile(MqttOptions::default(), Some(data));
    let mut new = fixture.connect(ProtocolVersion::V5, "c1", "t-car");
    let mut old = fixture.connect(ProtocolVersion::V311, "c2", "t-van");
    // The user name of MQTT's basic credentials; a device may have none.
    let registry = fixture.hub.registry();
    for (name, client_id, user_name) in [("tram", None, Some("u1")), ("bus", Some("b"), None)] {
        let password = user_name.map(|_| "p");
        let credentials = Credentials::mqtt_basic(client_id, user_name, password).unwrap();
        let profile = Some("own");
        let device = NewDevice { name, credentials: Some(&credentials), profile, ..NewDevice::default() };
        registry.add_device(registry.default_tenant(), device).unwrap();
        let mut client = fixture.open(ProtocolVersion::V5);
        let connect = Connect::new(ProtocolVersion::V5, "b");
        let hello = Connect { username: user_name, password: password.map(str::as_bytes), ..connect };
        assert_eq!(client.connect_with(hello).code, 0, "{name}");
        assert_eq!(client.tell("name/u1", "x") == ReasonCode::SUCCESS, user_name.is_some(), "{name}");
    }
    for (topic, may) in [
        ("fleet/default/car/state", true),
        ("by/c1/a/b", true),
        ("name/t-car", true),
        ("fleet/default/van/state", false),
        ("by/c2/a", false),
        ("name/t-van", false),
        ("fleet/default/car/a/b", false),
        // The list is in place of the settings of the server.
        ("devices/car/state", false),
        ("$SYS/broker/uptime", false),
    ] {
        let code = if may { ReasonCode::SUCCESS } else { NOT_AUTHORIZED };
        assert_eq!(new.tell(topic, "x"), code, "{topic}");
    }
    assert_eq!(old.tell("fleet/default/car/state", "x"), ReasonCode::SUCCESS, "3.1.1 has no word for it");
    assert_eq!(fixture.dead_letters("car", "topic").len(), 6);
    assert_eq!(fixture.dead_letters("van", "topic"), ["fleet/default/car/state"]);
    let reason = &fixture.dead_letters("car", "reason")[0];
    assert!(reason.contains("tachoTopics.publish of its profile"), "{reason}");
    for (filter, may) in [
        ("fleet/+/state", true),
        ("fleet/a/state", true),
        ("$share/g/fleet/+/state", true),
        ("by/c1/#", true),
        ("name/t-car/+", true),
        ("fleet/#", false),
        ("by/c2/#", false),
        ("devices/car/#", false),
        ("#", false),
        ("$SYS/#", false),
    ] {
        let code = if may { 1 } else { NOT_AUTHORIZED.0 };
        assert_eq!(new.subscribe(&[(filter, 1)]), [code], "{filter}");
    }
    assert_eq!(old.subscribe(&[("fleet/a/state", 1), ("devices/van/#", 1)]), [1, FAILURE]);
    assert_eq!(refusals(&fixture, "subscription"), 6);
    assert_eq!(refusals(&fixture, "topic"), 8);
    assert!(new.subscribe(&[("v1/devices/me/attributes", 1)]) == [1], "the device API stays open");
    new.publish(QoS::AtLeastOnce, 9, b"{\"a\":1}");
    assert_eq!(new.answer(), yes(9));
}

#[test]
fn a_session_follows_the_topics_of_its_profile() {
    let open = r##"{"tachoTopics":{"publish":["#"],"subscribe":["#"]}}"##;
    let closed = r##"{"tachoTopics":{"publish":["#"],"subscribe":["kept/#"]}}"##;
    let fixture = Fixture::with_profile(MqttOptions::default(), Some(open));
    let mut present = fixture.connect(ProtocolVersion::V5, "present", "t-car");
    let mut absent = fixture.open(ProtocolVersion::V311);
    assert_eq!(absent.say_hello("absent", "t-car", false).code, 0);
    for client in [&mut present, &mut absent] {
        assert_eq!(client.subscribe(&[("kept/a", 1), ("lost/a", 1)]), [1, 1]);
    }
    drop(absent);
    let mut sender = fixture.connect(ProtocolVersion::V5, "sender", "t-van");
    assert_eq!(sender.tell("lost/a", "before"), ReasonCode::SUCCESS);
    let message = present.message();
    assert_eq!(message.payload, "before");
    present.acknowledge(&message);
    set_profile_data(&fixture, closed);
    fixture.wait_for("the end of the subscription", || refusals(&fixture, "subscription_ended") == 1);
    for (topic, payload) in [("lost/a", "after"), ("kept/a", "after")] {
        assert_eq!(sender.tell(topic, payload), ReasonCode::SUCCESS);
    }
    assert_eq!(present.message().topic, "kept/a", "the other subscription stays");
    assert_eq!(present.subscribe(&[("lost/a", 1)]), [NOT_AUTHORIZED.0]);
    // The other client comes back with its session: at the latest now it loses the subscription.
    let mut back = fixture.open(ProtocolVersion::V311);
    assert!(back.say_hello("absent", "t-car", false).session_present);
    assert_eq!(sender.tell("lost/a", "later"), ReasonCode::SUCCESS);
    assert_eq!(sender.tell("kept/a", "later"), ReasonCode::SUCCESS);
    let mut topics = Vec::new();
    loop {
        let message = back.message();
        back.acknowledge(&message);
        topics.push((message.topic, message.payload.clone()));
        if message.payload == "later" {
            break;
        }
    }
    assert_eq!(topics.last().unwrap().0, "kept/a", "{topics:?}");
    let publish = r#"{"tachoTopics":{"publish":["other/#"],"subscribe":["kept/#"]}}"#;
    set_profile_data(&fixture, publish);
    fixture.wait_for("a refusal", || sender.tell("kept/a", "no") == NOT_AUTHORIZED);
    assert_eq!(sender.tell("other/a", "yes"), ReasonCode::SUCCESS);
    set_profile_data(&fixture, open);
    fixture.wait_for("the first topics", || sender.tell("kept/a", "again") == ReasonCode::SUCCESS);
}

/// The monitor may see the counters, other devices may not, whatever wildcards they may use.
#[test]
fn counters_go_to_devices_whose_profile_lists_them() {
    let fixture = Fixture::with(MqttOptions { sys_interval_s: 1, ..open_to_all() });
    let registry = fixture.hub.registry();
    let tenant = registry.default_tenant();
    let data = r##"{"tachoTopics":{"subscribe":["$SYS/#","#"]}}"##;
    let fields = ProfileFields { name: "monitor", data: Some(data), ..ProfileFields::default() };
    registry.create_profile(tenant, fields).unwrap();
    let monitor = NewDevice {
        name: "monitor",
        token: Some("t-monitor"),
        profile: Some("monitor"),
        ..NewDevice::default()
    };
    registry.add_device(tenant, monitor).unwrap();
    let mut car = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    assert_eq!(car.subscribe(&[("$SYS/#", 0), ("#", 0), ("+/broker/uptime", 0)]), [0x87, 0, 0]);
    let mut monitor = fixture.connect(ProtocolVersion::V5, "m", "t-monitor");
    assert_eq!(monitor.subscribe(&[("#", 1), ("$SYS/broker/+/+", 1)]), [1, 1]);
    let mut seen = HashMap::new();
    let mut begins = 0;
    // Two reports after one with both clients have counted what this test sends.
    while begins < 2 {
        let message = monitor.message();
        assert_eq!(message.qos, QoS::AtMostOnce);
        begins += u32::from(message.topic == "$SYS/broker/clients/connected" && message.payload == "2");
        seen.insert(message.topic, message.payload);
    }
    for (topic, least) in [
        ("clients/total", 2),
        ("clients/maximum", 2),
        ("subscriptions/count", 4),
        ("messages/received", 4),
        ("messages/sent", 4),
        ("bytes/received", 60),
    ] {
        let topic = format!("$SYS/broker/{topic}");
        let value = seen.get(&topic).unwrap_or_else(|| panic!("{topic} is missing in {seen:?}"));
        assert!(value.parse::<u64>().unwrap() >= least, "{topic} is {value}");
    }
    assert_eq!(seen["$SYS/broker/retained messages/count"], "0");
    assert!(seen.keys().all(|topic| topic.split('/').count() == 4), "+ stands for one level: {seen:?}");
    // A new subscription gets the last report at once.
    assert_eq!(monitor.subscribe(&[("$SYS/broker/version", 0)]), [0]);
    loop {
        let message = monitor.message();
        if message.topic == "$SYS/broker/version" {
            assert!(message.retain && message.payload.starts_with("tachograph version "), "{message:?}");
            break;
        }
    }
    assert!(car.has_no_message(), "no wildcard selects the topics of the server");
}

fn connect_with_aliases(fixture: &Fixture, maximum: u16, packet_bytes_max: u32) -> Client {
    let mut properties = PropertiesBuilder::new();
    properties.push(Property::TwoBytes(PropertyId::TopicAliasMaximum, maximum)).unwrap();
    properties.push(Property::FourBytes(PropertyId::MaximumPacketSize, packet_bytes_max)).unwrap();
    let mut client = fixture.open(ProtocolVersion::V5);
    let connect = Connect {
        properties: properties.as_properties(),
        username: Some("t-car"),
        ..Connect::new(ProtocolVersion::V5, "aliases")
    };
    assert_eq!(client.connect_with(connect).code, 0);
    client
}

/// The topics of messages, as a client finds them that keeps a map of aliases.
fn topics_of(client: &mut Client, count: usize, maximum: u16) -> (Vec<String>, usize) {
    let (mut aliases, mut empty) = (HashMap::new(), 0);
    let mut topics = Vec::new();
    for _ in 0..count {
        let message = client.message();
        if let Some(alias) = message.alias {
            assert!((1..=maximum).contains(&alias), "alias {alias}");
            if !message.topic.is_empty() {
                aliases.insert(alias, message.topic.clone());
            }
        }
        empty += usize::from(message.topic.is_empty());
        topics.push(match message.topic.as_str() {
            "" => aliases[&message.alias.unwrap()].clone(),
            topic => topic.to_owned(),
        });
        if message.packet_id.is_some() {
            client.acknowledge(&message);
        }
    }
    (topics, empty)
}

#[test]
fn a_client_that_takes_aliases_gets_each_topic_once() {
    let fixture = Fixture::with(open_to_all());
    let sent: Vec<String> = (0..60).map(|n| format!("a/long/topic/{}", [0, 1, 0, 2, 1, 0][n % 6])).collect();
    let mut sender = fixture.connect(ProtocolVersion::V5, "sender", "t-van");
    for (maximum, least) in [(0, 0), (1, 0), (2, 20), (3, 57), (500, 57)] {
        let mut client = connect_with_aliases(&fixture, maximum, 1_000);
        assert_eq!(client.subscribe(&[("a/#", 1)]), [1]);
        for topic in &sent {
            assert_eq!(sender.tell(topic, "x"), ReasonCode::SUCCESS);
        }
        let (topics, empty) = topics_of(&mut client, sent.len(), maximum);
        assert_eq!(topics, sent, "{maximum}");
        assert!(empty >= least && (maximum > 0 || empty == 0), "{empty} of {maximum}");
        drop(client);
    }
    // An alias ends with its connection [MQTT-3.3.2-7].
    let mut again = connect_with_aliases(&fixture, 5, 1_000);
    assert_eq!(again.subscribe(&[("a/#", 1)]), [1]);
    assert_eq!(sender.tell("a/long/topic/0", "x"), ReasonCode::SUCCESS);
    assert_eq!(again.message().topic, "a/long/topic/0");
}

#[test]
fn an_alias_makes_no_packet_too_large() {
    let fixture = Fixture::with(open_to_all());
    let mut sender = fixture.connect(ProtocolVersion::V5, "sender", "t-van");
    // Header 2, topic 2 + 8, length of the properties 1: 100 bytes fit with a payload of 87, with a new alias of 84.
    let mut client = connect_with_aliases(&fixture, 5, 100);
    assert_eq!(client.subscribe(&[("a/#", 0)]), [0]);
    for (topic, bytes, is_aliased) in
        [("a/topic1", 87, false), ("a/topic1", 84, true), ("a/topic2", 85, false), ("a/topic1", 92, true)]
    {
        assert_eq!(sender.tell(topic, &"x".repeat(bytes)), ReasonCode::SUCCESS);
        let message = client.message();
        assert_eq!((message.payload.len(), message.alias.is_some()), (bytes, is_aliased), "{message:?}");
    }
    assert_eq!(sender.tell("a/topic2", &"x".repeat(88)), ReasonCode::SUCCESS);
    assert!(client.has_no_message(), "a packet that is too large counts as delivered");
    assert!(client.largest <= 100, "{}", client.largest);
}

#[test]
fn counters_can_be_turned_off() {
    let fixture = Fixture::with(MqttOptions {
        sys_interval_s: 0,
        subscribe_topics: vec!["$SYS/#".into()],
        ..MqttOptions::default()
    });
    let mut client = fixture.connect(ProtocolVersion::V311, "c", "t-car");
    assert_eq!(client.subscribe(&[("$SYS/#", 0)]), [0], "the settings of the server may open them too");
    // The first report would come within the first second.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert!(client.has_no_message());
    let options = MqttOptions { sys_interval_s: 3_601, ..MqttOptions::default() };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = gateway::mqtt::MqttDoor::start(fixture.hub.clone(), listener, options).unwrap_err();
    assert!(refused.to_string().contains("sys_interval_s is 3601"), "{refused}");
    assert_eq!(client.tell("$SYS/broker/uptime", "0"), ReasonCode::SUCCESS, "refused, with the ack of 3.1.1");
    assert_eq!(fixture.dead_letters("car", "topic"), ["$SYS/broker/uptime"]);
}

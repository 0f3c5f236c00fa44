//! Logins with client identifier, user name and password.

use hub::registry::Credentials;
use model::Value;
use wire::mqtt::{Connect, ProtocolVersion, QoS, ReasonCode};

use super::client::{Client, Fixture, Reply};
use super::{EVERY, yes};

/// Client identifier, user name and password.
type Sent<'a> = (&'a str, Option<&'a str>, Option<&'a str>);
/// The credentials of a device, what logs it in, and what is refused with which codes of 3.1.1 and 5.
type Case<'a> = (Sent<'a>, &'a [Sent<'a>], &'a [(Sent<'a>, u8, u8)]);

fn give(fixture: &Fixture, device: &str, (client_id, user_name, password): Sent<'_>) {
    let registry = fixture.hub.registry();
    let device = registry.device_by_name(registry.default_tenant(), device).unwrap();
    let credentials = Credentials::mqtt_basic(Some(client_id), user_name, password).unwrap();
    registry.set_credentials(device.id, credentials).unwrap();
}

fn connect(
    fixture: &Fixture,
    version: ProtocolVersion,
    (client_id, user_name, password): Sent<'_>,
) -> (Client, u8) {
    let mut client = fixture.open(version);
    let password = password.map(str::as_bytes);
    let connect =
        Connect { username: user_name, password, clean_start: true, ..Connect::new(version, client_id) };
    let code = client.connect_with(connect).code;
    (client, code)
}

#[test]
fn each_combination_that_a_device_has_logs_in_and_others_do_not() {
    for version in EVERY {
        let fixture = Fixture::new();
        let cases: [Case<'_>; 4] = [
            (
                ("", Some("u"), Some("p")),
                &[("any", Some("u"), Some("p"))],
                &[(("any", Some("u"), Some("q")), 4, 0x86), (("any", Some("u"), None), 5, 0x87)],
            ),
            (
                ("c", Some("u"), Some("p")),
                &[("c", Some("u"), Some("p"))],
                &[
                    (("d", Some("u"), Some("p")), 4, 0x86),
                    (("c", Some("u"), Some("")), 4, 0x86),
                    (("c", None, None), 4, 0x86),
                ],
            ),
            (
                ("c", Some("u"), None),
                &[("c", Some("u"), None), ("c", Some("u"), Some("any"))],
                &[(("c", Some("v"), None), 5, 0x87)],
            ),
            (
                ("c", None, None),
                &[("c", None, None)],
                &[(("d", None, None), 4, 0x86), (("c", Some("u"), None), 5, 0x87)],
            ),
        ];
        for (has, right, wrong) in cases {
            give(&fixture, "car", has);
            for sent in right {
                let (mut client, code) = connect(&fixture, version, *sent);
                assert_eq!(code, 0, "{version:?} {has:?} {sent:?}");
                client.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
                assert_eq!(client.next(), yes(1));
            }
            for (sent, old, new) in wrong {
                let (mut client, code) = connect(&fixture, version, *sent);
                let expected = if version == ProtocolVersion::V5 { new } else { old };
                assert_eq!(code, *expected, "{version:?} {has:?} {sent:?}");
                assert_eq!(client.next(), Reply::Closed);
            }
        }
        assert_eq!(fixture.values("telemetry", "car", "a"), vec![Value::I64(1); 5]);
        assert!(fixture.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="password_wrong"} 3"#));
    }
}

#[test]
fn a_token_needs_no_password_and_takes_any() {
    let fixture = Fixture::new();
    for password in [None, Some(""), Some("x")] {
        let (_, code) = connect(&fixture, ProtocolVersion::V311, ("c", Some("t-car"), password));
        assert_eq!(code, 0, "{password:?}");
    }
    let (_, code) = connect(&fixture, ProtocolVersion::V311, ("c", Some("wrong"), Some("x")));
    assert_eq!(code, 4, "it may be a wrong user name, a wrong password or a wrong token");
}

#[test]
fn wrong_passwords_must_wait_and_do_not_lock_tokens_out() {
    let fixture = Fixture::new();
    give(&fixture, "car", ("", Some("u"), Some("p")));
    let free = model::limits::LOGIN_FAILURES_FREE;
    for _ in 0..free {
        assert_eq!(connect(&fixture, ProtocolVersion::V5, ("c", Some("u"), Some("q"))).1, 0x86);
    }
    for (version, code) in
        [(ProtocolVersion::V5, ReasonCode::CONNECTION_RATE_EXCEEDED.0), (ProtocolVersion::V311, 3)]
    {
        for password in ["q", "p"] {
            let (_, got) = connect(&fixture, version, ("c", Some("u"), Some(password)));
            assert_eq!(got, code, "a guess is not told whether it is right");
        }
    }
    assert_eq!(connect(&fixture, ProtocolVersion::V5, ("c", Some("t-van"), Some("x"))).1, 0);
    assert!(fixture.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="login_rate"} 4"#));
}

#[test]
fn other_credentials_end_the_sessions_of_the_old_ones_and_the_same_do_not() {
    let fixture = Fixture::new();
    let mut by_token = fixture.connect(ProtocolVersion::V5, "c", "t-car");
    let mut other = fixture.connect(ProtocolVersion::V5, "c", "t-van");
    give(&fixture, "car", ("", Some("u"), Some("p")));
    let ends = |client: &mut Client| match client.next() {
        Reply::Disconnect(ReasonCode::NOT_AUTHORIZED, Some(cause)) => {
            assert!(cause.contains("replaced"), "{cause}")
        }
        reply => panic!("{reply:?}"),
    };
    ends(&mut by_token);
    let (mut by_password, _) = connect(&fixture, ProtocolVersion::V5, ("c", Some("u"), Some("p")));
    give(&fixture, "car", ("", Some("u"), Some("p")));
    by_password.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(by_password.next(), yes(1));
    // Only the password differs.
    give(&fixture, "car", ("", Some("u"), Some("q")));
    ends(&mut by_password);
    other.publish(QoS::AtLeastOnce, 1, b"{\"a\":1}");
    assert_eq!(other.next(), yes(1), "others stay");
}

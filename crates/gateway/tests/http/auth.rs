use base64_text::decode_claims;

use super::Server;

/// Enough of a JWT reader to see what clients read without the key.
mod base64_text {
    use serde_json::Value as Json;

    pub(super) fn decode_claims(token: &str) -> Json {
        let payload = token.split('.').nth(1).unwrap();
        let mut bits = 0_u32;
        let mut count = 0;
        let mut bytes = Vec::new();
        for byte in payload.bytes() {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                other => panic!("{other} is not base64url"),
            };
            bits = bits << 6 | u32::from(digit);
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        serde_json::from_slice(&bytes).unwrap()
    }
}

#[tokio::test]
async fn a_login_opens_a_session_that_its_refresh_token_renews() {
    let server = Server::start().await;
    let (login, password) = (&server.admin.login, &server.admin.password);
    let body = serde_json::json!({ "username": login, "password": password }).to_string();
    let pair = server.request("POST", "/api/auth/login").body(body).send().await.ok();
    let (token, refresh) = (pair["token"].as_str().unwrap(), pair["refreshToken"].as_str().unwrap());
    for token in [token, refresh] {
        let claims = decode_claims(token);
        assert!(claims["exp"].as_i64().unwrap() > claims["iat"].as_i64().unwrap());
    }
    let user = server.request("GET", "/api/auth/user").session(token).send().await.ok();
    assert_eq!((&user["email"], &user["authority"]), (&login.as_str().into(), &"TENANT_ADMIN".into()));
    assert_eq!(user["tenantId"]["entityType"], "TENANT");

    let body = serde_json::json!({ "refreshToken": refresh }).to_string();
    let renewed = server.request("POST", "/api/auth/token").body(body).send().await.ok();
    let token = renewed["token"].as_str().unwrap();
    let plain = server.request("GET", "/api/auth/user").header("authorization", &format!("Bearer {token}"));
    assert_eq!(plain.send().await.ok(), user);
    server.stop().await;
}

#[tokio::test]
async fn wrong_passwords_and_tokens_open_nothing() {
    let server = Server::start().await;
    for username in [server.admin.login.as_str(), "nobody@example.org"] {
        let body = serde_json::json!({ "username": username, "password": "wrong password" }).to_string();
        let refused = server.request("POST", "/api/auth/login").body(body).send().await;
        assert!(refused.refusal(401, 10).contains("user name or password"));
    }
    let token = server.session();
    let changed = format!("{}x", &token[..token.len() - 1]);
    for token in ["", "x", &changed] {
        server.request("GET", "/api/auth/user").session(token).send().await.refusal(401, 10);
    }
    let refresh = serde_json::json!({ "refreshToken": token }).to_string();
    let refused = server.request("POST", "/api/auth/token").body(refresh).send().await;
    assert!(refused.refusal(401, 10).contains("refreshToken"));
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="password"} 2"#));
    server.stop().await;
}

#[tokio::test]
async fn a_new_password_ends_the_sessions() {
    let server = Server::start().await;
    let registry = server.hub.registry();
    let user = registry.users(registry.default_tenant()).remove(0);
    let token = registry.open_session(&user, hub::clock::system_now()).token;
    let user_page = || server.request("GET", "/api/auth/user").session(&token);
    user_page().send().await.ok();
    registry.set_password(&user.login, "another password").unwrap();
    assert!(user_page().send().await.refusal(401, 10).contains("log in again"));
    server.stop().await;
}

#[tokio::test]
async fn public_reading_is_off_by_default() {
    let server = Server::start().await;
    let refused = server.request("POST", "/api/auth/login/public").body("{}").send().await;
    assert!(refused.refusal(403, 20).contains("/api/auth/login"));
    // A token from a time when it was on.
    let token = server.public_session();
    server.request("GET", "/api/tenant/devices?pageSize=1").session(&token).send().await.refusal(403, 20);
    server.stop().await;
}

#[tokio::test]
async fn public_sessions_read_devices_and_values_and_nothing_else() {
    let server = Server::start_with(|options| options.public_read = true).await;
    let id = server.add_device("d");
    server.report("d", r#"{"a":1}"#).await;
    let pair = server.request("POST", "/api/auth/login/public").body("{}").send().await.ok();
    let token = pair["token"].as_str().unwrap();
    for path in [
        "/api/tenant/devices?pageSize=10&page=0".to_owned(),
        format!("/api/device/{id}"),
        format!("/api/plugins/telemetry/DEVICE/{id}/keys/timeseries"),
        format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?keys=a"),
    ] {
        server.request("GET", &path).session(token).send().await.ok();
    }
    for (method, path, body) in [
        ("GET", format!("/api/device/{id}/credentials"), ""),
        ("GET", "/api/auth/user".to_owned(), ""),
        ("DELETE", format!("/api/device/{id}"), ""),
        ("POST", "/api/device".to_owned(), r#"{"name":"x"}"#),
        ("POST", "/api/tacho/devices".to_owned(), r#"{"count":1,"prefix":"x"}"#),
    ] {
        let refused = server.request(method, &path).session(token).body(body).send().await;
        refused.refusal(403, 20);
    }
    let refresh = serde_json::json!({ "refreshToken": pair["refreshToken"] }).to_string();
    server.request("POST", "/api/auth/token").body(refresh).send().await.ok();
    server.stop().await;
}

#[tokio::test]
async fn a_viewer_reads_and_other_requests_name_the_missing_role() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.report("d", r#"{"a":1}"#).await;
    let added = server
        .post("/api/tacho/users", r#"{"login":"Bi@example.org","password":"long enough","role":"viewer"}"#);
    let added = added.await.ok();
    assert_eq!((&added["login"], &added["role"]), (&"bi@example.org".into(), &"viewer".into()));
    let login = r#"{"username":"bi@example.org","password":"long enough"}"#;
    let pair = server.request("POST", "/api/auth/login").body(login).send().await.ok();
    let token = pair["token"].as_str().unwrap();
    for path in [
        "/api/auth/user".to_owned(),
        "/api/tenant/devices?pageSize=10&page=0".to_owned(),
        format!("/api/device/{id}"),
        format!("/api/tacho/devices/{id}"),
        format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?keys=a"),
    ] {
        server.request("GET", &path).session(token).send().await.ok();
    }
    for (method, path, body) in [
        ("GET", format!("/api/device/{id}/credentials"), ""),
        ("POST", "/api/device/credentials".to_owned(), &*format!(r#"{{"deviceId":{{"id":"{id}"}}}}"#)),
        ("DELETE", format!("/api/device/{id}"), ""),
        ("POST", "/api/device".to_owned(), r#"{"name":"x"}"#),
        ("POST", "/api/tacho/devices".to_owned(), r#"{"count":1,"prefix":"x"}"#),
        ("GET", "/api/tacho/tables".to_owned(), ""),
        ("POST", "/api/tacho/tables".to_owned(), r#"{"table":"telemetry","ttlS":0}"#),
        ("POST", "/api/tacho/export".to_owned(), r#"{"table":"telemetry","format":"csv"}"#),
        ("POST", "/api/tacho/import".to_owned(), ""),
        ("POST", "/api/tacho/check".to_owned(), ""),
        ("POST", "/api/tacho/backup".to_owned(), ""),
        ("POST", "/api/tacho/maintenance/flush".to_owned(), ""),
        ("POST", "/api/tacho/maintenance/compact".to_owned(), ""),
        ("GET", "/api/tacho/users".to_owned(), ""),
        ("POST", "/api/tacho/users".to_owned(), r#"{"login":"x","password":"long enough","role":"viewer"}"#),
        ("POST", "/api/tacho/users/bi@example.org/password".to_owned(), r#"{"password":"long enough"}"#),
        ("POST", "/api/tacho/users/bi@example.org/role".to_owned(), r#"{"role":"administrator"}"#),
        ("DELETE", "/api/tacho/users/admin@tachograph.local".to_owned(), ""),
        ("POST", "/api/tacho/session-key".to_owned(), ""),
    ] {
        let refused = server.request(method, &path).session(token).body(body).send().await;
        let message = refused.refusal(403, 20);
        assert!(
            message.contains("role viewer") && message.contains("role administrator"),
            "{path}: {message}"
        );
    }
    let refused = server.post("/api/tacho/users/bi@example.org/role", r#"{"role":"king"}"#).await;
    assert!(refused.refusal(400, 31).contains("customer, viewer, operator, administrator"));
    server.post("/api/tacho/users/BI%40example.org/role", r#"{"role":"administrator"}"#).await.ok();
    let ended = server.request("GET", "/api/auth/user").session(token).send().await;
    assert!(ended.refusal(401, 10).contains("log in again"));
    let delete = |login: &str| {
        server.request("DELETE", &format!("/api/tacho/users/{login}")).session(&server.session())
    };
    assert_eq!(delete("bi@example.org").send().await.status, 200);
    assert_eq!(delete("bi@example.org").send().await.status, 404);
    let last = delete("admin@tachograph.local").send().await;
    assert!(last.refusal(400, 31).contains("last administrator"));
    server.stop().await;
}

#[tokio::test]
async fn another_session_key_ends_every_session() {
    let server = Server::start().await;
    let token = server.session();
    assert_eq!(server.post("/api/tacho/session-key", "").await.status, 200);
    server.request("GET", "/api/auth/user").session(&token).send().await.refusal(401, 10);
    server.get("/api/auth/user").await.ok();
    server.stop().await;
}

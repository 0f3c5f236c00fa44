//! Users, their activation and sessions, tenants, API keys and the audit log in ThingsBoard's shapes.

use hub::caller::Role;
use serde_json::{Value as Json, json};

use super::Server;

#[tokio::test]
async fn a_new_user_chooses_a_password_with_the_link() {
    let server = Server::start().await;
    let new = json!({ "email": "Ann@Example.org", "authority": "TENANT_ADMIN", "firstName": "Ann", "additionalInfo": { "lang": "en" } });
    let mailed = server.post("/api/user?sendActivationMail=true", &new.to_string()).await.refusal(400, 30);
    assert!(mailed.contains("activationLink"), "{mailed}");
    let user = server.post("/api/user?sendActivationMail=false", &new.to_string()).await.ok();
    assert_eq!(
        (&user["email"], &user["firstName"], &user["name"]),
        (&"ann@example.org".into(), &"Ann".into(), &"ann@example.org".into())
    );
    let id = user["id"]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/user/{id}")).await.ok(), user);
    let link = server.get(&format!("/api/user/{id}/activationLink")).await;
    let (_, token) = link.text().split_once("activateToken=").unwrap();
    assert!(link.text().starts_with("http://test/api/noauth/activate?"), "{}", link.text());
    let info = server.get(&format!("/api/user/{id}/activationLinkInfo")).await.ok();
    assert!(info["ttlMs"].as_i64().unwrap() > 86_000_000);
    let page = server.request("GET", &format!("/api/noauth/activate?activateToken={token}")).send().await;
    assert!(page.status == 200 && page.headers["content-type"].starts_with("text/html"));
    let unknown = server.request("GET", "/api/noauth/activate?activateToken=x").send().await;
    assert!(unknown.refusal(400, 31).contains("another activation link"));
    let activate = |password: &str| {
        let body = json!({ "activateToken": token, "password": password }).to_string();
        server.request("POST", "/api/noauth/activate").body(body)
    };
    assert!(activate("short").send().await.refusal(400, 31).contains("8 characters"));
    let pair = activate("a long password").send().await.ok();
    let me =
        server.request("GET", "/api/auth/user").session(pair["token"].as_str().unwrap()).send().await.ok();
    assert_eq!((&me["email"], &me["additionalInfo"]["lang"]), (&"ann@example.org".into(), &"en".into()));
    activate("another password").send().await.refusal(400, 31);
    assert!(
        server
            .get(&format!("/api/user/{id}/activationLink"))
            .await
            .refusal(400, 31)
            .contains("a password already")
    );
    server.stop().await;
}

#[tokio::test]
async fn a_logout_ends_one_session_and_a_new_password_ends_the_others() {
    let server = Server::start().await;
    let body = json!({ "username": server.admin.login, "password": server.admin.password }).to_string();
    let login = async || server.request("POST", "/api/auth/login").body(body.clone()).send().await.ok();
    let token = |pair: &Json| pair["token"].as_str().unwrap().to_owned();
    let (one, two) = (login().await, login().await);
    let user =
        async |session: &str| server.request("GET", "/api/auth/user").session(session).send().await.status;
    let refresh = json!({ "refreshToken": one["refreshToken"] }).to_string();
    let renewed = token(&server.request("POST", "/api/auth/token").body(refresh.clone()).send().await.ok());
    let out = server.request("POST", "/api/auth/logout").session(&token(&one)).send().await;
    assert_eq!((out.status, out.body.len()), (200, 0));
    assert_eq!((user(&token(&one)).await, user(&renewed).await, user(&token(&two)).await), (401, 401, 200));
    server.request("POST", "/api/auth/token").body(refresh).send().await.refusal(401, 10);
    let change = |current: &str| {
        let body = json!({ "currentPassword": current, "newPassword": "a new password" }).to_string();
        server.request("POST", "/api/auth/changePassword").session(&token(&two)).body(body)
    };
    let wrong = change("not the password").send().await.refusal(400, 31);
    assert!(wrong.contains("not the present one"), "{wrong}");
    let three = token(&change(&server.admin.password).send().await.ok());
    assert_eq!((user(&token(&two)).await, user(&three).await), (401, 200));
    server.stop().await;
}

#[tokio::test]
async fn users_are_listed_changed_disabled_and_deleted() {
    let server = Server::start().await;
    let customer = server.post("/api/customer", r#"{"title":"acme"}"#).await.ok();
    let new = json!({ "email": "c@x.org", "authority": "CUSTOMER_USER", "customerId": customer["id"] });
    let made = server.post("/api/user", &new.to_string()).await.ok();
    assert_eq!((&made["authority"], &made["customerId"]), (&"CUSTOMER_USER".into(), &customer["id"]));
    let operator = server.session_of("op@x.org", Role::Operator, None);
    let mut me = server.request("GET", "/api/auth/user").session(&operator).send().await.ok();
    assert_eq!(me["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
    // A user changes the own name, and nothing that the role forbids.
    me["firstName"] = "Olga".into();
    let changed =
        server.request("POST", "/api/user").session(&operator).body(me.to_string()).send().await.ok();
    assert_eq!(changed["firstName"], "Olga");
    let mut king = changed.clone();
    king["authority"] = "TENANT_ADMIN".into();
    server
        .request("POST", "/api/user")
        .session(&operator)
        .body(king.to_string())
        .send()
        .await
        .refusal(403, 20);
    assert_eq!(server.hub.registry().user_by_login("op@x.org").unwrap().role, Role::Operator);
    let emails = |page: &Json| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|user| user["email"].as_str().unwrap().into()).collect()
    };
    let all = server.get("/api/users?pageSize=9&sortProperty=email&sortOrder=DESC").await.ok();
    assert_eq!(emails(&all), ["op@x.org", "c@x.org", "admin@tachograph.local"]);
    let tenant = all["data"][0]["tenantId"]["id"].as_str().unwrap().to_owned();
    let admins = server.get(&format!("/api/tenant/{tenant}/users?pageSize=9")).await.ok();
    assert_eq!(emails(&admins), ["admin@tachograph.local"]);
    let acme = customer["id"]["id"].as_str().unwrap();
    assert_eq!(
        emails(&server.get(&format!("/api/customer/{acme}/users?pageSize=9")).await.ok()),
        ["c@x.org"]
    );
    for (body, part) in [
        (json!({ "email": "x@x.org", "authority": "SYS_ADMIN" }), "TENANT_ADMIN or CUSTOMER_USER"),
        (
            json!({ "email": "x@x.org", "authority": "TENANT_ADMIN", "customerId": customer["id"] }),
            "CUSTOMER_USER",
        ),
    ] {
        assert!(server.post("/api/user", &body.to_string()).await.refusal(400, 30).contains(part));
    }
    let id = changed["id"]["id"].as_str().unwrap();
    let enabled =
        |value: bool| format!("/api/user/{id}/userCredentialsEnabled?userCredentialsEnabled={value}");
    assert_eq!(server.post(&enabled(false), "").await.status, 200);
    server.request("GET", "/api/auth/user").session(&operator).send().await.refusal(401, 10);
    assert_eq!(server.post(&enabled(true), "").await.status, 200);
    assert!(server.get(&format!("/api/user/{id}/token")).await.refusal(403, 20).contains("API key"));
    assert_eq!(server.delete(&format!("/api/user/{id}")).await.status, 200);
    server.get(&format!("/api/user/{id}")).await.refusal(404, 32);
    server.stop().await;
}

#[tokio::test]
async fn tenants_are_managed_by_administrators_of_the_installation() {
    let server = Server::start().await;
    let made = server.post("/api/tenant", r#"{"title":"acme","email":"a@acme.example"}"#).await.ok();
    assert_eq!((&made["name"], &made["region"]), (&"acme".into(), &"Global".into()));
    let id = made["id"]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/tenant/info/{id}")).await.ok()["tenantProfileName"], "Default");
    let admin = json!({ "email": "root@acme.example", "authority": "TENANT_ADMIN", "tenantId": made["id"] });
    let admin = server.post("/api/user", &admin.to_string()).await.ok();
    assert_eq!(admin["tenantId"]["id"], id);
    let user = server.hub.registry().user_by_login("root@acme.example").unwrap();
    let session = server.hub.registry().open_session(&user, hub::clock::system_now()).token;
    let get = async |path: &str| server.request("GET", path).session(&session).send().await;
    assert_eq!(get("/api/tenant/devices?pageSize=9").await.ok()["totalElements"], 0);
    assert_eq!(get("/api/assetProfileInfo/default").await.ok()["name"], "default");
    assert_eq!(get(&format!("/api/tenant/{id}")).await.ok()["title"], "acme");
    get("/api/tenants?pageSize=9").await.refusal(403, 20);
    let own = server.get("/api/auth/user").await.ok()["tenantId"]["id"].as_str().unwrap().to_owned();
    get(&format!("/api/tenant/{own}")).await.refusal(404, 32);
    get(&format!("/api/tenant/{own}/users?pageSize=9")).await.refusal(404, 32);
    let listed = server.get("/api/tenantInfos?pageSize=9&sortProperty=title").await.ok();
    assert_eq!(listed["totalElements"], 2);
    assert!(
        server
            .post("/api/tenant", r#"{"title":"b","region":"Mars"}"#)
            .await
            .refusal(400, 30)
            .contains("Mars")
    );
    assert_eq!(server.delete(&format!("/api/tenant/{id}")).await.status, 200);
    get("/api/auth/user").await.refusal(401, 10);
    server.delete(&format!("/api/tenant/{own}")).await.refusal(400, 31);
    server.stop().await;
}

#[tokio::test]
async fn api_keys_have_thingsboards_shape_too() {
    let server = Server::start().await;
    let me = server.get("/api/auth/user").await.ok();
    let new = json!({ "userId": me["id"], "description": "reports", "enabled": true, "expirationTime": 0 });
    let key = server.post("/api/apiKey", &new.to_string()).await.ok();
    let secret = key["value"].as_str().unwrap();
    let read = server.request("GET", "/api/auth/user").header("x-authorization", &format!("ApiKey {secret}"));
    assert_eq!(read.send().await.ok()["email"], me["email"]);
    let user = me["id"]["id"].as_str().unwrap();
    let listed = server.get(&format!("/api/apiKeys/{user}?pageSize=9&page=0")).await.ok();
    assert_eq!(
        (&listed["data"][0]["description"], &listed["data"][0]["value"]),
        (&"reports".into(), &Json::Null)
    );
    let id = key["id"]["id"].as_str().unwrap();
    let disable =
        server.request("PUT", &format!("/api/apiKey/{id}/enabled/false")).session(&server.session());
    assert!(disable.send().await.refusal(400, 30).contains("DELETE"));
    assert_eq!(server.delete(&format!("/api/apiKey/{id}")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn the_audit_log_names_who_did_what_with_which_entity() {
    let server = Server::start().await;
    let device = server.post("/api/device", r#"{"name":"truck"}"#).await.ok();
    let id = device["id"]["id"].as_str().unwrap();
    server.get(&format!("/api/device/{id}/credentials")).await.ok();
    server.post("/api/customer", r#"{"title":"acme"}"#).await.ok();
    let all = server.get("/api/audit/logs?pageSize=2&page=0").await.ok();
    assert_eq!((&all["totalElements"], &all["hasNext"]), (&3.into(), &true.into()));
    let newest = &all["data"][0];
    assert_eq!((&newest["actionType"], &newest["entityName"]), (&"ADDED".into(), &"acme".into()));
    assert_eq!(
        (&newest["userName"], &newest["actionStatus"]),
        (&"admin@tachograph.local".into(), &"SUCCESS".into())
    );
    let of = server.get(&format!("/api/audit/logs/entity/DEVICE/{id}?pageSize=9&sortOrder=ASC")).await.ok();
    let types: Vec<_> = of["data"].as_array().unwrap().iter().map(|act| act["actionType"].clone()).collect();
    assert_eq!(types, ["ADDED", "CREDENTIALS_READ"]);
    let user = newest["userId"]["id"].as_str().unwrap();
    let by = server.get(&format!("/api/audit/logs/user/{user}?pageSize=9&textSearch=TRUCK")).await.ok();
    assert_eq!(by["totalElements"], 2);
    let typed = server.get("/api/audit/logs?pageSize=9&actionTypes=CREDENTIALS_READ,LOGIN").await.ok();
    assert_eq!(typed["totalElements"], 1);
    let past = server.get("/api/audit/logs?pageSize=9&startTime=0&endTime=1000").await.ok();
    assert_eq!(past["totalElements"], 0);
    assert!(
        server
            .get("/api/audit/logs?pageSize=9&page=2147483647")
            .await
            .refusal(400, 31)
            .contains("the limit is")
    );
    let viewer = server.session_of("v@x.org", Role::Viewer, None);
    server.request("GET", "/api/audit/logs?pageSize=9").session(&viewer).send().await.refusal(403, 20);
    server.stop().await;
}

//! GSN's interfaces on a server without sensors: logins, refusals, empty lists.

use clients::outgoing::AllowedTargets;
use model::limits::QueryLimits;

use super::sql::chunks;
use super::*;

/// The text of an answer that is written while it is sent.
fn streamed(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let (bytes, is_whole) = chunks(reply);
    assert!(is_whole, "{}", reply.text());
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn strangers_are_asked_for_a_login() {
    let server = Server::start().await;
    for path in [
        "/gsn",
        "/multidata?vs[0]=a&field[0]=All",
        "/field?vs=a&field=b&pk=1",
        "/rest/sensors",
        "/rest/grid/a",
        "/api/sensors",
        "/api/sensors/a/data",
        "/api/user",
        "/streaming/select/2026-11-27",
    ] {
        let reply = server.request("GET", path).send().await;
        assert_eq!(reply.status, 401, "{path}: {}", reply.text());
        assert_eq!(reply.headers["www-authenticate"], "Basic realm=\"GSN Access Control\"", "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_open_server_lists_its_sensors_to_all() {
    let server = Server::start_with(|options| {
        options.open = Some(Role::Operator);
        options.door = hub::Door::Gsn;
    })
    .await;
    server.hub.open_sql(QueryLimits::default()).unwrap();
    let reply = server.request("GET", "/gsn").send().await;
    let places = server.request("GET", "/gsn?REQUEST=901").send().await;
    assert!(
        streamed(&places).ends_with("xmlns:gml=\"http://www.opengis.net/gml\"> \n</gsn:FeatureCollection>\n")
    );
    let expected = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\
                    <gsn name=\"Tachograph\" author=\"\" email=\"\" description=\"Virtual sensors of Tachograph\">\n</gsn>\n";
    assert_eq!(streamed(&reply), expected);
    assert_eq!(reply.headers["content-type"], "text/xml; charset=iso-8859-1");
    server.stop().await;
}

#[tokio::test]
async fn a_password_may_come_in_the_form() {
    let server = Server::start().await;
    let (login, password) = (&server.admin.login, &server.admin.password);
    let form = format!("vs[0]=nosuch&field[0]=All&username={login}&password={password}");
    let reply = server.request("POST", "/multidata").body(form).send().await;
    assert_eq!(reply.status, 402, "{}", reply.text());
    let wrong = server.request("GET", &format!("/gsn?username={login}&password=wrong")).send().await;
    assert_eq!(wrong.status, 401, "{}", wrong.text());
    server.stop().await;
}

#[tokio::test]
async fn a_token_of_oauth_is_a_session() {
    let server = Server::start().await;
    let (login, password) = (&server.admin.login, &server.admin.password);
    let form = format!("grant_type=password&username={login}&password={password}");
    let granted = server.request("POST", "/oauth2/token").body(form).send().await.ok();
    assert_eq!(granted["token_type"], "Bearer");
    let token = granted["access_token"].as_str().unwrap();
    let user = server.request("GET", &format!("/api/user?access_token={token}")).send().await.ok();
    assert_eq!(user["username"], login.as_str());
    let refused = server.request("POST", "/oauth2/token").body("grant_type=password").send().await;
    assert_eq!((refused.status, &refused.json()["error"]), (400, &"invalid_request".into()));
    let wrong = format!("grant_type=client_credentials&client_id={login}&client_secret=wrong");
    let refused = server.request("POST", "/oauth2/token").body(wrong).send().await;
    assert_eq!((refused.status, &refused.json()["error"]), (401, &"invalid_grant".into()));
    server.stop().await;
}

#[tokio::test]
async fn what_the_server_does_not_have_is_named() {
    let listed = Arc::new(AllowedTargets::parse(["127.0.0.1:9000"]).unwrap());
    let server = Server::start_with(|options| options.gsn_push_targets = listed).await;
    for (path, status, part) in [
        ("/gsn?REQUEST=7", 400, "The requested operation is not supported"),
        ("/gsn?REQUEST=113", 400, "name is missing"),
        ("/gsn?REQUEST=114&name=nosuch", 402, "doesn't exist"),
        ("/field?vs=nosuch&field=b&pk=1", 402, "doesn't exist"),
        ("/rest/grid/nosuch", 501, "no grids"),
        ("/api/sensors/nosuch", 402, "doesn't exist"),
        ("/api/sensors?format=shp", 501, "geographic"),
        ("/api/sensors/search?vsnames=nosuch", 402, "doesn't exist"),
        ("/streaming/select%20*%20from%20nosuch/yesterday", 400, "not a time"),
        ("/streaming/nonsense", 400, "not a statement"),
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.text().contains(part), "{path}: {}", reply.text());
    }
    let upload = server.post("/upload", "cmd=a").await;
    assert!(upload.status == 400 && upload.text().contains("no vsname"), "{}", upload.text());
    let upload = server.post("/upload", "vsname=nosuch&cmd=a&a;b=1").await;
    assert_eq!(upload.status, 402, "{}", upload.text());
    for (form, status, part) in [
        ("", 400, "notification-id"),
        ("notification-id=1", 400, "local-contact-point is missing"),
        ("notification-id=1&local-contact-point=http://192.0.2.1/", 400, "gsn_push_targets"),
        ("notification-id=1&local-contact-point=http://127.0.0.1:22/", 400, "this machine"),
        ("notification-id=1&local-contact-point=http://127.0.0.1:9000/", 402, "doesn't exist"),
    ] {
        let push = server.post("/streaming/select%20*%20from%20a", form).await;
        assert!(push.status == status && push.text().contains(part), "{form}: {}", push.text());
    }
    server.stop().await;
}

#[tokio::test]
async fn lists_of_no_sensors_have_their_form() {
    let server = Server::start().await;
    server.hub.open_sql(QueryLimits::default()).unwrap();
    for (path, text) in [
        ("/api/sensors", "{\"type\":\"FeatureCollection\",\"features\":[]}"),
        (
            "/api/sensors?format=csv",
            "#vs_name,description,latitude,longitude,altitude,accessProtected,fields,units,types\n",
        ),
        ("/rest/sensors", "{\"type\":\"FeatureCollection\",\"features\":[]}"),
        ("/rest/sensors?format=json", "[]"),
        ("/multidata?vs[0]=All&field[0]=All&download_mode=inline", ""),
        ("/multidata?vs[0]=All&field[0]=All&download_format=xml", "<result>\n</result>\n"),
    ] {
        let reply = server.get(path).await;
        assert_eq!(streamed(&reply), text, "{path}");
    }
    let json = server.get("/rest/sensors/nosuch?format=json&from=2026-11-27&to=2026-11-28").await;
    assert_eq!(json.status, 402);
    assert!(json.json()["error"].as_str().unwrap().contains("doesn't exist"));
    server.stop().await;
}

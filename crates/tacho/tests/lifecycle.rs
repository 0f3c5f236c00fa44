//! Start and end.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::tacho::{Server, command, run, text};

#[test]
fn sigterm_ends_a_server_cleanly_and_the_next_start_is_silent_about_the_password() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let (doors, ready) = (&server.lines[1..3], &server.lines[3]);
    assert!(doors[0].starts_with("listening mqtt 127.0.0.1:"), "{doors:?}");
    assert!(doors[1].starts_with("listening http 127.0.0.1:"), "{doors:?}");
    assert_eq!(ready, "ready");
    let runtime = directory.path().join("server.json");
    assert_eq!(runtime.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let password = directory.path().join("admin-password");
    assert_eq!(password.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.lines[0].contains(std::fs::read_to_string(&password).unwrap().trim()));

    let (status, rest) = server.terminate();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
    assert!(!runtime.exists());
    let second = Server::start(directory.path());
    assert!(second.lines[0].starts_with("listening mqtt"), "{:?}", second.lines);
    assert_eq!(second.terminate().0.code(), Some(0));
}

#[test]
fn the_server_prints_its_addresses_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for (arguments, devices) in
        [(&["serve"][..], Value::Null), (&["demo", "--devices", "2", "--postgres", "127.0.0.1:0"], json!(2))]
    {
        let doors = ["--mqtt", "127.0.0.1:0", "--http", "0.0.0.0:0", "--json", "--data", text(&data)];
        let mut command = command(&[arguments, &doors].concat(), &[("TACHO_LOG", "warn")]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server::of(child, &data);
        let ready: Value = serde_json::from_str(&server.line()).unwrap();
        assert_eq!((&ready["ready"], &ready["pid"]), (&json!(true), &json!(server.pid())));
        assert_eq!(ready["devices"], devices);
        let url = ready["url"].as_str().unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{ready}");
        assert!(ready["http"].as_str().unwrap().starts_with("0.0.0.0:"), "{ready}");
        let file = ready["passwordFile"].as_str().unwrap();
        let password = std::fs::read_to_string(file).unwrap();
        let body = json!({ "username": ready["login"], "password": password.trim() });
        let answer = ureq::post(format!("{url}/api/auth/login")).send_json(body).unwrap();
        assert_eq!(answer.status(), 200);
        let (status, rest) = server.terminate();
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "nothing else is printed");
    }
}

#[test]
fn a_second_server_on_the_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let free = ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let error = run(&[&["serve", "--data", text(directory.path())], &free[..]].concat()).failed(1);
    assert!(error.contains(text(directory.path())), "{error}");
    assert!(error.contains(&format!("process {}", server.pid())), "{error}");
    assert_eq!(server.terminate().0.code(), Some(0), "the first one is not disturbed");
}

#[test]
fn a_taken_port_is_named_with_the_flag_for_another() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(first.path());
    let address = server.lines[1].strip_prefix("listening mqtt ").unwrap();
    let error =
        run(&["serve", "--data", text(second.path()), "--mqtt", address, "--http", "127.0.0.1:0"]).failed(1);
    assert!(
        error.contains(&format!("the MQTT address {address} is taken")) && error.contains("--mqtt"),
        "{error}"
    );
    // The failed start leaves a directory that the next one can use.
    assert_eq!(Server::start(second.path()).terminate().0.code(), Some(0));
}

#[test]
fn a_demo_removes_its_files() {
    let temporary = tempfile::tempdir().unwrap();
    let demo = Server::launch(
        &[
            "demo",
            "--devices",
            "3",
            "--rate",
            "20",
            "--postgres",
            "127.0.0.1:0",
            "--data",
            text(temporary.path()),
        ],
        temporary.path(),
    );
    let api = demo.api();
    let reported = || (0..3).all(|vehicle| api.history(&format!("vehicle-{vehicle}"), "speed").len() > 2);
    while !reported() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let page = ureq::get(format!("{}/api/auth/login/public", demo.url())).call();
    assert!(page.is_err(), "a GET is not how one logs in: {page:?}");
    let (status, rest) = demo.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(rest.contains("3 vehicles send 60 reports a second"), "{rest}");
}

#[test]
fn the_temporary_directory_of_a_demo_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    let mut command = crate::tacho::command(
        &[
            "demo",
            "--devices",
            "1",
            "--mqtt",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
            "--postgres",
            "127.0.0.1:0",
        ],
        &[("TMPDIR", text(parent.path())), ("TACHO_LOG", "warn")],
    );
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut server = Server::of(child, Path::new("/"));
    server.wait_ready();
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    assert_eq!(server.terminate().0.code(), Some(0));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

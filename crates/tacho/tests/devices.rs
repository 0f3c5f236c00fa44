//! `tacho device` on a stopped server's directory. (On a running one: `tests/e2e`.)

use std::os::unix::fs::PermissionsExt;

use crate::tacho::{Server, run, text};

#[test]
fn devices_of_a_new_directory_are_there_when_the_server_starts() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let added = run(&["device", "add", "truck 7", "--token", "secret-7", "--data", text(&data)]).ok();
    assert!(
        added.contains("token    secret-7\n")
            && added.contains("mosquitto_pub -h 127.0.0.1 -p 1883 -u secret-7"),
        "{added}"
    );
    assert_eq!(data.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let server = Server::start(&data);
    assert!(
        server.lines[0].starts_with("administrator admin@tachograph.local  password "),
        "{:?}",
        server.lines
    );
    assert_eq!(server.api().get("/api/tenant/devices?deviceName=truck%207")["name"], "truck 7");
}

#[test]
fn many_devices_and_their_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let (data, tokens) = (directory.path().join("data"), directory.path().join("tokens.csv"));
    let (data, file) = (text(&data), text(&tokens));
    let many = ["device", "add", "--count", "300", "--prefix", "dev-", "--tokens", file, "--data", data];
    assert!(run(&many).ok().starts_with("added    300 devices, dev-0 to dev-299\n"));
    let written = std::fs::read_to_string(&tokens).unwrap();
    let lines: Vec<_> = written.lines().collect();
    assert_eq!((lines.len(), tokens.metadata().unwrap().permissions().mode() & 0o777), (300, 0o600));
    let listed = run(&["device", "list", "--filter", "DEV-29", "--show-tokens", "--data", data]).ok();
    assert_eq!(listed.lines().count(), 1 + 11, "dev-29 and dev-290 to dev-299:\n{listed}");
    let token = lines[299].strip_prefix("dev-299,").unwrap();
    assert!(listed.lines().last().unwrap().ends_with(token), "{listed}");

    let error = run(&many).failed(1);
    assert!(error.contains("tokens.csv"), "an existing file is not overwritten: {error}");
    let again = ["device", "add", "--count", "301", "--prefix", "dev-", "--data", data];
    assert!(run(&again).failed(1).contains("\"dev-0\" exists already"));
    let kept = run(&[&again[..], &["--existing-ok"]].concat()).ok();
    assert!(kept.starts_with("added    1 devices, dev-0 to dev-300, 300 were there already\n"), "{kept}");
}

#[test]
fn a_server_that_was_killed_does_not_confuse_the_commands() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    drop(server);
    assert!(data.join("server.json").exists(), "a killed server leaves its file");
    run(&["device", "add", "late", "--data", text(&data)]).ok();
    assert!(run(&["device", "list", "--data", text(&data)]).ok().contains("late"));
}
